"""Reads S3 objects by byte ranges, and uploads files.  Story pages are read by `neardup.pages.store`.

botocore's own retries are off: `retry_call` is the one place that repeats a request.  aioboto3's managed upload is not
used: it reads up to 100 parts ahead, and never returns if an upload of more parts fails.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import aioboto3  # type: ignore[import-untyped]
import aiohttp
from aiobotocore.config import AioConfig  # type: ignore[import-untyped]
from aiobotocore.httpsession import AIOHTTPSession  # type: ignore[import-untyped]
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    ReadTimeoutError,
)
from botocore.exceptions import ConnectionError as BotoConnectionError

from neardup.config import Content
from neardup.errors import Fatal, Transient
from neardup.retry import retry_call
from neardup.s3 import NO_CREDENTIALS, make_error

CONNECT_SECONDS = 15.0
READ_SECONDS = 30.0
PART_BYTES = 8 * 1024 * 1024


class PlainSession(AIOHTTPSession):  # type: ignore[misc]
    """An HTTP session that follows no redirects and repeats no request, both of which aiohttp does by itself.

    It would follow redirects to any host, with the session token and the signed headers; botocore makes an error of
    one, as of any other response.  A request that is repeated has a line in the log only if `retry_call` repeats it.
    """

    async def _get_session(self, proxy_url: str | None) -> Any:
        session = await super()._get_session(proxy_url)
        session._retry_connection = False  # noqa: SLF001 - aiohttp has no public option
        return SimpleNamespace(request=partial(session.request, allow_redirects=False))


class S3Object:
    """The object at s3://BUCKET/KEY, by the settings of [content].  Raises Fatal for an unknown AWS profile."""

    def __init__(self, url: str, content: Content) -> None:
        parts = urlsplit(url)
        self.url = url
        self.name = {"Bucket": parts.netloc, "Key": parts.path.lstrip("/")}
        with _translate_errors(url):  # AWS_PROFILE may name a profile that does not exist
            self._session = aioboto3.Session(region_name=content.region or os.environ.get("AWS_REGION"))
        self._endpoint = content.endpoint
        self._config = AioConfig(
            http_session_cls=PlainSession,
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retries={"mode": "standard", "total_max_attempts": 1},
            s3={"addressing_style": "path" if content.path_style else "virtual"},
            request_checksum_calculation="when_required",  # not every store that speaks S3 knows the newer ones
            response_checksum_validation="when_required",
        )

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Any]:
        """Open a client, which takes 6 ms.  Raises botocore's errors as neardup's."""
        with _translate_errors(self.url):
            async with self._session.client("s3", endpoint_url=self._endpoint, config=self._config) as client:
                yield client


class RangeReader:
    """Reads one object of `size` bytes by byte ranges, each a request of its own."""

    def __init__(self, source: S3Object, size: int) -> None:
        self.size = size
        self._source = source

    async def __call__(self, start: int, end: int) -> bytes:
        """Bytes [start, end) of the object.  Raises Gone, Forbidden, StoreDown, Fatal, Transient."""
        return await retry_call("listing", lambda: self._read(start, end))

    async def _read(self, start: int, end: int) -> bytes:
        async with self._source.client() as client:
            answer = await client.get_object(**self._source.name, Range=f"bytes={start}-{end - 1}")
            async with answer["Body"]:  # closes the connection if it fails
                read = bytes(await answer["Body"].read())
        if len(read) != end - start:
            raise Transient(f"{self._source.url}: {len(read)} bytes instead of {end - start}", "truncated")
        return read


async def open_range_reader(url: str, content: Content) -> RangeReader:
    """Open a reader of the object at s3://BUCKET/KEY.  Raises Gone if there is none, else as the reader does."""
    source = S3Object(url, content)

    async def size() -> int:
        async with source.client() as client:
            return int((await client.head_object(**source.name))["ContentLength"])

    return RangeReader(source, await retry_call("listing", size))


async def upload(file: Path, url: str, content: Content) -> None:
    """Upload a file to s3://BUCKET/KEY, whole or not at all.  Raises Forbidden, StoreDown, Fatal, Transient."""
    target = S3Object(url, content)

    async def put() -> None:
        async with target.client() as client:
            body = await asyncio.to_thread(_read_part, file, 0)
            if len(body) < PART_BYTES:
                await client.put_object(**target.name, Body=body)
            else:
                await _put_parts(client, target.name, file)

    await retry_call("export", put)


async def _put_parts(client: Any, name: dict[str, str], file: Path) -> None:
    """Upload a file in parts; if one fails, the upload is aborted and no object appears."""
    upload = name | {"UploadId": (await client.create_multipart_upload(**name))["UploadId"]}
    parts: list[dict[str, object]] = []
    try:
        while body := await asyncio.to_thread(_read_part, file, len(parts)):
            number = len(parts) + 1
            answer = await client.upload_part(**upload, PartNumber=number, Body=body)
            parts.append({"ETag": answer["ETag"], "PartNumber": number})
        await client.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
    except BaseException:
        with suppress(BotoCoreError, ClientError):  # the first error is the one to report
            await client.abort_multipart_upload(**upload)
        raise


def _read_part(file: Path, number: int) -> bytes:
    """Read part `number`, counted from 0, of a file; empty after its end."""
    with file.open("rb") as opened:
        opened.seek(number * PART_BYTES)
        return opened.read(PART_BYTES)


@contextmanager
def _translate_errors(url: str) -> Iterator[None]:
    """Translate errors of botocore and aiohttp into Gone, Forbidden, StoreDown, Fatal and Transient."""
    try:
        yield
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        raise make_error(url, status, "" if code.isdigit() else code) from error  # for a HEAD it is the status
    except NoCredentialsError as error:
        raise Fatal(NO_CREDENTIALS) from error
    except (ConnectTimeoutError, ReadTimeoutError) as error:
        raise Transient(_describe(url, error), "timeout") from error
    except (
        BotoConnectionError,
        CredentialRetrievalError,
        HTTPClientError,
        IncompleteReadError,
        aiohttp.ClientError,
    ) as error:
        raise Transient(_describe(url, error), "store_error") from error
    except BotoCoreError as error:
        raise Fatal(_describe(url, error)) from error


def _describe(url: str, error: Exception) -> str:
    return f"{url}: {' '.join(str(error).split())}"
