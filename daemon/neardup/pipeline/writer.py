"""Writes batches: looks them up, nominates candidates, commits stories and candidates, inserts stories in the index.

The ledger commits first.  The index is then updated by the replay that also repairs it after a crash
(neardup.pipeline.index_sync).  So there is only one way to write to it, and a failed insert loses nothing.

While one batch is written, the next ones are looked up already.  A batch is therefore also compared, one by one, with
the stories that the index did not hold yet when the batch was looked up.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

import structlog

from neardup.config import Detection
from neardup.core.candidates.select import Nominee, StoryGroup, nominate
from neardup.core.fingerprint.minhash import FEW_SHINGLES
from neardup.errors import IndexDamaged, NeardupError, Transient
from neardup.index.protocol import Index, LookupResult
from neardup.ledger import Ledger, fingerprint_arrays, stories
from neardup.ledger.candidates import Matches
from neardup.pipeline.bucket_caps import BucketCaps
from neardup.pipeline.index_sync import catch_up, replay
from neardup.pipeline.index_wait import IndexWait
from neardup.pipeline.summary import Counts
from neardup.records import (
    BandedFingerprint,
    Checkpoint,
    DeadLettered,
    Fingerprinted,
    Language,
    Outcome,
    Skipped,
    Story,
)
from neardup.telemetry.metrics import CANDIDATES, CAPPED, INDEX_LAG, STAGE_SECONDS, STORIES

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class BatchLookup:
    """The results of looking up a batch in an index that had applied the changes up to `applied`, or more.

    `fresh` are the ids and fingerprints of the stories looked up; `groups` has those with equal fingerprints together,
    and `found` has the result of each group.
    """

    fresh: list[tuple[int, BandedFingerprint]]
    groups: list[StoryGroup]
    applied: int
    found: list[LookupResult]


class Writer:
    """Looks up and writes the batches of one run; when this context ends, the index is in step with the ledger.

    Without an index, nothing is looked up or inserted.  `live_facts` returns what the run's record holds beside the
    counts while the run is in progress; `checkpoint` returns the checkpoint to record for a position to resume from;
    `committed` is called after each batch.
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
        live_facts: Callable[[], dict[str, object]],
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
        self._live_facts = live_facts
        self._checkpoint = checkpoint
        self._committed = committed
        self._capped_languages: set[Language] = set()
        self._caps = BucketCaps()
        self._insert_task: asyncio.Task[bool] | None = None
        self._index_lock = asyncio.Lock()  # of writes to the index
        self._repairs = 0  # so far; a lookup during a repair is repeated

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._caps.log()
        if kind is None:
            await self.finish_insert()
        elif self._insert_task is not None:
            self._insert_task.cancel()
            with suppress(asyncio.CancelledError, NeardupError):
                await self._insert_task

    async def look_up(self, batch: Sequence[Outcome]) -> BatchLookup | None:
        """Look up the stories of a batch that were fingerprinted; None if there are none, or no index.

        Stories with equal fingerprints share a lookup.  Several batches may be looked up at a time.
        """
        fresh, ids_of = _fingerprinted(batch), dict[BandedFingerprint, list[int]]()
        for story_id, banded in fresh:
            ids_of.setdefault(banded, []).append(story_id)
        if self._index is None or not ids_of:
            return None
        groups: list[StoryGroup] = [(ids, banded) for banded, ids in ids_of.items()]
        return BatchLookup(fresh, groups, *await self._look_up_groups(self._index, groups))

    async def _look_up_groups(self, index: Index, groups: Sequence[StoryGroup]) -> tuple[int, list[LookupResult]]:
        probes = [banded for _, banded in groups]
        with STAGE_SECONDS.labels("look_up").time():
            applied, found = await self._index_wait.until_answered("look_up", lambda: self._look_up(index, probes))
        self._caps.count([banded.language for banded in probes], found)
        return applied, found

    async def write(self, batch: Sequence[Outcome], lookup: BatchLookup | None, resume: int) -> None:
        """Record a batch of outcomes of distinct stories, looked up before, and the position to resume from."""
        index, nominees = self._index, dict[int, Nominee]()
        fresh = [] if lookup is None else lookup.fresh
        if index is not None and lookup is not None:
            with STAGE_SECONDS.labels("nominate").time():
                nominees = await self._nominate(index, lookup)
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
                    counts=self._counts.as_dict() | self._live_facts(),
                    checkpoint=self._checkpoint(resume),
                ),
            )
        INDEX_LAG.inc(sum(isinstance(outcome, Fingerprinted) for outcome in batch))
        if index is not None:
            await self.finish_insert()
            self._insert_task = asyncio.create_task(self._insert(index), name="index")
            self._measure_matches(fresh, nominees, left_out)
        self._measure(batch)
        self._committed()

    async def _nominate(self, index: Index, lookup: BatchLookup) -> dict[int, Nominee]:
        """For each story looked up, its matches among the stories found, those not indexed yet, and its own batch."""
        # None: the index is too far behind the ledger
        while (
            arrays := await self._ledger.do(fingerprint_arrays.for_nomination, lookup.found, lookup.applied)
        ) is None:
            await self._index_wait.until_answered("index", lambda: self._repair(index))
            lookup = BatchLookup(lookup.fresh, lookup.groups, *await self._look_up_groups(index, lookup.groups))
        held, unindexed = arrays
        thresholds = {banded.language: self._detection.of(banded.language) for _, banded in lookup.groups}
        nominees = await asyncio.to_thread(nominate, lookup.groups, lookup.found, held, thresholds, unindexed)
        return {one.story_id: one for one in nominees}

    async def _look_up(self, index: Index, probes: Sequence[BandedFingerprint]) -> tuple[int, list[LookupResult]]:
        """Look up, after a repair if the index has no position; returns the last change applied, and the results."""
        while True:
            repairs = self._repairs
            try:
                applied, found = await index.lookup(probes)
            except IndexDamaged:
                applied = None
            if applied is None:
                await self._repair(index)
            elif repairs == self._repairs:
                return applied, found

    async def _insert(self, index: Index) -> bool:
        """Insert into the index what was committed; False if the index needs a repair first, or does not answer."""
        with STAGE_SECONDS.labels("index").time():
            try:
                async with self._index_lock:
                    return await replay(index, self._ledger, self._version)
            except Transient:
                return False

    async def finish_insert(self) -> None:
        """Wait until the index holds every batch committed so far."""
        index, insert_task = self._index, self._insert_task
        if index is None or insert_task is None:
            return

        async def finish() -> None:
            if not await insert_task:
                await self._repair(index)

        await self._index_wait.until_answered("index", finish)

    async def _repair(self, index: Index) -> None:
        """Bring the index to the ledger's last change; lookups made meanwhile are repeated."""
        async with self._index_lock:
            try:
                await catch_up(index, self._ledger, self._version)
            finally:
                self._repairs += 1

    def _measure(self, batch: Sequence[Outcome]) -> None:
        for outcome in batch:
            language = outcome.story.language if isinstance(outcome.story, Story) else "unknown"
            match outcome:
                case Fingerprinted(fingerprint=fingerprint):
                    STORIES.labels(language, "fingerprinted", "" if fingerprint.signature else FEW_SHINGLES).inc()
                case Skipped():
                    STORIES.labels(language, "skipped", outcome.reason).inc()
                case DeadLettered():
                    STORIES.labels(language, "dead_lettered", outcome.reason).inc()
                    story = outcome.story.id if isinstance(outcome.story, Story) else outcome.story.key
                    log.warning("dead-lettered", story=story, reason=outcome.reason, why=outcome.error)

    def _measure_matches(
        self,
        fresh: Sequence[tuple[int, BandedFingerprint]],
        nominees: Mapping[int, Nominee],
        all_left_out: Sequence[int],
    ) -> None:
        for (story_id, banded), left_out in zip(fresh, all_left_out, strict=True):
            nominee = nominees[story_id]
            CANDIDATES.labels(banded.language).observe(len(nominee.matches))
            if nominee.capped or left_out:
                CAPPED.labels(banded.language).inc(nominee.capped + left_out)
                if banded.language not in self._capped_languages:
                    self._capped_languages.add(banded.language)
                    log.warning("max_matches reached", language=banded.language, first=story_id)


def _fingerprinted(batch: Sequence[Outcome]) -> list[tuple[int, BandedFingerprint]]:
    """The ids and fingerprints of the stories of a batch that were fingerprinted."""
    return [
        (one.story.id, BandedFingerprint(one.story.language, one.fingerprint.simhash, one.fingerprint.signature))
        for one in batch
        if isinstance(one, Fingerprinted)
    ]
