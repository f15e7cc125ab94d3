"""The pages of stories, in S3, in a folder or in one file: found by their paths, read, and decompressed.

The page of a submitted story is in a folder beside the ledger until a listing says where the story's page is.  The
works of the reference have a store of their own.  The texts that `neardup scan` found in tables are parts of one file.

A store begins a GET of a page, `Transfers` or `Files` carry it out, and its result is the page.  Those of S3 are in
neardup.pages.s3, which is imported where it is used, because its libraries are optional; files are read here.
"""

import errno
import os
import re
import select
import stat
import sys
import zlib
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self, TypeAlias

from neardup.core.columns import StoryColumns
from neardup.core.page import Page
from neardup.core.text.extraction import Extraction
from neardup.errors import Fatal, Forbidden, Gone, NeardupError, Transient, needs_extra
from neardup.records import SUBMITTED, TEXT_ENDING, Story, is_work, make_etag
from neardup.s3 import make_document_error

if TYPE_CHECKING:
    from neardup.config import Content
    from neardup.pages.s3 import Bucket, Get, Transfers

AnyContent: TypeAlias = "Content | PlainContent"
REFERENCE = "reference://"  # before the path of a work's page, below the URL of the works
MODULES_OF_S3 = "neardup.pages.s3", "botocore.session"
DOT_SEGMENTS = {".", ".."}  # would leave content.url
GUNZIP_STEP = 16_384  # bytes at a time: zlib copies what follows a gzip member, else the whole rest of the body
MISSING = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG}
RANGE = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")


class PlainContent(NamedTuple):
    """What a store of pages needs of [content] or of the content of [reference], as in `neardup.config.Content`.

    It is of plain values, so that reader processes load no configuration.
    """

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


class WorkPages(NamedTuple):
    """Where the pages of works are, and which part of them is the text."""

    content: AnyContent
    extraction: Extraction


def open_store(content: AnyContent) -> "Bucket | Folder | TextFile":
    """Open the store of `content`.

    Raises Fatal for a missing folder or file and for missing AWS credentials, Misuse if the libraries of S3 are not
    installed.
    """
    url = content.url
    if url.startswith("texts:"):
        return TextFile(Path(url.removeprefix("texts:")), content)
    if url.startswith("file:"):
        return Folder(Path(url.removeprefix("file://").removeprefix("file:")), content)
    with needs_extra("aws", f"{content.section}.url = {url!r}"):
        from neardup.pages.s3 import Bucket  # noqa: PLC0415 - loads pycurl

    return Bucket(url, content)


def list_modules(contents: Iterable[AnyContent]) -> Sequence[str]:
    """The modules that these stores and their transfers need, imported before a reader process is forked."""
    return MODULES_OF_S3 if any(content.url.startswith("s3:") for content in contents) else ()


def open_transfers(contents: Iterable[AnyContent], control_socket: int) -> "Transfers | Files":
    """What carries out the GETs of these stores; see `neardup.pages.s3.Transfers`."""
    if not list_modules(contents):
        return Files(control_socket)
    from neardup.pages.s3 import Transfers  # noqa: PLC0415 - loads pycurl

    return Transfers(control_socket)


def make_path(content: AnyContent, story: Story) -> str:
    return make_paths(content, StoryColumns.of([story]))[0]


def make_paths(content: AnyContent, stories: StoryColumns) -> list[str]:
    """The pages of stories, as paths below content.url."""
    columns = zip(stories.paths, stories.languages, stories.ids, strict=True)
    return [path or content.key.format(language=language, id=story_id) for path, language, story_id in columns]


def find_location(
    content: AnyContent, story: Story, submitted: Path | None = None, works: WorkPages | None = None
) -> str:
    """Where a story's page is: the path of a file, or the s3:// URL of an object.

    `submitted` and `works` are as for `Pages`.
    """
    if is_work(story.id) and works is not None:
        content = works.content
    if submitted is not None and story.path is not None and story.path.startswith(SUBMITTED):
        return f"{submitted}/{story.path.removeprefix(SUBMITTED)}"
    return f"{content.url.removeprefix('file://').removeprefix('file:').rstrip('/')}/{make_path(content, story)}"


class Pages:
    """The pages below content.url: `begin` makes a GET, `Transfers` or `Files` perform it, `read_page` gives its page.

    `submitted` is the folder of the submitted pages, which need not exist yet; `works` is None without a reference.
    """

    def __init__(self, content: AnyContent, submitted: Path | None = None, works: WorkPages | None = None) -> None:
        self._store = open_store(content)
        self._submitted = submitted
        self._works = None if works is None else open_store(works.content)
        self._content = content

    def begin(self, path: str, etag: str | None = None) -> "Get | File":
        """A GET of a page, conditional if its last known ETag is given.

        Raises Gone for a path that cannot exist there, Transient where the credentials cannot be renewed.
        """
        if not DOT_SEGMENTS.isdisjoint(path.split("/")):
            raise Gone(f"content.url has nothing at {path!r}")
        if path.startswith(SUBMITTED):
            return self._begin_submitted(path.removeprefix(SUBMITTED), etag)
        if path.startswith(REFERENCE):
            if self._works is None:
                raise Gone("the configuration has no [reference]")
            return self._works.begin(path.removeprefix(REFERENCE), etag)
        return self._store.begin(path, etag)

    def _begin_submitted(self, name: str, etag: str | None) -> "File":
        if self._submitted is None or not self._submitted.is_dir():
            raise Gone(f"no submitted page {name}")
        file = Folder(self._submitted, self._content).begin(name, etag)
        file.is_text = name.endswith(TEXT_ENDING)
        return file

    def read_page(self, get: "Get | File") -> Page | None:
        """The page that a finished GET returned, at most `max_bytes` of its store; None where it still has the ETag.

        Raises Gone, Forbidden, StoreDown, Fatal, Transient.
        """
        response = get.result()
        if response is None:
            return None
        body, headers = response
        if headers.get("content-encoding", "").lower() == "gzip":
            body = _gunzip(body, get.max_bytes)
            if error := make_document_error(get.url, body):
                raise error
        is_cut = len(body) > get.max_bytes
        body = body[: get.max_bytes] if is_cut else body
        return Page(body, headers.get("content-type"), headers.get("etag"), get.is_text, is_cut)


def _gunzip(body: bytes, limit: int) -> bytes:
    """Decompress all members, up to one byte more than `limit`; what is not gzip is returned as it is.

    A body that ends within a member is returned as it is too, unless it is longer than `limit`, and so was cut itself.
    """
    whole, member, inflater, inside = bytearray(), bytearray(), _make_inflater(), False
    for start in range(0, len(body), GUNZIP_STEP):
        rest = body[start : start + GUNZIP_STEP]
        while rest:
            inside = True
            try:
                member += inflater.decompress(rest, limit + 1 - len(whole) - len(member))
            except zlib.error:
                return bytes(whole) or body  # gzip(1), too, ignores trailing garbage
            if len(whole) + len(member) > limit:
                return bytes(whole + member)
            rest = inflater.unused_data
            if inflater.eof:
                whole += member
                member, inflater, inside = bytearray(), _make_inflater(), False
    if inside and len(body) > limit:
        return bytes(whole + member)
    return body if inside else bytes(whole)


def _make_inflater() -> "zlib._Decompress":
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)


class Folder:
    """The counterpart of `neardup.pages.s3.Bucket` for files, with the `max_bytes` of `content`.

    Raises Fatal where the folder does not exist.
    """

    def __init__(self, root: Path, content: AnyContent) -> None:
        if not root.is_dir():
            raise Fatal(f"{content.section}.url: no folder {root}")
        self.path, self._max_bytes = root, content.max_bytes
        self._real = os.path.realpath(root)  # the folder may be a symbolic link that leads elsewhere later

    def begin(self, path: str, etag: str | None) -> "File":
        """A file, read when its result is taken; `etag` is its last known ETag."""
        return File(self, path, etag, self._max_bytes)

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

    def __init__(self, folder: Folder, path: str, etag: str | None, max_bytes: int) -> None:
        self._folder, self._etag, self.max_bytes = folder, etag, max_bytes
        self.url = f"{folder.path}/{path}"  # where the page is, for messages

    def result(self) -> tuple[bytes, dict[str, str]] | None:
        """The file's bytes and its headers, which are an ETag; None where the file still has the given ETag.

        Of a file that is too large only one byte more than is allowed.  Raises Gone, Forbidden, Transient.
        """
        try:
            with open(self.url, "rb", opener=_open_nonblocking) as file:
                if not self._folder.contains(file.fileno()):
                    raise Gone(f"{file.name}: a symbolic link leads out of {self._folder.path}")
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


def _open_nonblocking(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # opening a pipe without a writer would block


def _make_error(error: OSError | ValueError) -> NeardupError:
    if isinstance(error, PermissionError):
        return Forbidden(str(error))
    gone = isinstance(error, ValueError) or error.errno in MISSING
    return Gone(str(error)) if gone else Transient(str(error), "store_error")


class TextFile:
    """The counterpart of `neardup.pages.s3.Bucket` for the URL texts:FILE; a path is START-END, in bytes.

    Raises Fatal where the file does not exist.
    """

    def __init__(self, path: Path, content: AnyContent) -> None:
        if not path.is_file():
            raise Fatal(f"{content.section}.url: no file {path}")
        self._path, self._max_bytes = path, content.max_bytes

    def begin(self, path: str, _: str | None) -> "Part":
        """A part of the file, read when its result is taken.  Raises Gone for a path that is not a range."""
        if not (found := RANGE.fullmatch(path)):
            raise Gone(f"{self._path} has nothing at {path!r}")
        return Part(self._path, int(found[1]), int(found[2]), self._max_bytes)


class Part(File):
    """The bytes [start, end) of a file."""

    def __init__(self, file: Path, start: int, end: int, max_bytes: int) -> None:
        self._file, self._start, self._size, self.max_bytes = file, start, end - start, max_bytes
        self.url = f"{file}/{start}-{end}"

    def result(self) -> tuple[bytes, dict[str, str]]:
        """The bytes, without headers; of a part that is too large only one more than is allowed.

        Raises Gone where the file has no such part, Transient.
        """
        size = min(self._size, self.max_bytes + 1)
        try:
            with self._file.open("rb") as file:
                file.seek(self._start)
                body = file.read(max(size, 0))
        except OSError as error:
            raise Transient(f"{self.url}: {error.strerror}", "store_error") from error
        if len(body) != size:
            raise Gone(f"{self.url}: no such part")
        return body, {}


class GivenPage(File):
    """A page that came with the request."""

    def __init__(self, body: bytes) -> None:
        self.url, self.max_bytes = "the given page", sys.maxsize
        self._body, self.body_bytes = body, len(body)

    def result(self) -> tuple[bytes, dict[str, str]]:
        """The page, without headers."""
        return self._body, {}


class Files:
    """The counterpart of `neardup.pages.s3.Transfers` for files; a file is read when its result is taken."""

    body_bytes = 0

    def __init__(self, control_socket: int) -> None:
        self._poll = select.poll()
        self._poll.register(control_socket, select.POLLIN)
        self._finished: deque[File] = deque()

    @property
    def under_way(self) -> int:
        """The number of files begun and not yet popped."""
        return len(self._finished)

    def begin(self, get: "Get | File") -> None:
        """Begin a file, which is finished at once."""
        assert isinstance(get, File)
        self._finished.append(get)

    def pop_finished(self) -> File | None:
        """A file, or None."""
        return self._finished.popleft() if self._finished else None

    def advance(self, *, wait: bool) -> bool:
        """With `wait`, block until the control socket is readable, unless there is a file; returns whether it is."""
        return bool(self._poll.poll(None if wait and not self._finished else 0))
