"""The life cycle of a run or a sweep: lock, prepare, record the start, work, record the outcome, call hooks.

Flags, watermark and exit code are final once the outcome is recorded; hooks (export, gauges, webhook) are called later
and cannot change them.  A hook that fails adds a warning to the run.  Work that is asked to stop has a grace period.
"""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from neardup import __version__
from neardup.core.native.page import WHY_UNUSABLE
from neardup.errors import NeardupError, Stopped
from neardup.ledger import Ledger, first_seen, now_ms, permissions, runs
from neardup.ledger.first_seen import History
from neardup.ledger.lock import Note, lock_patiently
from neardup.pipeline.summary import Progress, Summary
from neardup.telemetry.log import load_structlog, log
from neardup.telemetry.metrics import RUN_FAILURES, RUNNING

T = TypeVar("T")
NOTE_EVERY_SECONDS = 2.0
GRACE_SECONDS = 5.0  # for a hook to end after a signal to stop
Summary_co = TypeVar("Summary_co", bound=Summary, covariant=True)


class Job(Protocol[Summary_co]):
    """A run or a sweep; it updates the counts in `summary` while it works."""

    @property
    def summary(self) -> Summary_co: ...

    @property
    def progress(self) -> Progress:
        """What it does now, and how far it is."""

    @property
    def watermark(self) -> int | None:
        """The watermark to record when the job is done, in milliseconds."""

    async def prepare(self) -> None:
        """Do what must succeed before the start of the job is recorded."""

    async def collect_facts(self) -> dict[str, object]:
        """What is known of the job before its work, for the log line of its start."""

    async def work(self, run_id: int, /) -> bool:
        """Do the job; returns whether it ended by itself, not by a stop."""


class Hook(Struct, frozen=True):
    """A call after each run; warnings give its `name`.  After a signal to stop, only `vital` hooks are called."""

    name: str
    call: Callable[[Summary], Awaitable[None]]
    vital: bool = False


async def carry_out(
    job: Job[Summary_co], ledger: Ledger, stop: asyncio.Event, *, shutdown_seconds: float, hooks: Sequence[Hook]
) -> Summary_co:
    """Do a job until it ends, or at most until `shutdown_seconds` after `stop` is set; then call the hooks.

    Raises Transient if the ledger is in use, and any error that ends the job, after recording its run as failed.
    Once the run is recorded, all log lines carry its id.
    """
    summary = job.summary
    if WHY_UNUSABLE is not None:
        log.warning("the reference in Python runs, which is slower", reason=WHY_UNUSABLE)
    async with _lock(job, ledger):
        await job.prepare()
        await ledger.do(_note_first_seen, ledger.path)
        await ledger.do(permissions.refresh, now_ms())
        async with _record_run(ledger, summary) as run_id:
            log.info("run started", command=summary.command, version=__version__, **await job.collect_facts())
            began = time.perf_counter()
            try:
                if await finish_within_grace_period(job.work(run_id), stop, shutdown_seconds):
                    summary.status = "done"
            except GracePeriodOver:
                log.warning("not finished within the grace period; the next run does the rest")
            summary.seconds = time.perf_counter() - began
            await ledger.do(runs.finish, run_id, summary.status, counts=summary.as_record(), watermark=job.watermark)
        await ledger.do(_note_first_seen, ledger.path)
        await ledger.do(permissions.refresh, now_ms())
        job.progress.enter("finishing")
        await run_hooks(hooks, summary, stop)
        if summary.warnings:
            with suppress(NeardupError):  # the warnings are logged already, and the run is done
                await ledger.do(runs.put_warnings, run_id, summary.warnings)
    return summary


@asynccontextmanager
async def _lock(job: Job[Summary], ledger: Ledger) -> AsyncIterator[None]:
    """Lock the ledger for a job, and note every NOTE_EVERY_SECONDS how far it is, for `neardup status`."""

    async def keep_noting(note: Note) -> None:
        while True:
            note({"progress": asdict(job.progress.report())})
            await asyncio.sleep(NOTE_EVERY_SECONDS)

    async with lock_patiently(ledger.path, job.summary.command) as note:
        noting = asyncio.create_task(keep_noting(note), name="progress")
        try:
            yield
        finally:
            noting.cancel()
            await asyncio.gather(noting, return_exceptions=True)


def _note_first_seen(db: sqlite3.Connection, ledger: Path) -> None:
    """Record the head of the log of what was seen first; a log that is not what earlier runs recorded is a warning."""
    try:
        history = first_seen.record_head(db, ledger)
    except OSError as error:
        log.warning("the head of the log of what was seen first is not recorded", error=error.strerror)
    else:
        if history is not History.WHOLE:
            log.warning("the log of what was seen first is not as earlier runs recorded it", history=history)


@asynccontextmanager
async def _record_run(ledger: Ledger, summary: Summary) -> AsyncIterator[int]:
    """Record the start of a run and yield its id; record an error as its failure, and raise the error's cause."""
    command = summary.command
    run_id = await ledger.do(runs.begin, command)
    load_structlog().contextvars.bind_contextvars(run=run_id)
    summary.started_at = now_ms()
    RUNNING.labels(command).set(1)
    try:
        yield run_id
    except BaseException as error:  # noqa: BLE001 - recorded and raised again
        RUN_FAILURES.labels(command).inc()
        cause = _find_cause(error)
        why = repr(cause)
        if isinstance(cause, NeardupError):
            cause.run, why = run_id, str(cause)
        with suppress(NeardupError):  # if the ledger has failed, the next run records this one as crashed
            await ledger.do(runs.finish, run_id, "failed", counts=summary.as_record(), error=why)
        raise cause from None
    finally:
        RUNNING.labels(command).set(0)


def _find_cause(error: BaseException) -> BaseException:
    """The first error, which ended the other stages."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def run_hooks(hooks: Sequence[Hook], summary: Summary, stop: asyncio.Event) -> None:
    """Call the hooks in order; a failure is added to `summary.warnings` and logged."""
    for hook in hooks:
        if stop.is_set() and not hook.vital:
            continue
        try:
            await finish_within_grace_period(hook.call(summary), stop, GRACE_SECONDS)
        except GracePeriodOver:
            why = f"not finished {GRACE_SECONDS:.0f} seconds after the signal to stop"
        except NeardupError as error:
            why = str(error)
        except Exception as error:
            log.exception("a hook raised an unexpected error", hook=hook.name)
            why = f"{type(error).__name__}: {error}"
        else:
            continue
        summary.warnings[hook.name] = why
        log.warning("a hook failed after the run", hook=hook.name, why=why)


class GracePeriodOver(Exception):
    """The work did not end within its grace period and was cancelled."""


async def finish_within_grace_period(work: Awaitable[T], stop: asyncio.Event, seconds: float) -> T:
    """Await `work`; cancel it and raise GracePeriodOver if it has not ended `seconds` after `stop` is set."""

    async def start_when_stopped() -> None:
        await stop.wait()
        deadline.reschedule(asyncio.get_running_loop().time() + seconds)

    try:
        async with asyncio.timeout(None) as deadline:
            watcher = asyncio.create_task(start_when_stopped())
            try:
                return await work
            finally:
                watcher.cancel()
    except TimeoutError as error:
        if deadline.expired():
            raise GracePeriodOver from error
        raise  # a TimeoutError of the work itself


async def finish_unless_stopped(work: Coroutine[Any, Any, None], stop: asyncio.Event) -> None:
    """Await `work`.  If `stop` is set before it is done, cancel it and raise Stopped."""
    work_task = asyncio.create_task(work)
    stop_task = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((work_task, stop_task), return_when=asyncio.FIRST_COMPLETED)
        if not work_task.done():
            raise Stopped("stopped before the run began")
        await work_task
    finally:
        work_task.cancel()
        stop_task.cancel()
