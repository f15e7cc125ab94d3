"""Pages by their stories: from S3 or from files, whole, and unzipped."""

import zlib
from pathlib import Path

from neardup.config import Content
from neardup.core.page import Page
from neardup.errors import Gone, TooLarge
from neardup.pages.local import File, Folder
from neardup.pages.s3 import Bucket, Get
from neardup.records import Story

STEPS = {".", ".."}  # would lead elsewhere
GUNZIP_STEP = 16_384  # bytes: each member costs a copy of what is left of its step, so never of the whole


def open_store(content: Content) -> Bucket | Folder:
    """Where content.url says that the pages are.  Raises Fatal for no such folder, and for no AWS credentials."""
    url = content.url
    if url.startswith("file:"):
        return Folder(Path(url.removeprefix("file://").removeprefix("file:")), content.max_bytes)
    return Bucket(url, content)


def path_of(content: Content, story: Story) -> str:
    """Where a story's page is, below content.url."""
    return story.path or content.key.format(language=story.language, id=story.id)


class Pages:
    """The pages of stories: each begun, performed by `neardup.pages.curl_multi`, and taken."""

    def __init__(self, content: Content) -> None:
        self._place = open_store(content)
        self._max_bytes = content.max_bytes

    def begin(self, path: str, etag: str | None = None) -> Get | File:
        """A GET of a page; of one that no longer has this ETag, if one is given.

        Raises Gone for what is no path there, Transient where there are no credentials for now.
        """
        if not STEPS.isdisjoint(path.split("/")):
            raise Gone(f"content.url has nothing at {path!r}")
        return self._place.begin(path, etag)

    def page_of(self, get: Get | File) -> Page | None:
        """The page that a GET gave; None where it still has the ETag.

        Raises Gone, TooLarge, Forbidden, StoreDown, Fatal, Transient.
        """
        found = get.result()
        if found is None:
            return None
        body, headers = found
        if headers.get("content-encoding", "").lower() == "gzip":
            body = _gunzip(body, self._max_bytes)
        return Page(body, headers.get("content-type"), headers.get("etag"))


def _gunzip(body: bytes, limit: int) -> bytes:
    """All members; what is no whole gzip file is given back, for `extract` to say what it is."""
    whole, member, inflater, inside = bytearray(), bytearray(), _inflater(), False
    for start in range(0, len(body), GUNZIP_STEP):
        rest = body[start : start + GUNZIP_STEP]
        while rest:
            inside = True
            try:
                member += inflater.decompress(rest, limit + 1 - len(whole) - len(member))
            except zlib.error:
                return bytes(whole) or body  # gzip, too, takes no notice of what stands behind its members
            if len(whole) + len(member) > limit:
                raise TooLarge("larger than content.max_bytes")
            rest = inflater.unused_data
            if inflater.eof:
                whole += member
                member, inflater, inside = bytearray(), _inflater(), False
    return body if inside else bytes(whole)


def _inflater() -> "zlib._Decompress":
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
