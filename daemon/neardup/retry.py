"""The one retry layer for calls that raise Transient: attempts are bounded, counted and logged.

Everything that the program repeats, and for how long:

| what | where | until |
|---|---|---|
| an event of a webhook | `moderation.webhook`, by the ledger's outbox | 15 attempts, in about 40 hours |
| a request to S3, Athena or the webhook of runs; a lookup of `check` | `retry_call`, here | 5 attempts or 60 seconds |
| a request of a run to its index | `retry_forever`, by `pipeline.index_sync` | it works, or the run ends |
| a page on a connection that the store has closed | libcurl, in `pages.s3` | the second time |
| the page of a text that is gone from S3 | `pages.reader_process` | the second time |
| a page whose reader process died | `pages.reader_pool` | the second death |
| starting reader processes | `pages.reader_pool`, by `retry_times` | the third time in a row |
| a story whose processing raised a defect | `pipeline.worker` | the second time |
| opening the parts of the daemon or the HTTP service | `ops.service`, `serve.service` | it works, every 5 seconds |
| a call of a client of the HTTP service | `serve.client` | 4 attempts or 30 seconds |
| a daily run that failed | `ops.service` | it works, after 1 minute, doubling up to 1 hour |
| taking the lock of the ledger | `ledger.lock` | 0.3 seconds; 5 seconds where `serve` has it |
| settling submitted stories | `pipeline.upkeep` | it works, every 10 seconds |
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from neardup.errors import Transient
from neardup.telemetry.log import log
from neardup.telemetry.metrics import RETRIES

T = TypeVar("T")
ATTEMPTS = 5
GIVE_UP_SECONDS = 60.0
PATIENT_WAIT_SECONDS = 5.0  # short, because a run that waits longer than needed costs more than an attempt


async def retry_call(stage: str, call: Callable[[], Awaitable[T]], *, story: int | str | None = None) -> T:
    """The result of `call()`, awaited up to ATTEMPTS times with growing, jittered pauses.

    Log lines name the `story` that the call is for.  Raises the last Transient, and every other error at once.
    """
    about: dict[str, int | str] = {} if story is None else {"story": story}
    return await _retry(stage, call, "warning", about, attempts=ATTEMPTS, timeout=GIVE_UP_SECONDS)


async def retry_times(stage: str, call: Callable[[], Awaitable[T]], attempts: int) -> T:
    """The result of `call()`, awaited up to `attempts` times with growing, jittered pauses, however long each takes.

    Raises the last Transient, and every other error at once.
    """
    return await _retry(stage, call, "warning", {}, attempts=attempts, timeout=None)


async def retry_forever(stage: str, call: Callable[[], Awaitable[T]]) -> T:
    """The result of `call()`, awaited until it raises no Transient; the caller reports the wait."""
    return await _retry(stage, call, "debug", {}, attempts=None, timeout=None, wait_max=PATIENT_WAIT_SECONDS)


def report_retry(stage: str, failed: Transient, level: str, **about: int | str) -> None:
    RETRIES.labels(stage, failed.reason).inc()
    getattr(log, level)("trying again", stage=stage, why=str(failed), **about)


async def _retry(
    stage: str, call: Callable[[], Awaitable[T]], level: str, about: dict[str, int | str], **limits: Any
) -> T:
    try:
        return await call()  # nearly every call succeeds, and the loop below costs more than most of them
    except Transient as error:
        failed = error
    import stamina  # noqa: PLC0415 - it loads slowly, and nearly no call fails

    stamina.instrumentation.set_on_retry_hooks([])  # it would write log lines of its own
    async for attempt in stamina.retry_context(Transient, **limits):
        with attempt:
            if attempt.num == 1:
                raise failed
            report_retry(stage, failed, level, **about)
            try:
                return await call()
            except Transient as error:
                failed = error
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")
