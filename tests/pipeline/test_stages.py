"""Laws: every accepted job is written exactly once, and batches and queues keep their bounds.

Stopping ends the source and loses nothing; an error ends the run; jobs with the same key are processed one after the
other, in the order of the listing.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct, field
from neardup.pipeline.stages import MAX_BATCHES, Pipeline

TIMEOUT_SECONDS = 5
STAGES = ["source", "work", "look up", "write"]
no_deadline = settings(deadline=None)
few = st.integers(1, 5)
delays = st.lists(st.integers(0, 7), min_size=1, max_size=6)
shapes = st.fixed_dictionaries(
    {"workers": few, "depth": few, "batch": few, "block": few, "settled": st.integers(0, 3), "delays": delays}
)


class Row(NamedTuple):
    key: str
    position: int


class Rows(list[Row]):
    """A block of rows, as jobs and as outcomes."""

    @property
    def keys(self) -> list[str]:
        return [row.key for row in self]

    @property
    def positions(self) -> list[int]:
        return [row.position for row in self]

    def __getitem__(self, some: Any) -> Any:
        found = super().__getitem__(some)
        return Rows(found) if isinstance(some, slice) else found


async def turns(n: int) -> None:
    """Let the other tasks run for n turns of the event loop, without waiting."""
    for _ in range(n):
        await asyncio.sleep(0)


class Factory(Struct, dict=True):
    """Stages in memory that record what they did; `delays` and `pace` slow them down by turns of the event loop.

    The source yields blocks of `block` rows, and if `settled` is not 0, each row of that many needs no work.

    Each stage calls its function in `at` with the number of the row or batch that it is processing.
    """

    listing: Sequence[Row]
    workers: int = 3
    depth: int = 2
    batch: int = 3
    block: int = 1
    settled: int = 0
    delays: Sequence[int] = (0,)
    endless: bool = False
    linger: float = 0.0
    pace: dict[str, int] = field(default_factory=dict)
    at: dict[str, Callable[[int], object]] = field(default_factory=dict)
    accepted: list[Row] = field(default_factory=list)
    in_progress: Counter[str] = field(default_factory=Counter)
    batches: list[Rows] = field(default_factory=list)
    resume_positions: list[int] = field(default_factory=list)
    peaks: Counter[str] = field(default_factory=Counter)
    closed: bool = False
    looked_up: int = 0
    in_work: int = 0

    def __post_init__(self) -> None:
        self.stop, self.gate = asyncio.Event(), asyncio.Event()
        self.gate.set()
        self.pipeline: Pipeline[Rows, Rows, Rows] = Pipeline(
            self.admit,
            self.work,
            lambda parts: Rows(row for part in parts for row in part),
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
        self.peaks |= Counter(sizes | {"held": len(self.accepted) - len(self.written)})
        await turns(self.delays[n % len(self.delays)] + self.pace.get(stage, 0))

    async def source(self) -> AsyncGenerator[Rows, None]:
        try:
            for at in range(0, len(self.listing), self.block):
                await self.step("source", at)
                rows = Rows(self.listing[at : at + self.block])
                self.accepted += rows
                yield rows
            if self.endless:
                await asyncio.Event().wait()
        finally:
            self.closed = True

    async def admit(self, rows: Rows) -> tuple[Rows, Rows]:
        self.in_progress.update(rows.keys)
        twice = [key for key, n in self.in_progress.items() if n > 1]
        assert not twice, f"{twice} are in progress twice"
        is_settled = [self.settled > 0 and row.position // 10 % self.settled == 0 for row in rows]
        await self.step("admit", rows[0].position // 10)
        return tuple(
            Rows(row for row, done in zip(rows, is_settled, strict=True) if done is is_done)
            for is_done in (False, True)
        )  # type: ignore[return-value]

    async def work(self, rows: Rows, deliver: Callable[[Rows], Awaitable[None]]) -> None:
        self.in_work += len(rows)
        assert self.in_work <= self.workers, "more rows are worked on than there are workers"
        for row in rows:
            await self.step("work", row.position // 10)
            self.in_work -= 1
            await deliver(Rows([row]))

    async def look_up(self, outcomes: Rows) -> Rows:
        self.looked_up += 1
        assert self.looked_up - len(self.batches) <= MAX_BATCHES, "too many batches are looked up"
        await self.step("look up", self.looked_up - 1)
        return outcomes

    async def write(self, outcomes: Rows, looked: Rows, resume: int) -> None:
        assert looked == outcomes, "the results belong to another batch"
        await self.step("write", len(self.batches))
        await self.gate.wait()
        self.batches.append(outcomes)
        self.resume_positions.append(resume)
        self.in_progress.subtract(job.key for job in outcomes)

    async def run(self) -> bool:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return await self.pipeline.run(self.source())


def rows(keys: Sequence[object]) -> list[Row]:
    return [Row(str(key), n * 10) for n, key in enumerate(keys)]


@no_deadline
@given(st.integers(0, 40), shapes)
async def test_every_job_is_written_exactly_once_within_the_bounds(n: int, shape: dict[str, Any]) -> None:
    factory = Factory(rows(range(n)), **shape)
    assert await factory.run(), "the source did not end by itself"
    assert sorted(factory.written, key=lambda row: row.position) == factory.listing
    assert all(1 <= len(batch) <= factory.batch for batch in factory.batches)
    assert max(factory.peaks["jobs"], factory.peaks["outcomes"]) <= factory.depth
    # and the source's next block waits for places in the queues
    most = 2 * factory.depth + factory.workers + MAX_BATCHES * factory.batch + factory.block
    assert factory.peaks["held"] <= most
    assert factory.closed


@no_deadline
@given(st.lists(st.sampled_from("abc"), max_size=30), shapes)
async def test_jobs_with_the_same_key_are_written_in_order(keys: list[str], shape: dict[str, Any]) -> None:
    factory = Factory(rows(keys), **shape)
    assert await factory.run()
    for key in "abc":
        assert [row for row in factory.written if row.key == key] == [row for row in factory.listing if row.key == key]
    assert all(len({row.key for row in batch}) == len(batch) for batch in factory.batches), "a batch holds no key twice"


@no_deadline
@given(st.lists(st.sampled_from("abcdefgh"), max_size=30), shapes)
async def test_the_resume_position_never_skips_an_unwritten_job(keys: list[str], shape: dict[str, Any]) -> None:
    factory = Factory(rows(keys), **shape)
    assert await factory.run()
    assert factory.resume_positions == sorted(factory.resume_positions)
    for n, resume in enumerate(factory.resume_positions):
        later = [row.position for batch in factory.batches[n + 1 :] for row in batch]
        assert resume <= min(later, default=resume), "a crash here would lose a row"
    assert [row.position for row in factory.listing[-1:]] == factory.resume_positions[-1:], (
        "the last resume position must be the last row"
    )


@no_deadline
@given(st.integers(0, 40), st.integers(0, 40), st.sampled_from(STAGES), shapes)
async def test_stopping_ends_the_source_and_loses_nothing(n: int, at: int, where: str, shape: dict[str, Any]) -> None:
    factory = Factory(rows(range(n)), **shape, endless=True)
    factory.at[where] = lambda now: factory.stop.set() if now >= at else None
    running = asyncio.create_task(factory.run())
    await turns(1000)
    factory.stop.set()  # in case it was not set yet: the source yields no more rows
    assert await running is False, "the source must not end by itself"
    assert factory.closed
    written = set(factory.written)
    assert len(written) == len(factory.written)
    left = [row for row in factory.accepted if row not in written]
    assert len(left) <= factory.block, "more than the one block on its way into the queues is left"
    assert max(factory.resume_positions, default=0) <= min((row.position for row in left), default=10 * n)


@pytest.mark.parametrize("where", STAGES)
@pytest.mark.parametrize("at", [0, 7])
async def test_an_error_in_a_stage_ends_the_run(where: str, at: int) -> None:
    factory = Factory(rows(range(60)), endless=True, at={where: lambda now: 1 // (now - at)})
    before = asyncio.all_tasks()
    with pytest.raises(ExceptionGroup) as raised:
        await factory.run()
    assert raised.group_contains(ZeroDivisionError)
    assert asyncio.all_tasks() == before, "a stage is still running"
    assert factory.closed
    assert len(factory.written) == len(set(factory.written))


async def test_a_stalled_writer_stops_the_source() -> None:
    factory = Factory(rows(range(500)), workers=3, depth=2, batch=4)
    factory.gate.clear()
    running = asyncio.create_task(factory.run())
    await turns(5000)
    held = len(factory.accepted)
    assert held <= 2 * factory.depth + factory.workers + MAX_BATCHES * factory.batch + 1
    assert (factory.pipeline.jobs.full(), factory.pipeline.outcomes.full()) == (True, True)
    await turns(5000)
    assert len(factory.accepted) == held, "the source continues although the writer is blocked"
    factory.gate.set()
    assert await running
    assert max(map(len, factory.batches)) > 1, "batches must grow when the writer is slow"
    assert len(factory.written) == 500


async def test_a_batch_waits_to_fill_unless_a_job_waits_for_it() -> None:
    factory = Factory(rows(range(10)), workers=3, depth=10, batch=4, linger=60)
    assert await factory.run()
    assert [len(batch) for batch in factory.batches] == [4, 4, 2], (
        "the last batch must be written when the source has ended"
    )
    factory = Factory(rows("abcabc"), workers=3, depth=10, batch=10, linger=60)
    assert await factory.run()
    assert [len(batch) for batch in factory.batches] == [3, 3], "a job must wait until the one with its key is written"


async def test_the_limiting_stage_is_named() -> None:
    slow = 50
    for stage, delays in {"source": {"source": slow}, "workers": {"work": slow}, "writer": {"write": slow}}.items():
        factory = Factory(rows(range(100)), pace=delays)
        assert await factory.run()
        assert factory.pipeline.limiting == stage


async def test_a_cancelled_run_ends_with_all_its_tasks() -> None:
    factory = Factory(rows(range(50)), endless=True)
    factory.gate.clear()
    before = asyncio.all_tasks()
    running = asyncio.create_task(factory.run())
    await turns(500)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert asyncio.all_tasks() == before, "a stage is still running"
    assert factory.written == []
