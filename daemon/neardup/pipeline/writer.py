"""One batch: look up, nominate, commit stories and candidates to the ledger, insert in the index.

The ledger commits first.  The index then catches up by the same replay that heals it after a crash
(neardup.pipeline.index_sync), so there is one way to write to it, and a batch whose index insert failed is not lost.

While one batch is written the next are looked up already, and compared one by one with those that the index did
not hold by then.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

import structlog

from neardup.config import Detection
from neardup.core.candidates.select import Alike, Nominee, nominate
from neardup.core.fingerprint.minhash import FEW_SHINGLES
from neardup.errors import NeardupError, Transient
from neardup.index.protocol import Index, LookupResult
from neardup.ledger import Ledger, fingerprint_arrays, stories
from neardup.ledger.candidates import Matches
from neardup.pipeline.bucket_caps import Caps
from neardup.pipeline.index_sync import catch_up, replay
from neardup.pipeline.index_wait import IndexWait
from neardup.pipeline.summary import Counts
from neardup.records import Banded, Checkpoint, DeadLettered, Fingerprinted, Language, Outcome, Skipped, Story
from neardup.telemetry.metrics import CANDIDATES, CAPPED, INDEX_LAG, STAGE_SECONDS, STORIES

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class LookedUp:
    """What the index has, up to the change `applied` at least, about `fresh` stories, grouped by their fingerprints."""

    fresh: list[tuple[int, Banded]]
    groups: list[Alike]
    applied: int
    found: list[LookupResult]


class Writer:
    """Looks up and writes the batches of one run; when this context ends, the index is in step with the ledger.

    With no index nothing is looked up, and nothing inserted: it is to be built from the ledger.
    `standing` is what a run's record tells beside its counts while it is under way; `checkpoint` turns a
    position to resume from into what is put on record; `committed` is called after each batch.
    """

    def __init__(
        self,
        ledger: Ledger,
        index: Index | None,
        detection: Detection,
        version: str,
        *,
        index_wait: IndexWait,
        run_id: int,
        counts: Counts,
        standing: Callable[[], dict[str, object]],
        checkpoint: Callable[[int], Checkpoint | None],
        committed: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._index = index
        self._detection = detection
        self._version = version
        self._index_wait = index_wait
        self._run_id = run_id
        self._counts = counts
        self._standing = standing
        self._checkpoint = checkpoint
        self._committed = committed
        self._told: set[Language] = set()
        self._caps = Caps()
        self._inserting: asyncio.Task[bool] | None = None
        self._writing = asyncio.Lock()  # to the index
        self._healed = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._caps.tell()
        if kind is None:
            await self._inserted()
        elif self._inserting is not None:
            self._inserting.cancel()
            with suppress(asyncio.CancelledError, NeardupError):
                await self._inserting

    async def look_up(self, batch: Sequence[Outcome]) -> LookedUp | None:
        """What the index has about a batch of outcomes, None where nobody asks; several may be looked up at a time.

        Stories that share their fingerprints share a lookup.
        """
        fresh, alike = _fingerprinted(batch), dict[Banded, list[int]]()
        for story_id, banded in fresh:
            alike.setdefault(banded, []).append(story_id)
        if self._index is None or not alike:
            return None
        groups: list[Alike] = [(ids, banded) for banded, ids in alike.items()]
        return LookedUp(fresh, groups, *await self._found(self._index, groups))

    async def _found(self, index: Index, groups: Sequence[Alike]) -> tuple[int, list[LookupResult]]:
        probes = [banded for _, banded in groups]
        with STAGE_SECONDS.labels("look_up").time():
            applied, found = await self._index_wait.until_answered("look_up", lambda: self._look_up(index, probes))
        self._caps.count([banded.language for banded in probes], found)
        return applied, found

    async def write(self, batch: Sequence[Outcome], looked: LookedUp | None, resume: int) -> None:
        """Record a batch of outcomes of distinct stories that was looked up, and the position to resume from."""
        index, nominees = self._index, dict[int, Nominee]()
        fresh = [] if looked is None else looked.fresh
        if index is not None and looked is not None:
            with STAGE_SECONDS.labels("nominate").time():
                nominees = await self._nominate(index, looked)
        for outcome in batch:
            self._counts.add(outcome)
        with STAGE_SECONDS.labels("commit").time():
            left_out = await self._ledger.do(
                stories.commit,
                stories.Batch(
                    outcomes=batch,
                    matches=[
                        Matches(story_id, nominees[story_id].matches, self._detection.of(banded.language).max_matches)
                        for story_id, banded in fresh
                    ],
                    run_id=self._run_id,
                    counts=self._counts.as_dict() | self._standing(),
                    checkpoint=self._checkpoint(resume),
                ),
            )
        INDEX_LAG.inc(sum(isinstance(outcome, Fingerprinted) for outcome in batch))
        if index is not None:
            await self._inserted()
            self._inserting = asyncio.create_task(self._insert(index), name="index")
            self._measure_matches(fresh, nominees, left_out)
        self._measure(batch)
        self._committed()

    async def _nominate(self, index: Index, looked: LookedUp) -> dict[int, Nominee]:
        """For each new fingerprint, its matches among what is indexed, what is not yet, and in its own batch."""
        while (there := await self._ledger.do(fingerprint_arrays.there, looked.found, looked.applied)) is None:
            await self._index_wait.until_answered("index", lambda: self._heal(index))
            looked = LookedUp(looked.fresh, looked.groups, *await self._found(index, looked.groups))
        held, unseen = there
        limits = {banded.language: self._detection.of(banded.language) for _, banded in looked.groups}
        nominees = await asyncio.to_thread(nominate, looked.groups, looked.found, held, limits, unseen)
        return {one.story_id: one for one in nominees}

    async def _look_up(self, index: Index, probes: Sequence[Banded]) -> tuple[int, list[LookupResult]]:
        """Look up in an index that has all that it is to have up to some change, and which that is."""
        while True:
            healed = self._healed
            applied, found = await index.lookup(probes)
            if applied is None:
                await self._heal(index)
            elif healed == self._healed:
                return applied, found

    async def _insert(self, index: Index) -> bool:
        """Tell the index of what was committed; False where that cannot be done beside look-ups, or at all."""
        with STAGE_SECONDS.labels("index").time():
            try:
                async with self._writing:
                    return await replay(index, self._ledger, self._version)
            except Transient:
                return False

    async def _inserted(self) -> None:
        """Wait until what was committed before is in the index."""
        index, inserting = self._index, self._inserting
        if index is None or inserting is None:
            return

        async def done() -> None:
            if not await inserting:
                await self._heal(index)

        await self._index_wait.until_answered("index", done)

    async def _heal(self, index: Index) -> None:
        """Bring the index to the ledger; what is looked up meanwhile does not count."""
        async with self._writing:
            try:
                await catch_up(index, self._ledger, self._version)
            finally:
                self._healed += 1

    def _measure(self, batch: Sequence[Outcome]) -> None:
        for outcome in batch:
            language = outcome.story.language if isinstance(outcome.story, Story) else "unknown"
            match outcome:
                case Fingerprinted(fingerprint=made):
                    STORIES.labels(language, "fingerprinted", "" if made.signature else FEW_SHINGLES).inc()
                case Skipped():
                    STORIES.labels(language, "skipped", outcome.reason).inc()
                case DeadLettered():
                    STORIES.labels(language, "dead_lettered", outcome.reason).inc()
                    story = outcome.story.id if isinstance(outcome.story, Story) else outcome.story.key
                    log.warning("dead-lettered", story=story, reason=outcome.reason, why=outcome.error)

    def _measure_matches(
        self, fresh: Sequence[tuple[int, Banded]], nominees: Mapping[int, Nominee], left_out: Sequence[int]
    ) -> None:
        for (story_id, banded), full in zip(fresh, left_out, strict=True):
            nominee = nominees[story_id]
            CANDIDATES.labels(banded.language).observe(len(nominee.matches))
            if nominee.capped or full:
                CAPPED.labels(banded.language).inc(nominee.capped + full)
                if banded.language not in self._told:
                    self._told.add(banded.language)
                    log.warning("max_matches reached", language=banded.language, first=story_id)


def _fingerprinted(batch: Sequence[Outcome]) -> list[tuple[int, Banded]]:
    """Who is to be looked up."""
    return [
        (one.story.id, Banded(one.story.language, one.fingerprint.simhash, one.fingerprint.signature))
        for one in batch
        if isinstance(one, Fingerprinted)
    ]
