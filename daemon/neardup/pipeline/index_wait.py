"""Repeats calls of an index that does not answer until it does, and reports the wait to operators."""

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from neardup.errors import Transient
from neardup.ledger import Ledger, now_ms, runs
from neardup.retry import retry_forever
from neardup.telemetry.log import log
from neardup.telemetry.metrics import WAITING
from neardup.telemetry.systemd import notify

T = TypeVar("T")
INDEX = "index"
SLOW_SECONDS = 5.0  # longer than any call of an index that answers


class IndexWait:
    """Waits for the index of one process, and reports it: one log line, the ledger, a gauge, systemd, `status`.

    Several calls may wait at a time: the wait is over when none of them does.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._callers: set[object] = set()
        self._why: str | None = None
        self._since = 0

    @property
    def status(self) -> str | None:
        """One line that says what is waited for and why; None if there is no wait."""
        return None if self._why is None else f"waiting for the index: {self._why}"

    async def wait_for_answer(self, stage: str, call: Callable[[], Awaitable[T]], *, may_take_long: bool = False) -> T:
        """Await `call()` until it raises no Transient, and return its result.

        A call without an answer for SLOW_SECONDS is reported as a wait too, unless it `may_take_long`, as the building
        of an index does; it is not repeated meanwhile.
        """
        began, caller = time.monotonic(), object()

        async def attempt() -> T:
            slow = None if may_take_long else asyncio.create_task(self._report_slow(caller))
            try:
                return await call()
            except Transient as error:
                await self._report(caller, str(error))
                raise
            finally:
                if slow is not None:
                    slow.cancel()

        try:
            answer = await retry_forever(stage, attempt)
        finally:
            is_over = await self._leave(caller)
        if is_over:
            log.info("no longer waiting", what=INDEX, seconds=round(time.monotonic() - began, 1))
            notify("STATUS=the index answers again")
        return answer

    async def _report_slow(self, caller: object) -> None:
        await asyncio.sleep(SLOW_SECONDS)
        await self._report(caller, f"no answer for {SLOW_SECONDS:.0f} seconds")

    async def _report(self, caller: object, why: str) -> None:
        """Add a caller to those that wait, and report the reason if it is new."""
        self._callers.add(caller)
        if self._why == why:
            return
        if self._why is None:
            log.warning("waiting", what=INDEX, why=why)
            self._since = now_ms()
        self._why = why
        notify(f"STATUS={self.status}")
        WAITING.labels(INDEX).set(1)
        facts = {"pid": os.getpid(), "what": INDEX, "why": why, "since": self._since}
        await self._ledger.do(runs.put, "waiting", json.dumps(facts))

    async def _leave(self, caller: object) -> bool:
        """Remove a caller from those that wait; returns whether it was the last."""
        if caller not in self._callers:
            return False
        self._callers.remove(caller)
        if self._callers:
            return False
        self._why = None
        WAITING.labels(INDEX).set(0)
        await self._ledger.do(runs.put, "waiting", "")
        return True
