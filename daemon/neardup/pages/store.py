"""The pages of stories, in S3 or in a folder: found by their paths, and decompressed.

The page of a submitted story is in a folder beside the ledger until a listing says where the story's page is.
What fetches from S3 is imported where it is used, because its libraries are optional.
"""

import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from neardup.config import Content
from neardup.core.page import Page
from neardup.errors import Gone, TooLarge
from neardup.extras import needs
from neardup.pages.local import File, Files, Folder, Given
from neardup.pages.text_file import TextFile
from neardup.records import Story
from neardup.s3_errors import document_error

if TYPE_CHECKING:
    from neardup.pages.curl_multi import Transfers
    from neardup.pages.s3 import Bucket, Get

SUBMITTED = "submitted://"  # before the file name of a submitted page; no listed path has an empty segment
TEXT_ENDING = ".txt"  # of a submitted page that is a plain text, not markup
DOT_SEGMENTS = {".", ".."}  # would leave content.url
GUNZIP_STEP = 16_384  # bytes: each gzip member costs a copy of the rest of its step, and so never of the whole body


def open_store(content: Content) -> "Bucket | Folder | TextFile":
    """Open the store of content.url.

    Raises Fatal for a missing folder or file and for missing AWS credentials, Misuse if the libraries of S3 are not
    installed.
    """
    url = content.url
    if url.startswith("texts:"):
        return TextFile(Path(url.removeprefix("texts:")), content.max_bytes)
    if url.startswith("file:"):
        return Folder(Path(url.removeprefix("file://").removeprefix("file:")), content.max_bytes)
    with needs("aws", f"content.url = {url!r}"):
        from neardup.pages.s3 import Bucket  # noqa: PLC0415 - loads pycurl

    return Bucket(url, content)


def open_transfers(content: Content, control_socket: int) -> "Transfers | Files":
    """What carries out the GETs of this store; see `neardup.pages.curl_multi.Transfers`."""
    if not content.url.startswith("s3:"):
        return Files(control_socket)
    from neardup.pages.curl_multi import Transfers  # noqa: PLC0415 - loads pycurl

    return Transfers(control_socket)


def path_of(content: Content, story: Story) -> str:
    """A story's page, as a path below content.url."""
    return story.path or content.key.format(language=story.language, id=story.id)


def location_of(content: Content, story: Story, submitted: Path | None = None) -> str:
    """Where a story's page is: the path of a file, or the s3:// URL of an object; `submitted` as for `Pages`."""
    if submitted is not None and story.path is not None and story.path.startswith(SUBMITTED):
        return f"{submitted}/{story.path.removeprefix(SUBMITTED)}"
    return f"{content.url.removeprefix('file://').removeprefix('file:').rstrip('/')}/{path_of(content, story)}"


class Pages:
    """The pages below content.url; `begin` makes a GET, `curl_multi` performs it, `page_of` returns its page.

    `submitted` is the folder of the submitted pages, which need not exist yet.
    """

    def __init__(self, content: Content, submitted: Path | None = None) -> None:
        self._store = open_store(content)
        self._submitted = submitted
        self._max_bytes = content.max_bytes

    def begin(self, path: str, etag: str | None = None) -> "Get | File":
        """A GET of a page, conditional if its last known ETag is given.

        Raises Gone for a path that cannot exist there, Transient where the credentials cannot be renewed.
        """
        if not DOT_SEGMENTS.isdisjoint(path.split("/")):
            raise Gone(f"content.url has nothing at {path!r}")
        if path.startswith(SUBMITTED):
            return self._begin_submitted(path.removeprefix(SUBMITTED), etag)
        return self._store.begin(path, etag)

    def _begin_submitted(self, name: str, etag: str | None) -> File:
        if self._submitted is None or not self._submitted.is_dir():
            raise Gone(f"no submitted page {name}")
        file = Folder(self._submitted, self._max_bytes).begin(name, etag)
        file.is_text = name.endswith(TEXT_ENDING)
        return file

    def page_of(self, get: "Get | File | Given") -> Page | None:
        """The page that a finished GET returned; None where it still has the ETag.

        Raises Gone, TooLarge, Forbidden, StoreDown, Fatal, Transient.
        """
        response = get.result()
        if response is None:
            return None
        body, headers = response
        if headers.get("content-encoding", "").lower() == "gzip":
            body = _gunzip(body, self._max_bytes)
            if error := document_error(get.url, body):
                raise error
        return Page(body, headers.get("content-type"), headers.get("etag"), isinstance(get, File) and get.is_text)


def _gunzip(body: bytes, limit: int) -> bytes:
    """Decompress all members; what is not a whole gzip file is returned as it is, for `core.text` to classify."""
    whole, member, inflater, inside = bytearray(), bytearray(), _inflater(), False
    for start in range(0, len(body), GUNZIP_STEP):
        rest = body[start : start + GUNZIP_STEP]
        while rest:
            inside = True
            try:
                member += inflater.decompress(rest, limit + 1 - len(whole) - len(member))
            except zlib.error:
                return bytes(whole) or body  # gzip(1), too, ignores trailing garbage
            if len(whole) + len(member) > limit:
                raise TooLarge("larger than content.max_bytes")
            rest = inflater.unused_data
            if inflater.eof:
                whole += member
                member, inflater, inside = bytearray(), _inflater(), False
    return body if inside else bytes(whole)


def _inflater() -> "zlib._Decompress":
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
