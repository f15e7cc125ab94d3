"""Laws: an Athena listing yields every row of its query once, from its checkpoint on, or ends with Athena's reason.

moto runs no SQL, so a stub stands for Athena: a query is queued, runs, and writes a CSV with a quoted header to S3;
string parameters need their quotes.

The Athena client and the reader of its result follow no redirect to another host.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, suppress
from typing import Any

import pytest
from neardup.config import Content, Source
from neardup.core.languages import SHIPPED
from neardup.errors import Fatal, Misuse, NeardupError, Transient
from neardup.records import Checkpoint, ListedRow, Story
from neardup.s3.objects import RangeReader, S3Object
from neardup.source import athena as athena_module
from neardup.source import list_rows
from neardup.source.athena import Athena

from tests.support.servers import REGION, Aws, serve_posts
from tests.support.small_servers import ROWS, AthenaStub, RawServer, raw_server

BACKFILL = "SELECT * FROM stories"
DAILY = "SELECT * FROM stories WHERE updated_at >= from_iso8601_timestamp(?)"
SOURCE = Source(kind="athena", database="db", output="s3://results/neardup/", backfill_sql=BACKFILL, daily_sql=DAILY)
STATUSES = ["301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"]


@pytest.fixture
async def stub(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AthenaStub]:
    monkeypatch.setattr(athena_module, "POLL_SECONDS", 0.001)
    aws.bucket("results")
    made = AthenaStub(aws)
    async with serve_posts(made.answer) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL_ATHENA", endpoint)
        yield made


@pytest.fixture
def source(aws: Aws) -> Callable[[], tuple[Athena, list[Checkpoint]]]:
    content = Content(url="s3://stories", endpoint=aws.endpoint, region=REGION, path_style=True)

    def make() -> tuple[Athena, list[Checkpoint]]:
        begun: list[Checkpoint] = []

        async def began(checkpoint: Checkpoint) -> None:
            begun.append(checkpoint)

        return Athena(SOURCE, content, SHIPPED, began), begun

    return make


Make = Callable[[], tuple[Athena, list[Checkpoint]]]


async def stories(
    athena: Athena, since: int | None = None, resume: Checkpoint | None = None, limit: int | None = None
) -> list[ListedRow]:
    found: list[ListedRow] = []
    async with aclosing(list_rows(athena, since=since, resume=resume)) as listing:  # type: ignore[type-var]
        async for story in listing:
            found.append(story)
            if len(found) == limit:
                break
    return found


async def test_every_row_is_listed_once_with_its_values(stub: AthenaStub, source: Make) -> None:
    athena, begun = source()
    found = await stories(athena)
    assert [story.id for story in found if isinstance(story, Story)] == list(range(500))
    first = found[0]
    assert isinstance(first, Story) and first.title == ROWS[0]["title"] and first.updated_at == 1793527200000
    assert [checkpoint.position for checkpoint in begun] == [0], "the checkpoint is stored before the result is read"
    assert stub.queries["query-0"]["QueryExecutionContext"] == {"Database": "db"}


async def test_an_interrupted_listing_continues_in_the_same_result(stub: AthenaStub, source: Make) -> None:
    first, begun = source()
    some = await stories(first, limit=200)
    again, _ = source()
    rest = await stories(again, resume=Checkpoint(begun[0].listing, some[-1].position))
    assert [story.key for story in some[:-1] + rest] == [str(n) for n in range(500)]
    assert len(stub.queries) == 1, "no new query"


async def test_a_result_gone_or_of_another_query_is_queried_again(stub: AthenaStub, source: Make) -> None:
    for listing in ("query-77:" + source()[0]._digest(BACKFILL), "query-0:of-another-sql"):
        athena, _ = source()
        found = await stories(athena, resume=Checkpoint(listing, 1000))
        assert len(found) == 500, listing


async def test_daily_passes_the_watermark_as_a_quoted_string(stub: AthenaStub, source: Make) -> None:
    athena, _ = source()
    found = await stories(athena, since=1795600800000)  # 2026-11-25T10:00Z
    assert stub.queries["query-0"]["ExecutionParameters"] == ["'2026-11-25T10:00:00.000+00:00'"]
    days = {story.updated_at for story in found if isinstance(story, Story)}
    assert min(days) == 1795600800000  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("ends", "retryable", "error"), [("FAILED", False, Fatal), ("CANCELLED", False, Fatal), ("FAILED", True, Transient)]
)
async def test_a_failed_query_reports_its_reason(
    stub: AthenaStub, source: Make, ends: str, retryable: bool, error: type[Exception]
) -> None:
    stub.ends, stub.reason, stub.retryable = ends, "SYNTAX_ERROR: line 1:8: no such column", retryable
    with pytest.raises(error, match=f"query-0 {ends.lower()}: SYNTAX_ERROR"):
        await stories(source()[0])


async def test_a_failed_query_is_replaced_by_a_new_one(stub: AthenaStub, source: Make) -> None:
    stub.ends, stub.retryable = "FAILED", True
    first, begun = source()
    with pytest.raises(Transient):
        await stories(first)
    stub.ends = "SUCCEEDED"
    stub.failed.add("query-0")
    assert len(await stories(source()[0], resume=begun[0])) == 500
    assert len(stub.queries) == 2, "a failed query is replaced"


async def test_a_result_that_lacks_a_column_is_refused(stub: AthenaStub, source: Make) -> None:
    stub.columns = ["id", "title"]
    with pytest.raises(Misuse, match="no column language"):
        await stories(source()[0])


async def test_an_empty_result_lists_nothing(stub: AthenaStub, source: Make) -> None:
    stub.rows = []
    assert await stories(source()[0]) == []


async def test_the_doctor_reads_the_columns(stub: AthenaStub, source: Make) -> None:
    assert await source()[0].read_columns() == ["id", "language", "title", "updated_at"]
    assert stub.queries["query-0"]["QueryString"] == f"SELECT * FROM ({BACKFILL}) LIMIT 0"


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
@pytest.mark.parametrize("extra", ["", "x-amz-bucket-region: elsewhere\r\n"])
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
        await Athena(SOURCE, Content(url="file:.", region="eu-west-1"), SHIPPED, never).read_columns()
    assert store.requests and not other.requests, f"the request followed a redirect: {other.requests!r}"
