"""Pages that need no transfer: files below a folder, and pages at hand.

`PlainContent` has the settings of any store of pages as plain values, so that reader processes load no configuration.
"""

import errno
import os
import select
import stat
import sys
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self, TypeAlias

from neardup.errors import Fatal, Forbidden, Gone, NeardupError, Transient
from neardup.records import make_etag

if TYPE_CHECKING:
    from neardup.config import Content
    from neardup.pages.s3 import Get  # its libraries are optional

AnyContent: TypeAlias = "Content | PlainContent"
MISSING = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG}


class PlainContent(NamedTuple):
    """What a store of pages needs of [content] or of the content of [reference]; see `neardup.config.Content`."""

    section: str
    url: str
    key: str
    endpoint: str | None
    region: str | None
    path_style: bool
    max_bytes: int

    @classmethod
    def of(cls, content: "AnyContent") -> Self:
        return cls(*(getattr(content, name) for name in cls._fields))


class Folder:
    """The counterpart of `neardup.pages.s3.Bucket` for files, with the `max_bytes` of `content`.

    Raises Fatal where the folder does not exist.
    """

    def __init__(self, root: Path, content: AnyContent) -> None:
        if not root.is_dir():
            raise Fatal(f"{content.section}.url: no folder {root}")
        self._root = _Root(root)
        self._max_bytes = content.max_bytes

    def begin(self, path: str, etag: str | None) -> "File":
        """A file, read when its result is taken; `etag` is its last known ETag."""
        return File(self._root, path, etag, self._max_bytes)


class _Root:
    """A folder, which may be a symbolic link that leads elsewhere later."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._real = os.path.realpath(path)

    def contains(self, descriptor: int) -> bool:
        """Whether an open file is below the folder, whatever links led to it."""
        real = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 - pathlib takes twice the time
        if not real.startswith(f"{self._real}/"):
            self._real = os.path.realpath(self.path)
        return real.startswith(f"{self._real.rstrip('/')}/")


class File:
    """The counterpart of `neardup.pages.s3.Get`; it has no transfer to wait for."""

    curl = None
    resent = 0
    body_bytes = 0
    is_text = False  # a plain text, not markup

    def __init__(self, root: _Root, path: str, etag: str | None, max_bytes: int) -> None:
        self._root, self._path, self._etag, self.max_bytes = root, path, etag, max_bytes

    @property
    def url(self) -> str:
        """The path of the file."""
        return f"{self._root.path}/{self._path}"

    def result(self) -> tuple[bytes, dict[str, str]] | None:
        """The file's bytes and its headers, which are an ETag; None where the file still has the given ETag.

        Of a file that is too large only one byte more than is allowed.  Raises Gone, Forbidden, Transient.
        """
        try:
            with open(self.url, "rb", opener=_open_nonblocking) as file:
                if not self._root.contains(file.fileno()):
                    raise Gone(f"{file.name}: a symbolic link leads out of {self._root.path}")
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise Gone(f"{file.name}: not a regular file")
                etag = make_etag(status)
                if etag == self._etag:
                    return None
                body = file.read(min(status.st_size, self.max_bytes) + 1)  # allocates so many bytes
                if len(body) != min(status.st_size, self.max_bytes + 1):
                    raise Transient(f"{file.name}: changed while it was read", "store_error")
                return body, {"etag": etag}
        except (OSError, ValueError) as error:  # ValueError: a path with a NUL
            raise _make_error(error) from error


class GivenPage:
    """The counterpart of `File` for a page that came with the request."""

    curl = None
    resent = 0
    url = "the given page"
    max_bytes = sys.maxsize

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.body_bytes = len(body)

    def result(self) -> tuple[bytes, dict[str, str]]:
        """The page, without headers."""
        return self._body, {}


class Files:
    """The counterpart of `neardup.pages.s3.Transfers` for files; a file is read when its result is taken."""

    body_bytes = 0

    def __init__(self, control_socket: int) -> None:
        self._poll = select.poll()
        self._poll.register(control_socket, select.POLLIN)
        self._finished: deque[File | GivenPage] = deque()

    @property
    def under_way(self) -> int:
        """The number of files begun and not yet popped."""
        return len(self._finished)

    def begin(self, get: "Get | File | GivenPage") -> None:
        """Begin a file, which is finished at once."""
        assert isinstance(get, File | GivenPage)
        self._finished.append(get)

    def pop_finished(self) -> File | GivenPage | None:
        """A file, or None."""
        return self._finished.popleft() if self._finished else None

    def advance(self, *, wait: bool) -> bool:
        """With `wait`, block until the control socket is readable, unless there is a file; returns whether it is."""
        return bool(self._poll.poll(None if wait and not self._finished else 0))


def _open_nonblocking(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # opening a pipe without a writer would block


def _make_error(error: OSError | ValueError) -> NeardupError:
    if isinstance(error, PermissionError):
        return Forbidden(str(error))
    gone = isinstance(error, ValueError) or error.errno in MISSING
    return Gone(str(error)) if gone else Transient(str(error), "store_error")
