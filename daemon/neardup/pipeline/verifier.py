"""Pending candidates -> the texts -> exact arithmetic -> flags.  A bounded stage of its own, and idempotent.

Candidates are committed with their stories, so a crash leaves them pending, not lost; judging a
pair again gives the same flag.  A pair whose text the store did not give stays pending, until the
last pass of the run, or the next run.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

from neardup.config import Detection
from neardup.core.verify.scores import Shingled, assess
from neardup.ledger import Ledger, candidates, flags
from neardup.pages.text_cache import NoText, Texts
from neardup.records import Assessment, Candidate, Kind, Language
from neardup.telemetry.metrics import ESTIMATED, FLAGS, NEAR_MISSES, STAGE_SECONDS

BATCH = 250
HASH_BYTES = 8  # of a word, or of a shingle
HELD_BYTES = 64_000_000  # of texts that are judged together
BEFORE_ALL = (-(2**63), 0)

News = Counter[tuple[Language, Kind]]


class Verifier:
    """Judges candidates whenever it is woken, until `finish`."""

    def __init__(
        self, ledger: Ledger, detection: Detection, version: str, texts: Texts, flagged: Callable[[News], None]
    ) -> None:
        self._ledger = ledger
        self._detection = detection
        self._version = version
        self._texts = texts
        self._flagged = flagged
        self._awake = asyncio.Event()
        self._finishing = False
        self._silent: set[bytes] = set()  # texts that the store did not give

    def wake(self) -> None:
        """There may be candidates to judge."""
        self._awake.set()

    def finish(self) -> None:
        """No more will come: judge what is pending, then end."""
        self._finishing = True
        self._awake.set()

    async def run(self) -> None:
        """Until `finish`, and then once more: a pass does not see what was committed behind it."""
        last = False
        while not last:
            await self._awake.wait()
            self._awake.clear()
            last = self._finishing
            if last:
                self._silent.clear()
            await self.drain()

    async def drain(self) -> None:
        """Judge every pending candidate once."""
        after = BEFORE_ALL
        while pending := await self._ledger.do(candidates.pending, after, BATCH):
            pending = _readable(pending)
            after = pending[-1].a.id, pending[-1].b.id
            with STAGE_SECONDS.labels("verify").time():
                assessed = await self._assess(pending)
                news = await self._ledger.do(flags.record, assessed, self._version)
            for pair, assessment in assessed:
                _count(pair, assessment)
            for (language, kind), n in news.items():
                FLAGS.labels(language, kind).inc(n)
            self._flagged(news)

    async def _assess(self, pairs: Sequence[Candidate]) -> list[tuple[Candidate, Assessment | None]]:
        """The assessments of the pairs whose texts the store gave or reported missing."""
        wanted = [
            (pair.language, side)
            for pair in pairs
            if pair.a.text_hash != pair.b.text_hash and not self._silent & {pair.a.text_hash, pair.b.text_hash}
            for side in (pair.a, pair.b)
        ]
        read = await self._texts.read(wanted)
        self._silent |= {key for key, text in read.items() if text is NoText.UNANSWERED}
        texts = {
            key: text if isinstance(text, Shingled) else None
            for key, text in read.items()
            if text is not NoText.UNANSWERED
        }

        def work() -> list[tuple[Candidate, Assessment | None]]:
            return [
                (pair, assess(pair, texts.get(pair.a.text_hash), texts.get(pair.b.text_hash), thresholds))
                for pair in pairs
                if pair.a.text_hash == pair.b.text_hash or {pair.a.text_hash, pair.b.text_hash} <= texts.keys()
                for thresholds in [self._detection.of(pair.language)]
            ]

        return await asyncio.to_thread(work)


def _readable(pairs: list[Candidate]) -> list[Candidate]:
    """As many of them, from the first on, as have texts that are held at once."""
    taken, held = 0, set[bytes]()
    for n, pair in enumerate(pairs):
        for side in (pair.a, pair.b):
            if pair.a.text_hash != pair.b.text_hash and side.text_hash not in held:
                held.add(side.text_hash)
                taken += HASH_BYTES * (side.words + side.shingles)
        if n and taken > HELD_BYTES:
            return pairs[:n]
    return pairs


def _count(pair: Candidate, assessment: Assessment | None) -> None:
    if assessment is not None and assessment.kind is None:
        NEAR_MISSES.labels(pair.language).inc()
    if assessment is not None and assessment.signals.estimated:
        ESTIMATED.labels(pair.language).inc()
