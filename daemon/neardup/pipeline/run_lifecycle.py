"""The life of a run or a sweep: lock, prepare, record, work, outcome, hooks.

Flags, watermark and exit code are decided when the outcome is on record; hooks come after, and cannot change them.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Protocol, TypeVar

import structlog
from structlog.contextvars import bind_contextvars

from neardup.errors import NeardupError
from neardup.ledger import Ledger, now_ms, runs
from neardup.ledger.lock import only_one
from neardup.pipeline.grace_period import GracePeriodOver, within_grace_period
from neardup.pipeline.hooks import Hook, run_hooks
from neardup.pipeline.summary import Summary
from neardup.telemetry.metrics import RUN_FAILURES, RUNNING

Summary_co = TypeVar("Summary_co", bound=Summary, covariant=True)

log = structlog.get_logger()


class Job(Protocol[Summary_co]):
    """A run or a sweep, as its life cycle sees it; it counts in its `summary` while it works."""

    @property
    def summary(self) -> Summary_co: ...

    @property
    def watermark(self) -> int | None:
        """The watermark that the job has earned if it is done, in milliseconds."""
        ...

    async def prepare(self) -> None:
        """What must succeed before the job is put on record."""
        ...

    async def work(self, run_id: int, /) -> bool:
        """Do it; returns whether it came to its own end."""
        ...


async def carry_out(
    job: Job[Summary_co], ledger: Ledger, stop: asyncio.Event, *, shutdown_seconds: float, hooks: Sequence[Hook]
) -> Summary_co:
    """Do a job until its end, or until `shutdown_seconds` after `stop` is set, then run the hooks.

    Raises Transient where the ledger is in use, and whatever ended the job: its run is then on record as failed.
    From its start on, log lines name the run.
    """
    summary = job.summary
    with only_one(ledger.path, summary.command):
        await job.prepare()
        async with _on_record(ledger, summary) as run_id:
            began = time.perf_counter()
            ended = await _drained(job, run_id, stop, shutdown_seconds)
            summary.seconds = time.perf_counter() - began
            summary.status = "done" if ended else "stopped"
            await ledger.do(runs.finish, run_id, summary.status, counts=summary.record(), watermark=job.watermark)
        await run_hooks(hooks, summary, stop)
        if summary.warnings:
            with suppress(NeardupError):  # they are logged, and the run is done
                await ledger.do(runs.put_warnings, run_id, summary.warnings)
    return summary


async def _drained(job: Job[Summary], run_id: int, stop: asyncio.Event, shutdown_seconds: float) -> bool:
    try:
        return await within_grace_period(job.work(run_id), stop, shutdown_seconds)
    except GracePeriodOver:
        log.warning("not drained in time; the next run does what is left")
        return False


@asynccontextmanager
async def _on_record(ledger: Ledger, summary: Summary) -> AsyncIterator[int]:
    """Put a run on record and give its id; an error within is recorded as its failure, and its cause raised."""
    command = summary.command
    run_id = await ledger.do(runs.begin, command)
    bind_contextvars(run=run_id)
    summary.started_at = now_ms()
    RUNNING.labels(command).set(1)
    try:
        yield run_id
    except BaseException as error:  # noqa: BLE001 - put on record and raised again
        RUN_FAILURES.labels(command).inc()
        cause = _cause(error)
        why = repr(cause)
        if isinstance(cause, NeardupError):
            cause.run, why = run_id, str(cause)
        with suppress(NeardupError):  # it may be the ledger that failed; then the next run marks this one crashed
            await ledger.do(runs.finish, run_id, "failed", counts=summary.record(), error=why)
        raise cause from None
    finally:
        RUNNING.labels(command).set(0)


def _cause(error: BaseException) -> BaseException:
    """The error that ended the stages; the others were cancelled for it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
