"""What a run waits for, told to whoever looks: one log line, `neardup status`, a gauge, systemd and /healthz."""

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from neardup.errors import Transient
from neardup.ledger import Ledger, now_ms, runs
from neardup.retry import patiently
from neardup.telemetry.metrics import WAITING
from neardup.telemetry.systemd import notify

T = TypeVar("T")
INDEX = "index"
SLOW_SECONDS = 5.0  # without an answer, that nobody would take for work

log = structlog.get_logger()
_why: dict[str, str] = {}
_since: dict[str, int] = {}
_waiting: set[object] = set()  # several calls at a time: it is over when none of them waits


def waits() -> str | None:
    """What this process waits for and why, in a line; None while it waits for nothing."""
    return next((f"waiting for the {what}: {why}" for what, why in _why.items()), None)


async def wait_for_index(ledger: Ledger, stage: str, call: Callable[[], Awaitable[T]]) -> T:
    """Await `call()`, again and again until the index does what it is asked, and tell that it is waited for.

    A call that takes long is told of, too; it is not called twice at a time.
    """
    began, me = time.monotonic(), object()

    async def attempt() -> T:
        try:
            return await _noticed(ledger, me, call)
        except Transient as error:
            await _tell(ledger, me, str(error))
            raise

    try:
        answer = await patiently(stage, attempt)
    finally:
        waited = await _tell_end(ledger, me)
    if waited:
        log.info("waits no more", what=INDEX, seconds=round(time.monotonic() - began, 1))
        notify("STATUS=the index answers again")
    return answer


async def _noticed(ledger: Ledger, me: object, call: Callable[[], Awaitable[T]]) -> T:
    telling = asyncio.create_task(_tell_of_silence(ledger, me))
    try:
        return await call()
    finally:
        telling.cancel()


async def _tell_of_silence(ledger: Ledger, me: object) -> None:
    await asyncio.sleep(SLOW_SECONDS)
    await _tell(ledger, me, f"no answer for {SLOW_SECONDS:.0f} seconds")


async def _tell(ledger: Ledger, me: object, why: str) -> None:
    """Say that one more waits for the index, and why, where that is news."""
    _waiting.add(me)
    if _why.get(INDEX) == why:
        return
    if INDEX not in _why:
        log.warning("waiting", what=INDEX, why=why)
    _why[INDEX] = why
    _since.setdefault(INDEX, now_ms())
    notify(f"STATUS={waits()}")
    WAITING.labels(INDEX).set(1)
    said = {"pid": os.getpid(), "what": INDEX, "why": why, "since": _since[INDEX]}
    await ledger.do(runs.put, "waiting", json.dumps(said))


async def _tell_end(ledger: Ledger, me: object) -> bool:
    """One waits no more; whether it was the last that did."""
    if me not in _waiting:
        return False
    _waiting.remove(me)
    if _waiting:
        return False
    del _why[INDEX], _since[INDEX]
    WAITING.labels(INDEX).set(0)
    await ledger.do(runs.put, "waiting", "")
    return True
