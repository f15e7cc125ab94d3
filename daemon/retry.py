"""The one retry layer: what is Transient is tried again, counted and told."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import stamina
import structlog

from daemon.errors import Transient
from daemon.metrics import RETRIES

T = TypeVar("T")
ATTEMPTS = 5
GIVE_UP_SECONDS = 60.0
PATIENT_WAIT_SECONDS = 30.0

log = structlog.get_logger()


async def retried(stage: str, call: Callable[[], Awaitable[T]], *, story: int | None = None) -> T:
    """Await `call()`, a few times with growing, jittered pauses.  Raises its last Transient.

    Log lines name the story that the call is about.
    """
    about = {} if story is None else {"story": story}
    return await _retried(stage, call, about, attempts=ATTEMPTS, timeout=GIVE_UP_SECONDS)


async def patiently(stage: str, call: Callable[[], Awaitable[T]]) -> T:
    """Await `call()` until it works: once under way, a run waits for its index."""
    return await _retried(stage, call, {}, attempts=None, timeout=None, wait_max=PATIENT_WAIT_SECONDS)


async def _retried(stage: str, call: Callable[[], Awaitable[T]], about: dict[str, int], **limits: Any) -> T:
    try:
        return await call()  # nearly always all there is to it, and the loop below costs more than many a call
    except Transient as error:
        failed = error
    async for attempt in stamina.retry_context(Transient, **limits):
        with attempt:
            if attempt.num == 1:
                raise failed
            RETRIES.labels(stage, failed.reason).inc()
            log.warning("trying again", stage=stage, why=str(failed), **about)
            try:
                return await call()
            except Transient as error:
                failed = error
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")
