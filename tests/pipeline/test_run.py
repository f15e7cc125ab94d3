"""A run's listing of works, and when a run proposes --fresh.

The gauges of verdicts in /metrics.

Law: a run makes no blocking call in the thread of its event loop, except those below the functions in ALLOWED.

Calls in reader processes and in the threads of ledger and index are not checked, because they have no event loop.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing, closing
from pathlib import Path

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.app import open_app, run_once
from neardup.config import load
from neardup.core.columns import ListedBlock, StoryColumns
from neardup.core.verify.tiers import PARTIAL
from neardup.errors import Fatal
from neardup.ledger import Ledger, stories
from neardup.pages.fork_server import end_server
from neardup.pipeline.gauges import _set_verdict_gauges
from neardup.pipeline.run import EMPTY_LISTING, FRESH_PAYS, FreshProposal, Options, WorksListing
from neardup.pipeline.summary import Counts, Progress
from neardup.records import BadRow, Checkpoint, Dead, Fingerprinted, ListedRow, Story, Verdict
from neardup.source import list_rows
from neardup.telemetry.metrics import IN_CONTEXT, KEPT_PAIRS, PRECISION, VERDICTS
from structlog.testing import capture_logs

from tests.support.builders import commit, fingerprint_of, flag_pair, ledger_in_memory
from tests.support.command import embedded
from tests.support.languages import HINDI, ODIA
from tests.support.samples import PLANTED
from tests.support.sampling import count_examples
from tests.support.verdicts import add_copies, give_verdict, undo

BAD_ROW = BadRow("row:1", Dead.BAD_ROW, "no catalogue")
ids = st.sets(st.integers(-9, -1))


class Rows:
    """A source of these rows."""

    name, size = "rows", 0

    def __init__(self, rows: Iterable[ListedRow]) -> None:
        self._rows = rows

    async def list_blocks(self, *, since: int | None, resume: Checkpoint | None) -> AsyncIterator[ListedBlock]:
        for row in self._rows:
            yield row if isinstance(row, BadRow) else StoryColumns.of([row])


def work(story_id: int) -> Story:
    return Story(story_id, HINDI, catalogue="classics")


async def after_listing(held: set[int], rows: list[ListedRow], stop_after: int | None = None) -> set[int]:
    """The works on record after a listing of these rows, of which all are read, or only the first."""
    with tempfile.TemporaryDirectory() as folder, closing(Ledger(Path(folder) / "l.db")) as ledger:
        made = [Fingerprinted(work(n), fingerprint_of(abs(n).to_bytes(16)), None) for n in held]
        await ledger.do(lambda db: commit(db, *made))
        listing = WorksListing(Rows(rows), ledger)
        read = 0
        async with aclosing(list_rows(listing)) as listed:  # type: ignore[type-var]
            async for row in listed:
                assert row == rows[read]
                read += 1
                if read == stop_after:
                    break
        left = set(await ledger.do(stories.list_works, "classics"))
        assert listing.removed == len(held - left)
        assert await ledger.do(lambda db: {n for (n,) in db.execute("SELECT id FROM stories")}) == left
    return left


few = settings(max_examples=count_examples(20))  # each makes a ledger


@given(ids, ids.filter(bool))
@few
async def test_works_that_are_not_listed_are_removed(held: set[int], listed: set[int]) -> None:
    assert await after_listing(held, [work(n) for n in listed]) == held & listed


@given(ids, ids, st.integers(0, 3))
@few
async def test_nothing_is_removed_beside_a_row_that_describes_no_work(
    held: set[int], listed: set[int], place: int
) -> None:
    rows: list[ListedRow] = [work(n) for n in listed]
    rows.insert(place, BAD_ROW)
    assert await after_listing(held, rows) == held


@given(ids, ids.filter(bool))
@few
async def test_a_listing_that_is_stopped_removes_nothing(held: set[int], listed: set[int]) -> None:
    assert await after_listing(held, [work(n) for n in listed], stop_after=1) == held


async def test_an_empty_listing_fails_and_removes_nothing(tmp_path: Path) -> None:
    with closing(Ledger(tmp_path / "l.db")) as ledger:
        await ledger.do(lambda db: commit(db, Fingerprinted(work(-1), fingerprint_of(bytes(16)), None)))
        with pytest.raises(Fatal) as refused:
            _ = [row async for row in list_rows(WorksListing(Rows([]), ledger))]
        assert str(refused.value) == EMPTY_LISTING
        assert await ledger.do(stories.list_works, "classics") == [-1]


def proposed(options: Options, stories: int, held: int = 0) -> list[int]:
    """The sizes for which `--fresh` is proposed while a listing of so many stories is read."""
    proposal = FreshProposal(options)
    with capture_logs() as lines:
        for listed in (0, stories // 10, stories):
            progress = Progress(Counts(fingerprinted=listed), position=40 * listed, size=40 * stories)
            proposal.consider(progress, held)
    return [line["about"] for line in lines]


def test_a_large_first_backfill_is_proposed_fresh_once() -> None:
    assert proposed(Options("backfill"), FRESH_PAYS) == [FRESH_PAYS]


@pytest.mark.parametrize(
    ("options", "stories", "held"),
    [
        (Options("backfill"), FRESH_PAYS - 10, 0),
        (Options("backfill"), FRESH_PAYS, 1),
        (Options("backfill", fresh=True), FRESH_PAYS, 0),
        (Options("daily"), FRESH_PAYS, 0),
        (Options("retry", dead_letters=True), FRESH_PAYS, 0),
    ],
)
def test_no_other_run_is_proposed_fresh(options: Options, stories: int, held: int) -> None:
    assert proposed(options, stories, held) == []


def test_gauges_count_verdicts_and_drop_undone_ones() -> None:
    db = ledger_in_memory()
    add_copies(db, 1, 2, 3)
    give_verdict(db, {(1, 2), (1, 3), (2, 3)}, Verdict.TEMPLATE)
    add_copies(db, 4)
    flag_pair(db, 8, 9, PARTIAL, language=ODIA)
    decision = give_verdict(db, {(8, 9)}, Verdict.NOT_SIMILAR)
    _set_verdict_gauges(db)
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for gauge in (VERDICTS, PRECISION, KEPT_PAIRS, IN_CONTEXT)
        for metric in gauge.collect()
        for sample in metric.samples
        if sample.value or sample.name == "neardup_precision"
    }
    assert samples == {
        ("neardup_verdicts", "HINDI", "exact", "template"): 3,
        ("neardup_verdicts", "ODIA", "partial", "not_similar"): 1,
        ("neardup_precision", "HINDI", "exact"): 1,
        ("neardup_precision", "ODIA", "partial"): 0,
        ("neardup_kept_pairs", "HINDI", "template"): 2,
        ("neardup_flags_in_context", "HINDI", "template"): 1,
    }
    undo(db, decision)
    _set_verdict_gauges(db)
    assert not [
        sample for metric in PRECISION.collect() for sample in metric.samples if "ODIA" in sample.labels.values()
    ]
    for gauge in (VERDICTS, PRECISION, KEPT_PAIRS, IN_CONTEXT):
        gauge.clear()
    db.close()


ALLOWED = {  # file and function that may make blocking calls, and why
    ("neardup/config/loading.py", "load"): "read once, before anything else",
    ("neardup/app.py", "open_app"): "opens and closes files before and after all runs",
    ("neardup/app.py", "open_readers"): "one stat per run",
    ("neardup/ledger/lock.py", "only_one"): "a small file, written once per run",
    ("neardup/pipeline/index_sync.py", "rebuild"): "creates and removes scratch files while nothing else runs",
    ("neardup/pipeline/quarantine.py", "__init__"): "a small file, read once per run",
    ("neardup/pipeline/quarantine.py", "close"): "a small file, removed once per run",
    ("neardup/pages/fork_server.py", "_spawn"): "a fork takes a millisecond",
    ("neardup/pages/watchdog.py", "read_resident_bytes"): "/proc is not a disk",
    ("neardup/source/rows.py", "__call__"): "reads the next buffer of a local file",
    ("neardup/source/rows.py", "head"): "reads the first buffer of a local file",
    ("neardup/telemetry/metrics.py", "make_metrics"): "loads the library of metrics, once a process",
    ("redis/utils.py", "get_lib_version"): "a stat for each new connection",
    ("neardup/pipeline/gauges.py", "refresh_gauges"): "one statvfs per minute",
}


async def backfill_and_daily(config: Path) -> None:
    async with open_app(load(config)) as app:
        backfill = await run_once(app, "backfill", asyncio.Event())
        daily = await run_once(app, "daily", asyncio.Event())
    assert sum(backfill.counts.flagged.values()) == len(PLANTED)
    assert daily.status == "done"


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_a_run_never_blocks_its_event_loop(kind: str, tmp_path: Path, redis_url: str) -> None:
    config = tmp_path / "config.toml"
    text = embedded(index="sqlite:" if kind == "sqlite" else redis_url)
    config.write_text(text.replace("neardup.db", str(tmp_path / "neardup.db")), encoding="utf-8")
    end_server()  # one that an earlier test started in another environment would be ended by the run
    with blockbuster_ctx() as blockbuster:
        for wrapped in blockbuster.functions.values():
            for file, function in ALLOWED:
                wrapped.can_block_in(file, function)
        asyncio.run(backfill_and_daily(config))
