"""Object store reads: S3 and local files through one client, obstore.

obstore's own retries are off: `Fetcher.read` is the one place where a read is tried again.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from obstore.auth.boto3 import Boto3CredentialProvider
from obstore.exceptions import BaseError, NotModifiedError
from obstore.store import LocalStore, S3Store

from daemon.config import Content
from daemon.crew import Crew
from daemon.errors import Fatal, Gone, NeardupError, Transient
from daemon.records import Story
from daemon.retry import retried
from daemon.store_errors import first_line, translated

if TYPE_CHECKING:  # obstore's types are not there at run time
    from obstore.store import ClientConfig, S3Config

R = TypeVar("R")
Store = S3Store | LocalStore
REQUEST_TIMEOUT = timedelta(seconds=30)
CONNECT_TIMEOUT = timedelta(seconds=5)
COPIES = 3  # of a page while it is fetched: as it came, put together, and as Python has it
GUNZIP_STEP = 16_384  # bytes: each member costs a copy of what is left of its step, so never of the whole


class TooLarge(NeardupError):
    """The object is larger than content.max_bytes."""


@dataclass(frozen=True, slots=True)
class Document:
    """A fetched page: its bytes, and what the store says of it."""

    body: bytes
    content_type: str | None
    etag: str | None


def open_store(url: str, content: Content) -> Store:
    """file:PATH or s3://BUCKET/PREFIX -> a store, with the endpoint and region of [content].

    Raises Fatal where there is no such folder, or no AWS credentials.
    """
    parts = urlsplit(url)
    try:
        if parts.scheme == "file":
            root = Path(url.removeprefix("file://").removeprefix("file:"))
            if not root.is_dir():
                raise Fatal(f"content.url: no folder {root}")
            return LocalStore(root)
        return _s3(parts.netloc, parts.path.strip("/"), content)
    except (BaseError, ValueError) as error:
        raise Fatal(f"cannot open {url}: {first_line(error)}") from error


def _s3(bucket: str, prefix: str, content: Content) -> S3Store:
    config: S3Config = {"virtual_hosted_style_request": not content.path_style}
    if content.region:
        config["region"] = content.region
    if content.endpoint:
        scheme, _, host = content.endpoint.partition("://")
        config["endpoint"] = content.endpoint if content.path_style else f"{scheme}://{bucket}.{host}"
    client: ClientConfig = {
        "timeout": REQUEST_TIMEOUT,
        "connect_timeout": CONNECT_TIMEOUT,
        "allow_http": (content.endpoint or "").startswith("http://"),
    }
    try:
        credentials = Boto3CredentialProvider()
    except ValueError as error:
        raise Fatal("no AWS credentials found: set AWS_PROFILE, AWS_ACCESS_KEY_ID or an instance role") from error
    return S3Store(
        bucket,
        prefix=prefix or None,
        config=config,
        client_options=client,
        retry_config={"max_retries": 0},
        credential_provider=credentials,
    )


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
    """The pages of stories, read one by one; from any thread."""

    def __init__(self, content: Content) -> None:
        self._store = open_store(content.url, content)
        self._max_bytes = content.max_bytes

    def get(self, path: str, etag: str | None = None, hold: Callable[[int], None] = lambda _: None) -> Document | None:
        """A page; None where it still has this ETag.  Raises Gone, TooLarge, Forbidden, Transient.

        `hold` is told how many bytes of memory are taken for it: as many more, before they are.
        """
        try:
            with translated():
                result = self._store.get(path, options={"if_none_match": etag} if etag else None)
                if result.meta["size"] > self._max_bytes:
                    raise TooLarge("larger than content.max_bytes")
                hold(COPIES * result.meta["size"])
                body = bytes(result.bytes())
        except NotModifiedError:
            return None
        attributes = result.attributes
        if attributes.get("Content-Encoding", "").lower() == "gzip":
            hold(COPIES * self._max_bytes)
            body = _gunzip(body, self._max_bytes)
            hold(len(body) - COPIES * self._max_bytes)
        return Document(body, attributes.get("Content-Type"), result.meta["e_tag"])

    def get_once_more(self, path: str, hold: Callable[[int], None] = lambda _: None) -> Document:
        """A page that was there when it was listed or fingerprinted: that it is gone must be said twice.

        Raises as `get` does.
        """
        try:
            document = self.get(path, hold=hold)
        except Gone:
            document = self.get(path, hold=hold)
        assert document is not None  # without an ETag a page is always given
        return document


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


class RangeReader:
    """Reads one object by byte ranges, each a request of its own."""

    def __init__(self, store: Store, path: str, size: int) -> None:
        self.size = size
        self._store = store
        self._path = path

    async def __call__(self, start: int, end: int) -> bytes:
        """Bytes [start, end) of the object.  Raises Gone, Forbidden, Transient."""
        return await retried("listing", lambda: self._read(start, end))

    async def _read(self, start: int, end: int) -> bytes:
        with translated():
            read = bytes(await self._store.get_range_async(self._path, start=start, end=end))
        if len(read) != end - start:
            raise Transient(f"{self._path}: {len(read)} bytes where there were {end - start}", "truncated")
        return read


async def open_range_reader(url: str, content: Content) -> RangeReader:
    """A reader of the object at file:PATH or s3://BUCKET/KEY.  Raises Gone where there is none."""
    folder, _, name = url.rpartition("/")
    store = open_store(folder, content)
    with translated():
        meta = await store.head_async(name)
    return RangeReader(store, name, meta["size"])
