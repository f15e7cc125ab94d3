"""What a run waits for, told to whoever looks: one log line, `neardup status`, a gauge, systemd and /healthz."""

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from daemon.errors import Transient
from daemon.ledger import Ledger, now_ms, runs
from daemon.metrics import WAITING
from daemon.notify import notify
from daemon.retry import patiently

T = TypeVar("T")
INDEX = "index"
SLOW_SECONDS = 5.0  # without an answer, that nobody would take for work

log = structlog.get_logger()
_why: dict[str, str] = {}
_since: dict[str, int] = {}


def waits() -> str | None:
    """What this process waits for and why, in a line; None while it waits for nothing."""
    return next((f"waiting for the {what}: {why}" for what, why in _why.items()), None)


async def wait_for_index(ledger: Ledger, stage: str, call: Callable[[], Awaitable[T]]) -> T:
    """Await `call()`, again and again until the index does what it is asked, and tell that it is waited for.

    A call that takes long is told of, too; it is not called twice at a time.
    """
    began = time.monotonic()

    async def attempt() -> T:
        try:
            return await _noticed(ledger, call)
        except Transient as error:
            await _tell(ledger, str(error))
            raise

    try:
        answer = await patiently(stage, attempt)
    finally:
        waited = INDEX in _why
        await _tell(ledger, None)
    if waited:
        log.info("waits no more", what=INDEX, seconds=round(time.monotonic() - began, 1))
        notify("STATUS=the index answers again")
    return answer


async def _noticed(ledger: Ledger, call: Callable[[], Awaitable[T]]) -> T:
    telling = asyncio.create_task(_tell_of_silence(ledger))
    try:
        return await call()
    finally:
        telling.cancel()


async def _tell_of_silence(ledger: Ledger) -> None:
    await asyncio.sleep(SLOW_SECONDS)
    await _tell(ledger, f"no answer for {SLOW_SECONDS:.0f} seconds")


async def _tell(ledger: Ledger, why: str | None) -> None:
    """Say why the index is waited for, where that is news; None is the end of it."""
    if _why.get(INDEX) == why:
        return
    if why is None:
        del _why[INDEX], _since[INDEX]
    else:
        if INDEX not in _why:
            log.warning("waiting", what=INDEX, why=why)
        _why[INDEX] = why
        _since.setdefault(INDEX, now_ms())
        notify(f"STATUS={waits()}")
    WAITING.labels(INDEX).set(why is not None)
    said = why and json.dumps({"pid": os.getpid(), "what": INDEX, "why": why, "since": _since[INDEX]})
    await ledger.do(runs.put, "waiting", said or "")
