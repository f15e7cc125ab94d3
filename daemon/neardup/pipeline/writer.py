"""Writes batches: looks them up, nominates candidates, commits stories and candidates, inserts stories in the index.

The ledger commits first.  The index is then updated by the replay that also repairs it after a crash
(neardup.pipeline.index_sync).  So there is only one way to write to it, and a failed insert loses nothing.

While one batch is written, the next ones are looked up already.  A batch is therefore also compared, one by one, with
the stories that the index did not hold yet when the batch was looked up.

What was written is counted in the metrics; dead letters and caps that were reached are logged.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from operator import itemgetter
from typing import Self

from msgspec import Struct, field
from msgspec.structs import replace

from neardup.config import Detection
from neardup.core.candidates.select import Nominee, StoryGroup
from neardup.core.columns import Outcomes
from neardup.errors import IndexDamaged, NeardupError, Transient
from neardup.index.protocol import Bucket, Index, LookupResult
from neardup.ledger import Ledger, stories
from neardup.ledger.passages import NONE_FOUND
from neardup.nomination.lookup import group_stories, join_matches, nominate_groups
from neardup.nomination.passages import PassageLookup, PassageMatches, PassageNomination
from neardup.pipeline.index_sync import IndexWait, catch_up, replay
from neardup.pipeline.passage_sync import PassageSync
from neardup.pipeline.stages import MAX_BATCHES
from neardup.pipeline.summary import Counts
from neardup.records import (
    FEW_SHINGLES,
    BandedFingerprint,
    Checkpoint,
    DeadLettered,
    Language,
    ShownId,
    Skipped,
    Story,
    show_id,
)
from neardup.telemetry.log import log
from neardup.telemetry.metrics import (
    CANDIDATES,
    CAPPED,
    INDEX_LAG,
    LARGE_BUCKETS,
    MARKED,
    STAGE_SECONDS,
    STORIES,
    observe_all,
)


class BatchLookup(Struct, frozen=True):
    """The results of looking up a batch in an index that had applied the changes up to `applied`, or more.

    `fresh` are the ids and fingerprints of the stories looked up; `groups` has those with equal fingerprints together,
    and `found` has the result of each group.  `passages` are the results of looking up their passages.
    """

    fresh: list[tuple[int, BandedFingerprint]]
    groups: list[StoryGroup]
    applied: int
    found: list[LookupResult]
    passages: PassageLookup


class LargeBuckets(Struct):
    """The buckets of more than max_bucket members that the lookups of a run read, by language."""

    times: Counter[Language] = field(default_factory=Counter)
    fullest: dict[Language, tuple[Bucket, int]] = {}  # with its members

    def count(self, languages: Sequence[Language], results: Sequence[LookupResult]) -> None:
        """Count the large buckets in the results of lookups; `languages` has the language of each."""
        for language, result in zip(languages, results, strict=True):
            if result.large:
                LARGE_BUCKETS.labels(language).inc(len(result.large))
                self.times[language] += len(result.large)
                known = [self.fullest[language]] if language in self.fullest else []
                self.fullest[language] = max([*known, *result.large.items()], key=itemgetter(1))

    def log(self) -> None:
        """Log one line for each language with large buckets."""
        for language, (bucket, members) in self.fullest.items():
            times = self.times[language]
            log.warning("max_bucket reached", language=language, times=times, fullest=str(bucket), members=members)


class Writer(Struct, dict=True):
    """Looks up and writes the batches of one run; when this context ends, the index is in step with the ledger.

    Without an index, nothing is looked up, and only the passage index is kept in step.  `live_facts` returns what the
    run's record holds beside the counts while the run is in progress; `checkpoint` returns the checkpoint to record for
    a position to resume from; `committed` is called after each batch.
    """

    ledger: Ledger
    index: Index | None
    detection: Detection
    version: str
    passages: PassageSync
    index_wait: IndexWait
    run_id: int
    counts: Counts
    live_facts: Callable[[], dict[str, object]]
    checkpoint: Callable[[int], Checkpoint | None]
    committed: Callable[[], None]
    capped_languages: set[Language] = field(default_factory=set)
    large_buckets: LargeBuckets = field(default_factory=LargeBuckets)
    insert_task: asyncio.Task[bool] | None = None
    index_lock: asyncio.Lock = field(default_factory=asyncio.Lock)  # of writes to the index
    repairs: int = 0  # so far; a lookup during a repair is repeated

    @cached_property
    def nomination(self) -> PassageNomination:
        return PassageNomination(self.passages, self.ledger, self.detection, most_recent=2 * MAX_BATCHES)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.large_buckets.log()
        if kind is None:
            await self.finish_insert()
        elif self.insert_task is not None:
            self.insert_task.cancel()
            with suppress(asyncio.CancelledError, NeardupError):
                await self.insert_task

    async def look_up(self, batch: Outcomes) -> BatchLookup | None:
        """Look up the stories of a batch that were fingerprinted; None if there are none, or no index.

        Stories with equal fingerprints share a lookup.  Several batches may be looked up at a time.
        """
        if self.index is None or not len(batch.made):
            return None
        fresh = list(zip(batch.made.stories.ids, batch.made.band_fingerprints(), strict=True))
        groups = group_stories(fresh)
        applied, found = await self._look_up_groups(self.index, groups)
        return BatchLookup(fresh, groups, applied, found, await self.nomination.look_up(batch))

    async def _look_up_groups(self, index: Index, groups: Sequence[StoryGroup]) -> tuple[int, list[LookupResult]]:
        probes = [banded for _, banded in groups]
        with STAGE_SECONDS.labels("look_up").time():
            applied, found = await self.index_wait.wait_for_answer("look_up", lambda: self._look_up(index, probes))
        self.large_buckets.count([banded.language for banded in probes], found)
        return applied, found

    async def write(self, batch: Outcomes, lookup: BatchLookup | None, resume: int) -> None:
        """Record a batch of outcomes of distinct stories, looked up before, and the position to resume from."""
        index, nominees, common = self.index, dict[int, Nominee](), NONE_FOUND
        by_passages: Mapping[int, PassageMatches] = {}
        fresh = [] if lookup is None else lookup.fresh
        if index is not None and lookup is not None:
            with STAGE_SECONDS.labels("nominate").time():
                nominees = await self._nominate(index, lookup)
            by_passages, (_, common) = await self.nomination.nominate(lookup.passages)
        self.counts.add(batch)
        with STAGE_SECONDS.labels("commit").time():
            left_out = await self.ledger.do(
                stories.commit,
                stories.Batch(
                    outcomes=batch,
                    matches=join_matches(fresh, nominees, by_passages, self.detection),
                    run_id=self.run_id,
                    counts=self.counts.as_dict() | self.live_facts(),
                    checkpoint=self.checkpoint(resume),
                    common=common,
                ),
            )
        INDEX_LAG.inc(len(batch.made))
        if index is not None:
            await self.finish_insert()
            self.insert_task = asyncio.create_task(self._insert(index), name="index")
        await self.passages.keep_up()
        self.nomination.note_commit([] if lookup is None else lookup.passages.probes)
        if index is not None:
            names = dict(zip(batch.made.stories.ids, batch.made.stories.names, strict=True))
            found = defaultdict[Language, list[int]](list)
            for (story_id, banded), capped in zip(fresh, left_out, strict=True):
                found[banded.language].append(len({*nominees[story_id].matches, *by_passages[story_id].ids}))
                self._count_capped(show_id(story_id, names[story_id]), banded.language, capped)
            for language, numbers in found.items():
                observe_all(CANDIDATES.labels(language), numbers)
        count_outcomes(batch)
        self.committed()

    def _count_capped(self, story: ShownId, language: Language, capped: int) -> None:
        """Count the matches of a story that max_matches left out; a language is logged once."""
        if capped:
            CAPPED.labels(language).inc(capped)
            if language not in self.capped_languages:
                self.capped_languages.add(language)
                log.warning("max_matches reached", language=language, first=story)

    async def _nominate(self, index: Index, lookup: BatchLookup) -> dict[int, Nominee]:
        """For each story looked up, its matches among the stories found, those not indexed yet, and its own batch."""
        while True:
            nominees = await nominate_groups(self.ledger, self.detection, lookup.groups, lookup.found, lookup.applied)
            if nominees is not None:
                return {nominee.story_id: nominee for nominee in nominees}
            await self.index_wait.wait_for_answer("index", lambda: self._repair(index))
            applied, found = await self._look_up_groups(index, lookup.groups)
            lookup = replace(lookup, applied=applied, found=found)

    async def _look_up(self, index: Index, probes: Sequence[BandedFingerprint]) -> tuple[int, list[LookupResult]]:
        """Look up, after a repair if the index has no position; returns the last change applied, and the results."""
        while True:
            repairs = self.repairs
            try:
                applied, found = await index.look_up(probes)
            except IndexDamaged:
                applied = None
            if applied is None:
                await self._repair(index)
            elif repairs == self.repairs:
                return applied, found

    async def _insert(self, index: Index) -> bool:
        """Insert into the index what was committed; False if the index needs a repair first, or does not answer."""
        with STAGE_SECONDS.labels("index").time():
            try:
                async with self.index_lock:
                    return await replay(index, self.ledger, self.version)
            except Transient:
                return False

    async def finish_insert(self) -> None:
        """Wait until the index holds every batch committed so far."""
        index, insert_task = self.index, self.insert_task
        if index is None or insert_task is None:
            return

        async def finish() -> None:
            if not await insert_task:
                await self._repair(index)

        await self.index_wait.wait_for_answer("index", finish)

    async def _repair(self, index: Index) -> None:
        """Bring the index to the ledger's last change; lookups made meanwhile are repeated."""
        async with self.index_lock:
            try:
                await catch_up(index, self.ledger, self.version)
            finally:
                self.repairs += 1


def count_outcomes(batch: Outcomes) -> None:
    """Count the outcomes of a batch, and log its dead letters."""
    made = batch.made
    signed = zip(made.stories.languages, made.pages.signed.tolist(), strict=True)
    counts = Counter(  # added at once: an increment takes 5 us
        {
            (language, "fingerprinted", "" if is_signed else FEW_SHINGLES): n
            for (language, is_signed), n in Counter(signed).items()
        }
    )
    mark_counts = Counter(
        (language, mark.reason)
        for language, marks in zip(made.stories.languages, made.pages.marks, strict=True)
        for mark in marks
    )
    for outcome in batch.others:
        language = outcome.story.language if isinstance(outcome.story, Story) else Language("unknown")
        match outcome:
            case Skipped():
                mark_counts.update((language, mark.reason) for mark in outcome.marks or ())
                counts[language, "skipped", outcome.reason] += 1
            case DeadLettered():
                counts[language, "dead_lettered", outcome.reason] += 1
                log.warning("dead-lettered", story=outcome.story.shown, reason=outcome.reason, why=outcome.error)
    for labels, count in counts.items():
        STORIES.labels(*labels).inc(count)
    for (language, reason), count in mark_counts.items():
        MARKED.labels(language, reason).inc(count)
