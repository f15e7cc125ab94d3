"""Laws: every job accepted is written exactly once, in batches and queues that keep their bounds; stopping ends the
source and loses nothing; an error ends the run; two jobs of one key never meet, and keep the listing's order.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.pipeline.stages import BATCHES, Pipeline

TIMEOUT_SECONDS = 5
STAGES = ["source", "work", "look up", "write"]
unhurried = settings(deadline=None)
few = st.integers(1, 5)
delays = st.lists(st.integers(0, 7), min_size=1, max_size=6)
shapes = st.fixed_dictionaries({"workers": few, "depth": few, "batch": few, "delays": delays})


class Row(NamedTuple):
    key: str
    position: int


async def turns(n: int) -> None:
    """Let the others have their turns; no time passes."""
    for _ in range(n):
        await asyncio.sleep(0)


@dataclass
class Factory:
    """Stages in memory that remember what they did, at a pace that `delays` sets.

    `at` is called by the stage of that name with the number of the row or batch it has in hand.
    """

    listing: Sequence[Row]
    workers: int = 3
    depth: int = 2
    batch: int = 3
    delays: Sequence[int] = (0,)
    endless: bool = False
    linger: float = 0.0
    pace: dict[str, int] = field(default_factory=dict)
    at: dict[str, Callable[[int], object]] = field(default_factory=dict)
    accepted: list[Row] = field(default_factory=list)
    under_way: Counter[str] = field(default_factory=Counter)
    batches: list[list[Row]] = field(default_factory=list)
    resumes: list[int] = field(default_factory=list)
    most: Counter[str] = field(default_factory=Counter)
    closed: bool = False
    looked_up: int = 0

    def __post_init__(self) -> None:
        self.stop, self.gate = asyncio.Event(), asyncio.Event()
        self.gate.set()
        self.pipeline: Pipeline[Row, Row, list[Row]] = Pipeline(
            self.work,
            self.look_up,
            self.write,
            workers=self.workers,
            depth=self.depth,
            batch=self.batch,
            stop=self.stop,
            linger=self.linger,
        )

    @property
    def written(self) -> list[Row]:
        return [job for batch in self.batches for job in batch]

    async def step(self, stage: str, n: int) -> None:
        self.at.get(stage, int)(n)
        sizes = {"jobs": self.pipeline.jobs.qsize(), "outcomes": self.pipeline.outcomes.qsize()}
        self.most |= Counter(sizes | {"held": len(self.accepted) - len(self.written)})
        await turns(self.delays[n % len(self.delays)] + self.pace.get(stage, 0))

    async def source(self) -> AsyncIterator[Row]:
        try:
            for n, row in enumerate(self.listing):
                await self.step("source", n)
                self.accepted.append(row)
                yield row
            if self.endless:
                await asyncio.Event().wait()
        finally:
            self.closed = True

    async def work(self, job: Row) -> tuple[Row, Row]:
        self.under_way[job.key] += 1
        assert self.under_way[job.key] == 1, f"{job.key} is under way twice"
        await self.step("work", job.position // 10)
        return job, job

    async def look_up(self, outcomes: Sequence[Row]) -> list[Row]:
        self.looked_up += 1
        assert self.looked_up - len(self.batches) <= BATCHES, "batches are bounded"
        await self.step("look up", self.looked_up - 1)
        return list(outcomes)

    async def write(self, outcomes: Sequence[Row], looked: list[Row], resume: int) -> None:
        assert looked == outcomes, "what was found goes with its batch"
        await self.step("write", len(self.batches))
        await self.gate.wait()
        self.batches.append(list(outcomes))
        self.resumes.append(resume)
        self.under_way.subtract(job.key for job in outcomes)

    async def run(self) -> bool:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return await self.pipeline.run(self.source())


def rows(keys: Sequence[object]) -> list[Row]:
    return [Row(str(key), n * 10) for n, key in enumerate(keys)]


@unhurried
@given(st.integers(0, 40), shapes)
async def test_every_job_is_written_exactly_once_within_the_bounds(n: int, shape: dict[str, Any]) -> None:
    made = Factory(rows(range(n)), **shape)
    assert await made.run(), "the source came to its own end"
    assert sorted(made.written, key=lambda row: row.position) == made.listing
    assert all(1 <= len(one) <= made.batch for one in made.batches)
    assert max(made.most["jobs"], made.most["outcomes"]) <= made.depth
    assert made.most["held"] <= 2 * made.depth + made.workers + BATCHES * made.batch + 1
    assert made.closed


@unhurried
@given(st.lists(st.sampled_from("abc"), max_size=30), shapes)
async def test_jobs_of_one_key_never_meet_and_keep_their_order(keys: list[str], shape: dict[str, Any]) -> None:
    made = Factory(rows(keys), **shape)
    assert await made.run()
    for key in "abc":
        assert [row for row in made.written if row.key == key] == [row for row in made.listing if row.key == key]
    assert all(len({row.key for row in one}) == len(one) for one in made.batches), "a batch holds no key twice"


@unhurried
@given(st.lists(st.sampled_from("abcdefgh"), max_size=30), shapes)
async def test_the_position_to_resume_from_is_past_no_unwritten_job(keys: list[str], shape: dict[str, Any]) -> None:
    made = Factory(rows(keys), **shape)
    assert await made.run()
    assert made.resumes == sorted(made.resumes)
    for n, resume in enumerate(made.resumes):
        later = [row.position for one in made.batches[n + 1 :] for row in one]
        assert resume <= min(later, default=resume), "a crash here would lose a row"
    assert [row.position for row in made.listing[-1:]] == made.resumes[-1:], "the end resumes at the last row"


@unhurried
@given(st.integers(0, 40), st.integers(0, 40), st.sampled_from(STAGES), shapes)
async def test_stopping_ends_the_source_and_loses_nothing(n: int, at: int, where: str, shape: dict[str, Any]) -> None:
    made = Factory(rows(range(n)), **shape, endless=True)
    made.at[where] = lambda now: made.stop.set() if now >= at else None
    running = asyncio.create_task(made.run())
    await turns(1000)
    made.stop.set()  # where it was not yet: the source has nothing more to give
    assert await running is False, "the source did not come to its own end"
    assert made.closed
    assert sorted(made.written, key=lambda row: row.position) == made.accepted[: len(made.written)]
    left = made.accepted[len(made.written) :]
    assert len(left) <= 1, "more is left than the row that was on its way into the queue"
    assert max(made.resumes, default=0) <= min((row.position for row in left), default=10 * n)


@pytest.mark.parametrize("where", STAGES)
@pytest.mark.parametrize("at", [0, 7])
async def test_an_error_of_a_stage_leaves_run_and_nothing_hangs(where: str, at: int) -> None:
    made = Factory(rows(range(60)), endless=True, at={where: lambda now: 1 // (now - at)})
    before = asyncio.all_tasks()
    with pytest.raises(ExceptionGroup) as raised:
        await made.run()
    assert raised.group_contains(ZeroDivisionError)
    assert asyncio.all_tasks() == before, "a stage lives on"
    assert made.closed
    assert len(made.written) == len(set(made.written))


async def test_a_stalled_writer_stops_the_source() -> None:
    made = Factory(rows(range(500)), workers=3, depth=2, batch=4)
    made.gate.clear()
    running = asyncio.create_task(made.run())
    await turns(5000)
    held = len(made.accepted)
    assert held <= 2 * made.depth + made.workers + BATCHES * made.batch + 1
    assert (made.pipeline.jobs.full(), made.pipeline.outcomes.full()) == (True, True)
    await turns(5000)
    assert len(made.accepted) == held, "the source moves while the writer does not"
    made.gate.set()
    assert await running
    assert max(map(len, made.batches)) > 1, "a batch grows when the writer lags"
    assert len(made.written) == 500


async def test_the_writer_lingers_for_a_batch_to_fill_but_for_nothing_that_waits_for_it() -> None:
    made = Factory(rows(range(10)), workers=3, depth=10, batch=4, linger=60)
    assert await made.run()
    assert [len(one) for one in made.batches] == [4, 4, 2], "the last is written when nothing more can come"
    made = Factory(rows("abcabc"), workers=3, depth=10, batch=10, linger=60)
    assert await made.run()
    assert [len(one) for one in made.batches] == [3, 3], "the second of a key waits for the first to be written"


async def test_the_stage_that_limits_is_named() -> None:
    slow = 50
    for stage, delays in {"source": {"source": slow}, "workers": {"work": slow}, "writer": {"write": slow}}.items():
        made = Factory(rows(range(100)), pace=delays)
        assert await made.run()
        assert made.pipeline.limiting == stage


async def test_a_cancelled_run_ends_with_all_its_tasks() -> None:
    made = Factory(rows(range(50)), endless=True)
    made.gate.clear()
    before = asyncio.all_tasks()
    running = asyncio.create_task(made.run())
    await turns(500)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert asyncio.all_tasks() == before, "a stage lives on"
    assert made.written == []
