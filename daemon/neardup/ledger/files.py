"""The ledger's files and their permissions.

SQLite gives the write-ahead log and its index the mode of the ledger's file, and the file system gives new files in a
folder with the setgid bit the folder's group.  So in such a folder the daemon and operators share a ledger, no matter
who opened it first and with which umask.
"""

import os
import stat
from pathlib import Path

PRIVATE = 0o666  # less the umask
SHARED = 0o660


def make(path: Path) -> None:
    """Create an empty file where there is none: for its group in a folder with the setgid bit, else by the umask.

    Raises OSError.
    """
    try:
        made = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, PRIVATE)
    except FileExistsError:
        return
    try:
        if path.parent.stat().st_mode & stat.S_ISGID:
            os.fchmod(made, SHARED)
    finally:
        os.close(made)


def is_read_only(path: Path) -> bool:
    """Whether the file system of a file is mounted read-only."""
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
