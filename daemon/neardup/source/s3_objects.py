"""Objects of a store that are read by ranges or written, by obstore; pages are `neardup.pages.store`'s.

obstore's own retries are off: `retried` is the one place where a request is made again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from obstore.auth.boto3 import Boto3CredentialProvider
from obstore.exceptions import BaseError, NotFoundError, PermissionDeniedError, UnauthenticatedError
from obstore.store import LocalStore, S3Store

from neardup.config import Content
from neardup.errors import Fatal, Gone, NeardupError, Transient
from neardup.pages import s3
from neardup.pages.s3_errors import Forbidden, meant
from neardup.retry import retried

if TYPE_CHECKING:  # obstore's types are not there at run time
    from obstore.store import ClientConfig, S3Config

Store = S3Store | LocalStore

# What obstore's words say of the cause.
SIGNS = {"TimedOut": "timeout", "503 Service": "slow_down", "429 Too": "slow_down"}


def open_store(url: str, content: Content) -> Store:
    """file:PATH or s3://BUCKET/PREFIX -> a store, with the endpoint and region of [content].

    Raises Fatal where there is no such folder, or no AWS credentials.
    """
    parts = urlsplit(url)
    try:
        if parts.scheme == "file":
            root = Path(url.removeprefix("file://").removeprefix("file:"))
            if not root.is_dir():
                raise Fatal(f"no folder {root}")
            return LocalStore(root)
        return _s3(parts.netloc, parts.path.strip("/"), content)
    except (BaseError, ValueError) as error:
        raise Fatal(f"cannot open {url}: {_first_line(error)}") from error


def _s3(name: str, prefix: str, content: Content) -> S3Store:
    config: S3Config = {"virtual_hosted_style_request": not content.path_style}
    if content.region:
        config["region"] = content.region
    if content.endpoint:
        scheme, _, host = content.endpoint.partition("://")
        config["endpoint"] = content.endpoint if content.path_style else f"{scheme}://{name}.{host}"
    client: ClientConfig = {
        "timeout": timedelta(seconds=s3.REQUEST_SECONDS),
        "connect_timeout": timedelta(seconds=s3.CONNECT_SECONDS),
        "allow_http": (content.endpoint or "").startswith("http://"),
    }
    try:
        credentials = Boto3CredentialProvider()
    except ValueError as error:
        raise Fatal(s3.NO_CREDENTIALS) from error
    return S3Store(
        name,
        prefix=prefix or None,
        config=config,
        client_options=client,
        retry_config={"max_retries": 0},
        credential_provider=credentials,
    )


@contextmanager
def translated() -> Iterator[None]:
    """Obstore's errors -> ours."""
    try:
        yield
    except (BaseError, OSError, ValueError) as error:  # ValueError: no store has such a path
        raise _ours(error) from error


def _ours(error: Exception) -> NeardupError:
    text = str(error)
    message = _first_line(error).partition(": <")[0]
    if isinstance(error, NotFoundError | FileNotFoundError | ValueError):
        return meant(message, text, Gone)
    if isinstance(error, PermissionDeniedError | UnauthenticatedError | PermissionError):
        return meant(message, text, Forbidden)
    return meant(message, text, next((word for sign, word in SIGNS.items() if sign in text), "store_error"))


def _first_line(error: Exception) -> str:
    """Obstore's words, without the debugging below them."""
    return str(error).partition("\n")[0]


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
