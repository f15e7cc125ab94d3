"""Law: the Athena client and the reader of its result follow no redirect to another host."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from neardup.config import Content, Source
from neardup.core.languages import SHIPPED
from neardup.errors import NeardupError
from neardup.s3.objects import RangeReader, S3Object
from neardup.source.athena import Athena

from tests.support.raw_server import RawServer, raw_server

SOURCE = Source(
    kind="athena", database="db", output="s3://results/", backfill_sql="SELECT 1", daily_sql="SELECT 1 WHERE id > ?"
)
BUCKET_REGION = "x-amz-bucket-region: elsewhere\r\n"
STATUSES = ["301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"]


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[RawServer, RawServer]]:
    """The server that redirects, and the one it leads to; no attempt is repeated."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setattr("neardup.retry.ATTEMPTS", 1)
    with raw_server() as store, raw_server() as other:
        yield store, other


async def never(_: object) -> Any:
    raise AssertionError("the query began")


def redirect(status: str, other: RawServer, extra: str = "") -> bytes:
    address = f"http://127.0.0.1:{other.port}"
    body = f"<Error><Code>PermanentRedirect</Code><Endpoint>127.0.0.1:{other.port}</Endpoint></Error>"
    head = f"HTTP/1.1 {status}\r\nLocation: {address}/results/q.csv\r\n{extra}Content-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n{body}".encode()


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("extra", ["", BUCKET_REGION])
async def test_the_result_is_read_from_its_store_alone(
    servers: tuple[RawServer, RawServer], status: str, extra: str
) -> None:
    store, other = servers
    store.answer = redirect(status, other, extra)
    other.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\n"
    content = Content(url="file:.", endpoint=f"http://127.0.0.1:{store.port}", region="eu-west-1", path_style=True)
    with suppress(NeardupError):
        await RangeReader(S3Object("s3://results/q.csv", content), 100)(0, 10)
    assert store.requests, "the store was not asked"
    assert not other.requests, f"the request followed a redirect: {other.requests[0]!r}"


@pytest.mark.parametrize("status", STATUSES)
async def test_athena_is_asked_at_its_endpoint_alone(
    servers: tuple[RawServer, RawServer], status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = servers
    store.answer = redirect(status, other)
    monkeypatch.setenv("AWS_ENDPOINT_URL_ATHENA", f"http://127.0.0.1:{store.port}")
    with pytest.raises(NeardupError):
        await Athena(SOURCE, "eu-west-1", SHIPPED, never, never).read_columns()
    assert store.requests and not other.requests, f"the request followed a redirect: {other.requests!r}"
