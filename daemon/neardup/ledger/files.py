"""The ledger's files and their permissions.

SQLite gives the -wal and -shm files beside the ledger the mode of the ledger's file.  In a folder with the setgid bit,
the file system gives new files the group of the folder.  So in such a folder the daemon and operators share a ledger,
no matter who opened it first and with which umask.
"""

import os
import stat
from pathlib import Path

DEFAULT_MODE = 0o666  # less the umask
SHARED_MODE = 0o660


def make(path: Path) -> None:
    """Create an empty file unless there is one.  Raises OSError.

    In a folder with the setgid bit the group may read and write it; elsewhere the umask decides.
    """
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, DEFAULT_MODE)
    except FileExistsError:
        return
    try:
        if path.parent.stat().st_mode & stat.S_ISGID:
            os.fchmod(descriptor, SHARED_MODE)
    finally:
        os.close(descriptor)


def is_read_only(path: Path) -> bool:
    """Whether the file system of a file is mounted read-only."""
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
