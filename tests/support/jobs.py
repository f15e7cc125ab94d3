"""A job for the life cycle of a run: it does what a test gives it, and can end in every way."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from neardup.ledger import Ledger, runs
from neardup.pipeline.run_lifecycle import Hook, carry_out
from neardup.pipeline.summary import Progress, RunSummary, Summary
from neardup.telemetry.metrics import RUN_FAILURES

MARK = 1_700_000_000_000
Work = Callable[[], Awaitable[bool]]


class Job:
    """A daily run that does `work`."""

    watermark = MARK

    def __init__(self, work: Work) -> None:
        self.summary = RunSummary("daily")
        self.progress = Progress(self.summary.counts)
        self._work = work

    async def prepare(self) -> None:
        """Prepare nothing."""

    async def collect_facts(self) -> dict[str, object]:
        return {"stories": 3}

    async def work(self, _: int, /) -> bool:
        self.summary.counts.fingerprinted = 7
        return await self._work()


async def run_job(
    ledger: Ledger, work: Work, *hooks: Hook, stop: asyncio.Event | None = None, shutdown_seconds: float = 60
) -> Summary:
    return await carry_out(Job(work), ledger, stop or asyncio.Event(), shutdown_seconds=shutdown_seconds, hooks=hooks)


async def latest(ledger: Ledger) -> dict[str, Any]:
    [run] = await ledger.do(runs.list_latest, 1)
    return run


async def done() -> bool:
    return True


async def forever() -> bool:
    await asyncio.Event().wait()
    return True


async def nothing(_: Summary) -> None: ...


def failing(error: Exception) -> Callable[[Summary], Awaitable[None]]:
    async def fail(_: Summary) -> None:
        raise error

    return fail


def failures() -> float:
    return float(RUN_FAILURES.labels("daily")._value.get())
