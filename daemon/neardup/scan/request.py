"""What to scan, and the configuration of a scan: it reads no file of configuration and no environment variable."""

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from neardup.config import Config, Content, Extract, Ledger, Source
from neardup.errors import Fatal, Misuse, NeardupError
from neardup.ledger import files, lock, read, runs
from neardup.records import Language
from neardup.source.documents import (
    PAGE_ENDINGS,
    Columns,
    Listed,
    Spool,
    Table,
    find_files,
    is_table,
    list_file_documents,
    list_table_rows,
    spool_file,
)
from neardup.source.rows import TABLE_ENDINGS

MARKUP_ENDINGS = (".html", ".htm", ".xhtml")
MAX_BYTES = 20_000_000  # of a document: longer than any novel
STDIN = "-"
ANY_COLUMNS = Columns()
MOST_RUNS = 1_000  # that are looked at


class Request(Struct, frozen=True):
    """What to scan: paths, the paths of the reference to compare their documents with, and the language of all texts.

    Without a reference the documents are compared with each other; without a language each one's is detected.
    `columns` are those of tables.
    """

    paths: Sequence[str]
    reference: Sequence[str] = ()
    language: Language | None = None
    columns: Columns = ANY_COLUMNS


class Listing(Struct, frozen=True):
    """The documents of a scan, the URL of their texts, and the files of folders that are left out, by ending.

    `reference` are the documents of the reference, if there is one; `size` is the number of all, 0 if it is not known.
    `pages` are the files with markup, unless there are tables.
    """

    documents: Listed
    reference: Listed | None
    size: int
    url: str
    left_out: Counter[str]
    pages: Sequence[Path] = ()


@contextmanager
def list_documents(request: Request, spool_file: Path, stdin: Path | None) -> Iterator[Listing]:
    """Find the documents of a request; `stdin` is a file with what the path - stands for.

    The texts of tables are copied to `spool_file`, and then so are those of files.  Raises Misuse for a path that names
    nothing, for columns without a table, if nothing is to be read, and while the documents are listed as
    `list_table_rows` does.
    """
    left_out, known = Counter[str](), set[str]()
    reference = find_files(request.reference, left_out, known)
    files = find_files([path for path in request.paths if path != STDIN], left_out, known)
    files += [stdin] if stdin is not None else []
    for paths, found in ((request.reference, reference), (request.paths, files)):
        if paths and not found:
            raise Misuse(_describe_nothing(paths, left_out, " that is not in the reference" if reference else ""))
    tables = {file for file in (*reference, *files) if _is_table(file, request)}
    if stdin is None and not tables:
        if request.columns != ANY_COLUMNS:
            raise Misuse("--text and --id name columns of a table, and no table is to be read")
        folders = {file.parent for file in (*reference, *files)}
        root = Path(os.path.commonpath([folder.absolute() for folder in folders]))
        read, url = partial(list_file_documents, root=root, language=request.language), f"file:{root}"
        size = len(reference) + len(files)
        pages = [file for file in (*reference, *files) if file.suffix.lower() in MARKUP_ENDINGS]
        yield Listing(read(files), read(reference) if request.reference else None, size, url, left_out, pages)
        return
    with Spool(spool_file) as spool:
        several = len(files) + len(reference) > 1
        read = partial(_spool_documents, request=request, spool=spool, stdin=stdin, tables=tables, several=several)
        url = f"texts:{spool_file}"
        yield Listing(read(files), read(reference) if request.reference else None, 0, url, left_out)


async def _spool_documents(
    files: Sequence[Path], request: Request, spool: Spool, stdin: Path | None, tables: set[Path], *, several: bool
) -> Listed:
    """The documents of files, of which each is a table or a single text, with their texts in the spool."""
    for file in files:
        name = "stdin" if file == stdin else str(file)
        if file in tables:
            table = Table(file, name, f"{name}:" if several else "")
            async for document in list_table_rows(table, request.columns, request.language, spool):
                yield document
        else:
            yield spool_file(file, name, request.language, spool, MAX_BYTES)


def _is_table(file: Path, request: Request) -> bool:
    """Whether a file is a table; the pages that a folder or a pattern holds are not asked."""
    is_named = file.suffix.lower() not in PAGE_ENDINGS or str(file) in (*request.paths, *request.reference)
    return is_named and is_table(file, request.columns)


def _describe_nothing(paths: Sequence[str], left_out: Counter[str], but: str) -> str:
    seen = f", only {describe_endings(left_out)}" if left_out else ""
    if any(ending in TABLE_ENDINGS for ending in left_out):
        seen += "; name a table itself"
    return f"{' '.join(paths)}: no {', '.join(PAGE_ENDINGS)} file here{but}{seen}"


def describe_endings(left_out: Counter[str]) -> str:
    """The endings of files, the most frequent first, such as ".pdf 3, .png 1"."""
    return ", ".join(f"{ending} {n:,}" for ending, n in left_out.most_common())


@contextmanager
def create_ledger(keep: Path | None) -> Iterator[Path]:
    """The path of a new ledger: the one to keep, or a temporary one.

    Raises Misuse if the one to keep exists, unless a scan left it that did not end.
    """
    if keep is not None:
        if keep.exists() and not _is_abandoned(keep):
            raise Misuse(f"--keep: {keep} exists already: name a new file, or remove it")
        for path in (keep, files.name_log_file(keep), keep.with_name(f"{keep.name}-shm")):
            path.unlink(missing_ok=True)
        yield keep
        return
    with TemporaryDirectory(prefix="neardup-scan-") as folder:
        yield Path(folder) / "scan.db"


def _is_abandoned(ledger: Path) -> bool:
    """Whether nothing but scans has begun to fill a ledger, none of which ended, and no command is filling it now."""
    if lock.read_holder(ledger) is not None:
        return False
    if not ledger.stat().st_size:
        return ledger.is_file()
    with suppress(NeardupError), closing(read(ledger)) as db:
        return all(run["command"] == "scan" and run["status"] != "done" for run in runs.list_latest(db, MOST_RUNS))
    return False


def make_config(ledger: Path, url: str, strip: tuple[str, ...] = ()) -> Config:
    """The configuration of a scan, by which the commands on flags work on its ledger.

    `strip` selects what is left out of the pages.
    """
    return Config(
        source=Source(kind="scan"),
        content=Content(url=url, max_bytes=MAX_BYTES),
        extract=Extract(strip=strip),
        ledger=Ledger(path=ledger),
    )


def write_config(config: Config) -> Path:
    """Write the configuration beside the ledger; returns its path.

    Raises Misuse for a path that is not UTF-8, as all TOML is, Fatal if the file cannot be written.
    """
    path = config.ledger.path.with_name(f"{config.ledger.path.name}.toml")
    lines = (
        "# Written by `neardup scan`, for `neardup show`, `export` and `review`.",
        f'[source]\nkind = "{config.source.kind}"',
        f"[content]\nurl = {json.dumps(config.content.url, ensure_ascii=False)}\nmax_bytes = {MAX_BYTES}",
        f"[extract]\nstrip = {json.dumps(config.extract.strip, ensure_ascii=False)}",
        f"[ledger]\npath = {json.dumps(config.ledger.path.name, ensure_ascii=False)}",
    )
    try:
        path.write_bytes(("\n".join(lines) + "\n").encode())
    except UnicodeEncodeError as error:
        raise Misuse(f"--keep: cannot write {path}: it would hold a path that is not UTF-8") from error
    except OSError as error:
        raise Fatal(f"cannot write {path}: {error.strerror}") from error
    return path
