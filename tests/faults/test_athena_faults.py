"""Athena faults: a run lists all stories, or it ends with one error line and keeps its watermark for the next run."""

import csv
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st
from neardup.config import Content
from neardup.errors import Fatal, Misuse, NeardupError, Transient
from neardup.ledger import read, runs
from neardup.retry import ATTEMPTS
from neardup.s3.objects import open_range_reader
from neardup.source import athena as athena_module
from neardup.source.athena import QueryFailed, _require_whole
from neardup.source.rows import read_csv

from tests.support.command import COMMON
from tests.support.faults.bed import BUCKET, Bed, State, configuration, impatient
from tests.support.faults.fault_proxy import Fault, Proxy, proxied
from tests.support.faults.fault_table import AssertSameState, Said, count_retries, find_said
from tests.support.paths import SAMPLES
from tests.support.sampling import CHAOS, crossed
from tests.support.servers import REGION, Aws, serve_posts
from tests.support.small_servers import AthenaStub

CONFIG = f"""
[source]
kind = "athena"
database = "db"
output = "s3://results/neardup/"
backfill_sql = "SELECT * FROM stories"
daily_sql = "SELECT * FROM stories WHERE updated_at >= from_iso8601_timestamp(?)"
[content]
url = "file:{SAMPLES}/stories"
endpoint = "{{endpoint}}"
region = "{REGION}"
path_style = true
"""
pytestmark = pytest.mark.asyncio(loop_scope="module")
RESULT = "/results/neardup/query-0.csv"
with (SAMPLES / "manifest.csv").open(encoding="utf-8") as _file:
    ROWS = list(csv.DictReader(_file))
STORIES = len(ROWS)


class Athena(AthenaStub):
    """The stub with a listing of the samples; `cut` is the share of a result that it writes."""

    def __init__(self, aws: Aws) -> None:
        super().__init__(aws)
        self.rows, self.columns, self.cut = ROWS, list(ROWS[0]), 1.0

    def _csv(self, query: dict[str, Any]) -> bytes:
        return (whole := super()._csv(query))[: int(len(whole) * self.cut)]


@pytest_asyncio.fixture(autouse=True, scope="module", loop_scope="module")
async def _impatient() -> AsyncIterator[None]:
    with impatient(5.0), pytest.MonkeyPatch.context() as patch:  # moto is slow
        patch.setattr(athena_module, "POLL_SECONDS", 0.001)
        yield


@pytest.fixture(scope="module")
def aws(shared_aws: Aws) -> Iterator[Aws]:
    """A moto server that no test empties."""
    shared_aws.post("reset")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "testing")
        yield shared_aws


@pytest.fixture(scope="module")
def proxy(aws: Aws) -> Iterator[Proxy]:
    """Moto's S3, where the results of queries are written, behind the fault proxy."""
    aws.bucket("results")
    with proxied(aws.endpoint) as proxy:
        yield proxy


@pytest_asyncio.fixture(loop_scope="module")
async def athena(aws: Aws, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Athena]:
    stub, s3 = Athena(aws), aws.client("s3")
    for result in s3.list_objects_v2(Bucket="results").get("Contents", []):  # of the test before
        s3.delete_object(Bucket="results", Key=result["Key"])
    async with serve_posts(stub.answer) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL_ATHENA", endpoint)
        yield stub


def bed_of(folder: Path, proxy: Proxy) -> Bed:
    folder.mkdir()
    bed = Bed(folder)
    bed.configure(CONFIG.format(endpoint=proxy.endpoint) + COMMON.format(index="sqlite:"))
    return bed


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> State:
    """The state after a backfill of the samples from files."""
    bed = Bed(tmp_path_factory.mktemp("undisturbed"))
    bed.configure(configuration("http://unused").replace(f"s3://{BUCKET}/", f"file:{SAMPLES}/stories"))
    await bed.once("backfill")
    return bed.state()


def watermark(bed: Bed) -> int | None:
    with closing(read(bed.ledger)) as db:
        return runs.read_watermark(db)


@pytest.mark.parametrize("seed", range(CHAOS))
async def test_rows_repeated_and_out_of_order_change_nothing(  # noqa: PLR0917
    seed: int, athena: Athena, proxy: Proxy, tmp_path: Path, undisturbed: State, assert_same_state: AssertSameState
) -> None:
    rng = random.Random(seed)
    older = [row | {"updated_at": "2024-06-01T00:00:00Z", "title": "before"} for row in rng.sample(ROWS, 20)]
    rows = ROWS + older + rng.choices(ROWS, k=40)
    rng.shuffle(rows)
    plain, mixed = bed_of(tmp_path / "plain", proxy), bed_of(tmp_path / "mixed", proxy)
    await plain.once("backfill")
    athena.rows = rows
    counts = (await mixed.once("backfill")).counts
    assert counts.listed == len(rows)
    assert plain.state() == undisturbed
    repeated = len(rows) - STORIES
    said = Said("an outcome of each row", counts.fingerprinted + sum(counts.skipped.values()) - STORIES)
    assert_same_state(
        "Athena: rows repeated and out of order", repeated, len(rows), mixed.state(), undisturbed, said=said
    )
    assert watermark(mixed) == watermark(plain) is not None
    with closing(read(mixed.ledger)) as db:
        older_titles = db.execute("SELECT id FROM stories WHERE title = 'before'").fetchall()
        assert not older_titles, "an older row replaced a newer one"


FAILURES: list[tuple[dict[str, Any], type[NeardupError], str]] = [
    ({"throttled": 99}, Transient, "TooManyRequestsException"),
    ({"ends": "FAILED", "retryable": True, "reason": "GENERIC_INTERNAL_ERROR"}, Transient, "GENERIC_INTERNAL"),
    ({"ends": "FAILED", "reason": "SYNTAX_ERROR"}, Fatal, "failed: SYNTAX_ERROR"),
    ({"ends": "CANCELLED", "reason": "Query cancelled by user"}, Fatal, "cancelled: Query cancelled"),
    ({"cut": 0.5}, Transient, "ends early"),
    ({"cut": 0.0}, Transient, "ends early"),
]


@pytest.mark.parametrize(("failure", "command"), crossed(FAILURES, ["backfill", "daily"]), ids=str)
async def test_a_failed_query_does_not_move_the_watermark(  # noqa: PLR0917
    failure: tuple[dict[str, Any], type[NeardupError], str],
    command: str,
    athena: Athena,
    proxy: Proxy,
    tmp_path: Path,
    undisturbed: State,
    assert_same_state: AssertSameState,
) -> None:
    fault, error, words = failure
    bed = bed_of(tmp_path / "bed", proxy)
    if command == "daily":
        athena.rows = ROWS[:30]
        await bed.once("backfill")
        athena.rows = [row | {"updated_at": "2026-02-01T00:00:00Z"} for row in ROWS]
    before = watermark(bed) if command == "daily" else None
    healthy = dict(vars(athena))
    vars(athena).update(fault)
    with pytest.raises(error, match=words) as raised:
        await bed.once(command)
    assert "\n" not in str(raised.value)
    assert watermark(bed) == before
    vars(athena).update({name: healthy[name] for name in fault})
    summary = await bed.once(command)
    assert (summary.status, summary.counts.listed) == ("done", STORIES), "the second query did not list all stories"
    said = find_said(words, str(raised.value))
    assert_same_state(
        "Athena: throttled, failed, cancelled, cut short", 1, STORIES, bed.state(), undisturbed, said=said
    )


@pytest.mark.parametrize("fault", [Fault.INTERNAL, Fault.SLOW_DOWN, Fault.TRUNCATED, Fault.RESET, Fault.RESET_INSIDE])
async def test_a_result_cut_off_in_transfer_is_read_again(  # noqa: PLR0917
    fault: Fault, athena: Athena, proxy: Proxy, tmp_path: Path, undisturbed: State, assert_same_state: AssertSameState
) -> None:
    bed = bed_of(tmp_path / "bed", proxy)
    injected, requests, retried = len(proxy.injected), proxy.requests[RESULT], count_retries()
    proxy.plan({RESULT: [Fault.NONE, fault, fault, Fault.NONE, fault]})  # the first request is a HEAD
    assert (await bed.once("backfill")).counts.fingerprinted == STORIES
    assert len(proxy.injected) - injected == 3
    assert proxy.requests[RESULT] - requests > 5, "the last fault is followed by no request"
    said, scenario = (
        Said("trying again", (count_retries() - retried).total()),
        "Athena: the result is cut off in transfer",
    )
    assert_same_state(scenario, 3, STORIES, bed.state(), undisturbed, said=said)


async def test_throttled_calls_are_repeated(
    athena: Athena, proxy: Proxy, tmp_path: Path, undisturbed: State, assert_same_state: AssertSameState
) -> None:
    bed, retried, times = bed_of(tmp_path / "bed", proxy), count_retries(), ATTEMPTS - 1
    athena.throttled = times
    assert (await bed.once("backfill")).counts.fingerprinted == STORIES
    said = Said("trying again", (count_retries() - retried)["athena_throttled"])
    assert_same_state("Athena: throttled for a while", times, STORIES, bed.state(), undisturbed, said=said)


async def test_a_result_that_shrinks_is_noticed(aws: Aws) -> None:
    aws.bucket("shrinking")
    put = aws.client("s3").put_object
    put(Bucket="shrinking", Key="q.csv", Body=bytes(100))
    content = Content(url="file:.", endpoint=aws.endpoint, region=REGION, path_style=True)
    reader = await open_range_reader("s3://shrinking/q.csv", content)
    assert await reader(0, 100) == bytes(100)
    put(Bucket="shrinking", Key="q.csv", Body=bytes(50))
    with pytest.raises(Transient, match="50 bytes instead of 100"):
        await reader(0, 100)


class Bytes:
    """A result in memory."""

    def __init__(self, data: bytes) -> None:
        self.size = len(data)
        self._data = data

    async def __call__(self, start: int, end: int) -> bytes:
        return self._data[start:end]


@given(st.data())
async def test_a_result_cut_anywhere_is_noticed(data: st.DataObject) -> None:
    lines = ['"id","language","title"'] + [f'"{n}","hi","शीर्षक, ""{n}"""' for n in range(10)]
    whole = "".join(f"{line}\n" for line in lines).encode()
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    try:
        reader = await _require_whole(Bytes(cut), "q")
    except QueryFailed:
        return
    assert cut.endswith(b"\n"), "a cut inside a row was not noticed"
    assert [row.error async for row in read_csv(reader, "q")] == [None] * (cut.count(b"\n") - 1)


@pytest.mark.parametrize("column", ["id", "language"])
async def test_a_missing_required_column_is_an_error(column: str, athena: Athena, proxy: Proxy, tmp_path: Path) -> None:
    bed = bed_of(tmp_path / "bed", proxy)
    athena.columns = [name for name in athena.columns if name != column]
    with pytest.raises(Misuse, match=f"no column {column}"):
        await bed.once("backfill")
    assert watermark(bed) is None


async def test_a_renamed_column_is_reported(
    athena: Athena, proxy: Proxy, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bed = bed_of(tmp_path / "bed", proxy)
    athena.rows = [{("modified" if name == "updated_at" else name): row[name] for name in row} for row in ROWS]
    athena.columns = list(athena.rows[0])
    assert (await bed.once("backfill")).counts.fingerprinted == STORIES
    out = capsys.readouterr().out
    assert "columns that mean nothing here" in out and "modified" in out and "updated_at" in out
