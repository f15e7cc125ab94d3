"""Stories listed by an Athena query.

The query runs once; its result, a CSV file in S3, is then read by byte ranges, so that no connection stays open for
hours and an interrupted backfill continues in the same result.  Athena expects string parameters in single quotes.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import aioboto3  # type: ignore[import-untyped]
import xxhash
from aiobotocore.config import AioConfig  # type: ignore[import-untyped]
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, NoCredentialsError
from botocore.exceptions import ConnectionError as BotoConnectionError

from neardup.config import Content, Reference, Source
from neardup.core.columns import ListedBlock
from neardup.core.languages import Languages
from neardup.errors import Fatal, Gone, Transient
from neardup.records import Checkpoint
from neardup.retry import retry_call
from neardup.s3 import NO_CREDENTIALS
from neardup.s3.objects import PlainSession, open_range_reader
from neardup.source.parse import parse_rows
from neardup.source.rows import OF_STORIES, OF_WORKS, Reader, read_csv_blocks
from neardup.telemetry.log import log

POLL_SECONDS = 0.5
POLL_MAX_SECONDS = 10.0
POLL_GROWTH = 1.5
TRANSIENT = ("Throttling", "TooManyRequests", "InternalServer", "ServiceUnavailable", "RequestTimeout")
NO_RETRIES = {"mode": "standard", "total_max_attempts": 1}  # `retry_call` repeats a call, with a line in the log

Began = Callable[[Checkpoint], Awaitable[None]]
Queries = Source | Reference  # the sections of a configuration


class QueryFailed(Transient):
    """The query failed; a new one may succeed."""


class Athena:
    """The stories that queries list.

    `content` has their pages, and says how the result is read; `began` is called with a checkpoint as soon as a query
    runs.  The stories are works if the queries are those of a reference.
    """

    def __init__(self, queries: Queries, content: Content, languages: Languages, began: Began) -> None:
        self._queries = queries
        self._of_reference = isinstance(queries, Reference)
        self._content = content
        self._languages = languages
        self._began = began
        self.name = ""
        self.size = 0

    async def list_blocks(self, *, since: int | None, resume: Checkpoint | None) -> AsyncIterator[ListedBlock]:
        """The stories of backfill_sql, or of daily_sql with `since` for its `?`.

        Continues from `resume` if that is a checkpoint of this query and Athena still has the result.  Raises Fatal
        with Athena's reason for a query that fails, Transient if a later attempt may succeed, Misuse for a result that
        lacks a required column.
        """
        sql = self._queries.backfill_sql if since is None else self._queries.daily_sql
        parameters = []
        if since is not None:
            parameters.append(f"'{datetime.fromtimestamp(since / 1000, UTC).isoformat(timespec='milliseconds')}'")
        read, start = await self._rejoin(sql, resume) if since is None and resume else (None, 0)
        if read is None:
            read = await self._query(sql, parameters)
        self.size = read.size
        columns = OF_WORKS if self._of_reference else OF_STORIES
        rows = read_csv_blocks(read, "the result of the Athena query", start, columns)
        async for block in parse_rows(rows, self._languages, self._content.key, of_reference=self._of_reference):
            yield block

    async def read_columns(self) -> list[str]:
        """The names of the columns of backfill_sql."""
        read = await self._query(f"SELECT * FROM ({self._queries.backfill_sql}) LIMIT 0", [])
        head = await read(0, read.size)
        return [name.strip('"\r') for name in head.decode().partition("\n")[0].split(",")]

    async def _rejoin(self, sql: str, resume: Checkpoint) -> tuple[Reader | None, int]:
        """The result of an earlier query and the position to continue from; None if it is gone."""
        execution_id, _, digest = resume.listing.partition(":")
        if digest != self._digest(sql):
            return None, 0
        try:
            reader = await self._await_result(execution_id)
        except (Gone, Fatal, QueryFailed) as error:
            log.warning(
                "the earlier query's result is gone, starting a new query", execution_id=execution_id, why=str(error)
            )
            return None, 0
        self.name = resume.listing
        log.info("continuing in the earlier query's result", execution_id=execution_id, position=resume.position)
        return reader, resume.position

    async def _query(self, sql: str, parameters: list[str]) -> Reader:
        optional = {"ExecutionParameters": parameters} if parameters else {}
        async with self._make_client() as athena:
            started = await _ask(
                athena.start_query_execution,
                QueryString=sql,
                QueryExecutionContext={"Database": self._queries.database},
                WorkGroup=self._queries.workgroup,
                ResultConfiguration={"OutputLocation": self._queries.output},
                ClientRequestToken=uuid4().hex,  # so that a call which is repeated starts no second query
                **optional,
            )
        execution_id = started["QueryExecutionId"]
        self.name = f"{execution_id}:{self._digest(sql)}"
        log.info("Athena query started", execution_id=execution_id)
        await self._began(Checkpoint(self.name, 0))
        return await self._await_result(execution_id)

    async def _await_result(self, execution_id: str) -> Reader:
        """Wait until a query has succeeded, then open its result."""
        pause = POLL_SECONDS
        async with self._make_client() as athena:
            while True:
                answer = await _ask(athena.get_query_execution, QueryExecutionId=execution_id)
                execution = answer["QueryExecution"]
                if _has_succeeded(execution):
                    break
                await asyncio.sleep(pause)
                pause = min(pause * POLL_GROWTH, POLL_MAX_SECONDS)
        url = execution["ResultConfiguration"]["OutputLocation"]
        return await _require_whole(await open_range_reader(url, self._content), execution_id)

    def _make_client(self) -> Any:
        return aioboto3.Session().client(
            "athena",
            region_name=self._content.region,
            config=AioConfig(http_session_cls=PlainSession, retries=NO_RETRIES),
        )

    def _digest(self, sql: str) -> str:
        return xxhash.xxh3_64_hexdigest(f"{self._queries.database}\n{sql}".encode())


async def _ask(call: Callable[..., Awaitable[dict[str, Any]]], **parameters: object) -> dict[str, Any]:
    """What Athena answers to an API call, which is repeated where that may help.  Raises Transient and Fatal."""

    async def attempt() -> dict[str, Any]:
        with translate_errors():
            return await call(**parameters)

    return await retry_call("athena", attempt)


async def _require_whole(read: Reader, execution_id: str) -> Reader:
    """The result, if it ends with a line end, as all of Athena's do.  Raises QueryFailed."""
    if not read.size or await read(read.size - 1, read.size) != b"\n":
        raise QueryFailed(f"the result of the Athena query {execution_id} ends early", "truncated")
    return read


def _has_succeeded(execution: dict[str, Any]) -> bool:
    """Whether a query has succeeded; False while it runs.  Raises Transient or Fatal if it failed."""
    status = execution["Status"]
    if status["State"] in ("QUEUED", "RUNNING"):
        return False
    if status["State"] == "SUCCEEDED":
        return True
    reason = status.get("StateChangeReason", "Athena gives no reason")
    message = f"Athena query {execution['QueryExecutionId']} {status['State'].lower()}: {reason}"
    if status.get("AthenaError", {}).get("Retryable"):
        raise QueryFailed(message, "athena_failed")
    raise Fatal(message)


@contextmanager
def translate_errors() -> Iterator[None]:
    """Errors of botocore -> Transient if a later attempt may succeed, else Fatal."""
    try:
        yield
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        if code.startswith(TRANSIENT) or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise Transient(f"Athena: {error}", "athena_throttled") from error
        raise Fatal(f"Athena: {error}") from error
    except NoCredentialsError as error:
        raise Fatal(NO_CREDENTIALS) from error
    except (BotoConnectionError, HTTPClientError) as error:
        raise Transient(f"Athena does not answer: {error}", "athena_unreachable") from error
    except BotoCoreError as error:
        raise Fatal(f"Athena: {error}") from error
