"""One batch: look up, commit stories and candidates to the ledger, insert in the index.

The ledger commits first.  The index then catches up by the same replay that heals it after a crash
(daemon.sync), so there is one way to write to it, and a batch whose index insert failed is not lost.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import structlog

from daemon.config import Detection
from daemon.core.minhash import FEW_SHINGLES
from daemon.core.nominate import Nominee, nominate, together
from daemon.index import Found, Index
from daemon.ledger import Ledger, changes, columns, stories
from daemon.ledger.candidates import Matches
from daemon.metrics import CANDIDATES, CAPPED, CAPPED_BUCKETS, INDEX_LAG, STAGE_SECONDS, STORIES
from daemon.records import (
    Banded,
    Checkpoint,
    DeadLettered,
    Fingerprinted,
    Language,
    Outcome,
    Skipped,
    Story,
)
from daemon.summary import Counts
from daemon.sync import catch_up
from daemon.waiting import wait_for_index

log = structlog.get_logger()


@dataclass(slots=True)
class Caps:
    """What max_bucket left out of the lookups of a language: how often, and the fullest bucket."""

    times: int = 0
    fullest: str = ""
    members: int = 0

    def add(self, times: int, bucket: str, members: int) -> None:
        self.times += times
        if members > self.members:
            self.fullest, self.members = bucket, members


class Writer:
    """Writes the batches of one run.

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
        run_id: int,
        counts: Counts,
        standing: Callable[[], dict[str, object]],
        checkpoint: Callable[[int], Checkpoint | None],
        committed: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._index = index
        self._limits = {language: detection.of(language) for language in Language}
        self._version = version
        self._run_id = run_id
        self._counts = counts
        self._standing = standing
        self._checkpoint = checkpoint
        self._committed = committed
        self._told: set[Language] = set()
        self._caps: dict[Language, Caps] = {}

    async def write(self, batch: Sequence[Outcome], resume: int) -> None:
        """Record a batch of outcomes of distinct stories, and the position to resume from."""
        fresh = [
            (
                outcome.story.id,
                Banded(outcome.story.language, outcome.fingerprint.simhash, outcome.fingerprint.signature),
            )
            for outcome in batch
            if isinstance(outcome, Fingerprinted)
        ]
        index, nominees = self._index, dict[int, Nominee]()
        if index is not None:
            with STAGE_SECONDS.labels("look_up").time():
                nominees = await self._nominate(index, fresh)
        for outcome in batch:
            self._counts.add(outcome)
        with STAGE_SECONDS.labels("commit").time():
            left_out = await self._ledger.do(
                stories.commit,
                stories.Batch(
                    outcomes=batch,
                    matches=[
                        Matches(story_id, nominees[story_id].matches, self._limits[banded.language].max_matches)
                        for story_id, banded in fresh
                        if story_id in nominees
                    ],
                    run_id=self._run_id,
                    counts=self._counts.as_dict() | self._standing(),
                    checkpoint=self._checkpoint(resume),
                ),
            )
        INDEX_LAG.inc(len(fresh))
        if index is not None:
            with STAGE_SECONDS.labels("index").time():
                await wait_for_index(self._ledger, "index", lambda: catch_up(index, self._ledger, self._version))
            self._measure_matches(fresh, nominees, left_out)
        self._measure(batch)
        self._committed()

    async def _nominate(self, index: Index, fresh: Sequence[tuple[int, Banded]]) -> dict[int, Nominee]:
        """For each new fingerprint, its matches among what is indexed and in its own batch.

        Stories that share their fingerprints share a lookup.
        """
        alike: dict[Banded, list[int]] = {}
        for story_id, banded in fresh:
            alike.setdefault(banded, []).append(story_id)
        if not alike:
            return {}
        groups = [(ids, banded) for banded, ids in alike.items()]
        found = await wait_for_index(self._ledger, "look_up", lambda: self._look_up(index, list(alike)))
        self._count_caps([banded.language for banded in alike], found)
        held = await self._ledger.do(columns.held, *together(found))
        nominees = await asyncio.to_thread(nominate, groups, found, held, self._limits)
        return {one.story_id: one for one in nominees}

    def _count_caps(self, languages: Sequence[Language], found: Sequence[Found]) -> None:
        """Count the times that a lookup met a bucket over max_bucket, and keep the fullest."""
        for language, one in zip(languages, found, strict=True):
            if one.capped:
                CAPPED_BUCKETS.labels(language).inc(len(one.capped))
                fullest = max(one.capped, key=lambda bucket: one.capped[bucket])
                self._caps.setdefault(language, Caps()).add(len(one.capped), fullest, one.capped[fullest])

    def tell_of_caps(self) -> None:
        """Tell what max_bucket left out in this run, a line a language."""
        for language, caps in self._caps.items():
            log.warning(
                "max_bucket reached", language=language, times=caps.times, fullest=caps.fullest, members=caps.members
            )

    async def _look_up(self, index: Index, probes: Sequence[Banded]) -> list[Found]:
        """Look up in an index that is known to be in step with the ledger."""
        last = await self._ledger.do(changes.last_seq)
        while (answer := await index.lookup(probes))[0] != last:
            await catch_up(index, self._ledger, self._version)
        return answer[1]

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
