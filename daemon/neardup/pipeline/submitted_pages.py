"""The files of submitted pages, in a folder beside the ledger.

A file is written durably before its story is committed, and is never changed.  Each submission has a file of its own:
of two at the same time with the same text, neither removes the file of the other.  A file is removed when its story is
forgotten, or has another path.
"""

import json
import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from neardup.errors import Fatal
from neardup.ledger import files
from neardup.records import SUBMITTED, TEXT_ENDING
from neardup.sqlite import sync_folder

if TYPE_CHECKING:  # its module parses pages, which `status` does not
    from neardup.core.page import Page

RANDOM_BYTES = 8  # in the name of a file
UNUSED_SECONDS = 3600.0  # after which a file that no story needs was left by a process that was killed
IDS_A_QUERY = 1000


def write(ledger: Path, story_id: int, page: "Page") -> str:
    """Keep a page durably; returns its path.  Raises Fatal if the file cannot be written."""
    folder = files.name_submitted_folder(ledger)
    ending = TEXT_ENDING if page.is_text else ".html"
    target = folder / f"{story_id}-{token_hex(RANDOM_BYTES)}{ending}"
    try:
        files.make_folder(folder)
        _write(target, page.body)
    except OSError as error:
        raise Fatal(f"cannot keep the page of story {story_id}: {target}: {error.strerror}") from error
    return f"{SUBMITTED}{target.name}"


def _write(target: Path, body: bytes) -> None:
    from tempfile import mkstemp  # noqa: PLC0415 - what only counts pages starts without it

    handle, name = mkstemp(prefix=".", suffix=".part", dir=target.parent)
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
            shared = target.parent.stat().st_mode & stat.S_ISGID
            os.fchmod(file.fileno(), files.SHARED_MODE if shared else files.PRIVATE_MODE)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
        sync_folder(target.parent)
    finally:
        part.unlink(missing_ok=True)


def remove(ledger: Path, path: str | None) -> None:
    """Remove the file of a path that no story has any more; paths elsewhere are left alone."""
    if path is not None and path.startswith(SUBMITTED):
        (files.name_submitted_folder(ledger) / path.removeprefix(SUBMITTED)).unlink(missing_ok=True)


def is_kept(ledger: Path, path: str) -> bool:
    """Whether the file of a path is there; paths elsewhere are taken to be."""
    return (
        not path.startswith(SUBMITTED) or (files.name_submitted_folder(ledger) / path.removeprefix(SUBMITTED)).exists()
    )


def list_files(ledger: Path) -> list[Path]:
    """The files of all pages."""
    return [file for file in _list_files(ledger) if not file.name.startswith(".")]


def _list_files(ledger: Path) -> list[Path]:
    """The files of all pages, and what processes that were killed left of others."""
    folder = files.name_submitted_folder(ledger)
    return sorted(folder.iterdir()) if folder.is_dir() else []


def remove_unused(db: sqlite3.Connection, ledger: Path) -> None:
    """Remove the files that no story needs, and that are not about to be needed."""
    before = time.time() - UNUSED_SECONDS
    for file in list(list_unused(db, ledger)):
        try:
            if file.stat().st_mtime < before:
                file.unlink()
        except FileNotFoundError:  # its story was forgotten meanwhile
            continue


def list_missing(db: sqlite3.Connection, ledger: Path) -> Iterator[tuple[int, str | None]]:
    """The stories whose submitted page is gone: id and name."""
    rows = db.execute(f"SELECT id, name, path FROM stories WHERE path GLOB '{SUBMITTED}*'")
    yield from ((story_id, name) for story_id, name, path in rows if not is_kept(ledger, path))


def list_unused(db: sqlite3.Connection, ledger: Path) -> Iterator[Path]:
    """The files that are not the page of a story."""
    found = _list_files(ledger)
    for at in range(0, len(found), IDS_A_QUERY):
        files = found[at : at + IDS_A_QUERY]
        ids = [int(first) for file in files if (first := file.name.partition("-")[0]).isdecimal()]
        rows = db.execute("SELECT path FROM stories WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(ids),))
        paths = {path for (path,) in rows}
        yield from (file for file in files if f"{SUBMITTED}{file.name}" not in paths)
