"""Scratch files beside the ledger, which has the room for what is made of it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from neardup.errors import Fatal


@contextmanager
def make_scratch_folder(ledger: Path, purpose: str) -> Iterator[Path]:
    """A folder beside the ledger that is removed at the end.  The caller holds the ledger's lock.

    What a process that was killed has left for the same purpose is removed first.  Raises Fatal where
    the folder cannot be written.
    """
    prefix = f"{ledger.name}-{purpose}-"
    for leftover in ledger.parent.glob(f"{prefix}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with translate_scratch_errors(ledger.parent):
        folder = TemporaryDirectory(prefix=prefix, dir=ledger.parent, ignore_cleanup_errors=True)
    with folder as path:
        yield Path(path)


@contextmanager
def translate_scratch_errors(folder: Path) -> Iterator[None]:
    """Raise Fatal if a file in a folder cannot be written."""
    try:
        yield
    except OSError as error:
        raise Fatal(f"cannot write scratch files in {folder}: {error.strerror}") from error
