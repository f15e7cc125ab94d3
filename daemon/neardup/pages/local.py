"""Pages that are files below a folder."""

import errno
import os
import stat
from pathlib import Path

from neardup.errors import Fatal, Forbidden, Gone, NeardupError, TooLarge, Transient

NOT_THERE = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG}


class Folder:
    """Gives what `neardup.pages.s3.Bucket` gives, from files.  Raises Fatal where there is no such folder."""

    def __init__(self, root: Path, max_bytes: int) -> None:
        if not root.is_dir():
            raise Fatal(f"content.url: no folder {root}")
        self._root = root
        self._max_bytes = max_bytes

    def begin(self, path: str, etag: str | None) -> "File":
        """A file, to be read when it is asked for."""
        return File(self._root, path, etag, self._max_bytes)


class File:
    """A file that is about to be read."""

    curl = None
    size = 0

    def __init__(self, root: Path, path: str, etag: str | None, max_bytes: int) -> None:
        self._root, self._path, self._etag, self._max_bytes = root, path, etag, max_bytes

    def result(self) -> tuple[bytes, dict[str, str]] | None:
        """Its bytes, and an ETag beside them; None where it still has the one that was given.

        Raises Gone, TooLarge, Forbidden, Transient.
        """
        try:
            with open(f"{self._root}/{self._path}", "rb", opener=_opened) as file:
                found = os.fstat(file.fileno())
                if not stat.S_ISREG(found.st_mode):
                    raise Gone(f"{file.name}: no regular file")
                etag = f"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_size:x}"
                if etag == self._etag:
                    return None
                if found.st_size > self._max_bytes:
                    raise TooLarge("larger than content.max_bytes")
                return file.read(self._max_bytes), {"etag": etag}
        except (OSError, ValueError) as error:  # ValueError: a path with a NUL
            raise _meant(error) from error


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # a pipe that nobody writes to would be waited for


def _meant(error: OSError | ValueError) -> NeardupError:
    if isinstance(error, PermissionError):
        return Forbidden(str(error))
    gone = isinstance(error, ValueError) or error.errno in NOT_THERE
    return Gone(str(error)) if gone else Transient(str(error), "store_error")
