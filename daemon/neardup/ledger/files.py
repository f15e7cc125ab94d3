"""The files that a ledger is made of, and who may use them.

SQLite gives the write-ahead log and its index the mode of the ledger's file, and the file system gives what is made in
a folder with the setgid bit the folder's group.  So in such a folder daemon and operators share a ledger, whoever
opened it first and whatever their umask.
"""

import os
import stat
from pathlib import Path

PRIVATE = 0o666  # less the umask
SHARED = 0o660


def make(path: Path) -> None:
    """An empty file where there is none: for its whole group in a folder with the setgid bit, else as the umask says.

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
    """Whether nobody can write to the file system of a file."""
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
