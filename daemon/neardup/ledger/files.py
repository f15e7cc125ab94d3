"""The ledger's files and their permissions.

SQLite gives the -wal and -shm files beside the ledger the mode of the ledger's file.  In a folder with the setgid bit,
the file system gives new files the group of the folder.  So in such a folder the daemon and operators share a ledger,
no matter who opened it first and with which umask.  Elsewhere the owner writes it and the group reads it.
"""

import os
import stat
from pathlib import Path

PRIVATE_MODE = 0o640
SHARED_MODE = 0o660
PRIVATE_FOLDER_MODE = 0o750
SHARED_FOLDER_MODE = 0o2770


def make(path: Path) -> None:
    """Create an empty file unless there is one.  Raises OSError.

    In a folder with the setgid bit the group may read and write it; elsewhere the group may read it.  The umask changes
    neither.
    """
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    try:
        os.fchmod(descriptor, SHARED_MODE if path.parent.stat().st_mode & stat.S_ISGID else PRIVATE_MODE)
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """Create a folder unless there is one; its mode corresponds to that of a file beside it.  Raises OSError."""
    try:
        path.mkdir(0o700)
    except FileExistsError:
        return
    mode = path.parent.stat().st_mode
    path.chmod(SHARED_FOLDER_MODE if mode & stat.S_ISGID else PRIVATE_FOLDER_MODE)


def is_read_only(path: Path) -> bool:
    """Whether the file system of a file is mounted read-only."""
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def passages_folder(ledger: Path) -> Path:
    """The folder of the passage index of a ledger."""
    return ledger.with_name(f"{ledger.name}.passages")


def titles_file(ledger: Path) -> Path:
    """The index of the titles of a ledger."""
    return ledger.with_name(f"{ledger.name}.titles")


def vectors_file(ledger: Path) -> Path:
    """The vectors of the stories of a ledger."""
    return ledger.with_name(f"{ledger.name}.vectors")


def submitted_folder(ledger: Path) -> Path:
    """The folder of the submitted pages of a ledger."""
    return ledger.with_name(f"{ledger.name}.submitted")
