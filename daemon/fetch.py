"""Pages by their stories: from S3 or from files, whole, and unzipped."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from daemon.bucket import Bucket, Get
from daemon.config import Content
from daemon.crew import Crew
from daemon.errors import Gone, TooLarge
from daemon.folder import File, Folder
from daemon.records import Story
from daemon.retry import retried

R = TypeVar("R")
STEPS = {".", ".."}  # would lead elsewhere
GUNZIP_STEP = 16_384  # bytes: each member costs a copy of what is left of its step, so never of the whole


@dataclass(frozen=True, slots=True)
class Document:
    """A fetched page: its bytes, and what the store says of it."""

    body: bytes
    content_type: str | None
    etag: str | None


def open_place(content: Content) -> Bucket | Folder:
    """Where content.url says that the pages are.  Raises Fatal for no such folder, and for no AWS credentials."""
    url = content.url
    if url.startswith("file:"):
        return Folder(Path(url.removeprefix("file://").removeprefix("file:")), content.max_bytes)
    return Bucket(url, content)


def path_of(content: Content, story: Story) -> str:
    """Where a story's page is, below content.url."""
    return story.path or content.key.format(language=story.language, id=story.id)


class Fetcher:
    """Reads the pages of stories, on a crew of at most `most` threads."""

    def __init__(self, content: Content, most: int) -> None:
        self.crew = Crew(most)
        self._content = content
        self._pages = Pages(content)

    async def get(self, story: Story) -> Document:
        """A story's page.  Raises as `read` does."""
        return await self.read(story, lambda document: document)

    async def read(self, story: Story, work: Callable[[Document], R]) -> R:
        """`work(page)` of a story's page, on the thread that fetched it.

        Raises what `work` raises; Gone, TooLarge, Forbidden, and Transient when the attempts are used up.
        """

        def fetch_and_work() -> R:
            return work(self._pages.get_once_more(path_of(self._content, story)))

        return await retried("fetch", lambda: self.crew(fetch_and_work), story=story.id)


class Pages:
    """The pages of stories: each got while it is waited for, from any thread, or begun here and taken later."""

    def __init__(self, content: Content) -> None:
        self._place = open_place(content)
        self._max_bytes = content.max_bytes

    def get(self, path: str, etag: str | None = None) -> Document | None:
        """A page; None where it still has this ETag.  Raises Gone, TooLarge, Forbidden, StoreDown, Fatal, Transient."""
        get = self.begin(path, etag)
        get.perform()
        return self.taken(get)

    def get_once_more(self, path: str) -> Document:
        """A page that was there when it was listed or fingerprinted: that it is gone must be said twice.

        Raises as `get` does.
        """
        try:
            document = self.get(path)
        except Gone:
            document = self.get(path)
        assert document is not None  # without an ETag a page is always given
        return document

    def begin(self, path: str, etag: str | None = None) -> Get | File:
        """A GET of a page, for `taken` when it was performed.  Raises Gone for what is no path there, and Transient."""
        if not STEPS.isdisjoint(path.split("/")):
            raise Gone(f"content.url has nothing at {path!r}")
        return self._place.begin(path, etag)

    def taken(self, get: Get | File) -> Document | None:
        """What a GET gave, as `get` gives and raises it."""
        found = get.result()
        if found is None:
            return None
        body, headers = found
        if headers.get("content-encoding", "").lower() == "gzip":
            body = _gunzip(body, self._max_bytes)
        return Document(body, headers.get("content-type"), headers.get("etag"))


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
