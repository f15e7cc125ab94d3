"""Pending candidates -> exact arithmetic -> flags.  A bounded stage of its own, and idempotent.

Candidates are committed with their stories, so a crash leaves them pending, not lost; judging a
pair again gives the same flag.
"""

import asyncio
from collections import Counter
from collections.abc import Callable

from daemon.config import Detection
from daemon.core.verify import judge
from daemon.ledger import Ledger, flags
from daemon.metrics import FLAGS, STAGE_SECONDS
from daemon.records import Kind, Language

BATCH = 500

News = Counter[tuple[Language, Kind]]


class Verifier:
    """Judges candidates whenever it is woken, until `finish`."""

    def __init__(self, ledger: Ledger, detection: Detection, version: str, flagged: Callable[[News], None]) -> None:
        self._ledger = ledger
        self._detection = detection
        self._version = version
        self._flagged = flagged
        self._awake = asyncio.Event()
        self._finishing = False

    def wake(self) -> None:
        """There may be candidates to judge."""
        self._awake.set()

    def finish(self) -> None:
        """No more will come: judge what is pending, then end."""
        self._finishing = True
        self._awake.set()

    async def run(self) -> None:
        while not self._finishing:
            await self._awake.wait()
            self._awake.clear()
            await self.drain()

    async def drain(self) -> None:
        """Judge every pending candidate."""
        while pending := await self._ledger.do(flags.pending, BATCH):
            with STAGE_SECONDS.labels("verify").time():
                judged = [(pair, judge(pair, self._detection.of(pair.language).hamming)) for pair in pending]
                news = await self._ledger.do(flags.decide, judged, self._version)
            for (language, kind), n in news.items():
                FLAGS.labels(language, kind).inc(n)
            self._flagged(news)
