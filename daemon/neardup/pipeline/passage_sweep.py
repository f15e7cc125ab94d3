"""The part of a sweep that nominates by passages, without lookups.

The whole passage index is joined (see neardup.index.passages.join).  The common passages are recorded first, because
verification subtracts them; then the pairs are nominated, in the order of the number of their later story.  A sweep
that was interrupted reads the index once more, and continues after the last story whose pairs are on record.
"""

import asyncio
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neardup.config import Detection
from neardup.core.candidates.banding import Numbers
from neardup.core.candidates.passage_groups import (
    DEAD,
    CommonHashes,
    Counts,
    Ids,
    LanguageOf,
    SharedHashes,
    select_best,
)
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.index.passages.join import JoinStep
from neardup.ledger import Ledger, languages, outbox, passages, transaction, verification, versions
from neardup.ledger.passages import CommonPassage, FoundCommon
from neardup.nomination.common_passages import COUNTED_AT_ONCE, Holders, drop_common, read_holders
from neardup.nomination.matches import NominatedPair, record_pairs, shortlist_limit
from neardup.pipeline.passage_sync import PassageSync
from neardup.pipeline.scratch import scratch_errors
from neardup.records import Language

STORIES_PER_READ = 20_000
ROWS_PER_COMMIT = 5_000
BEFORE_ALL = -(2**63)  # sorts before every story's id
STEP_SECONDS = 0.2  # of the join, before the stop event is checked again


@dataclass(frozen=True, slots=True)
class Nominated:
    """The candidates just recorded, and those left out, by language.

    All candidates of the stories with numbers up to `through` are on record.
    """

    candidates: int
    left_out: Counter[Language]
    through: int


class PassageSweep:
    """The join of one sweep: first `find_common`, then `nominate`; both call `show` with the share of it that is done.

    `scratch` is a folder for scratch files.  Both raise Fatal if the folder has no room, and PassagesDamaged.
    """

    def __init__(
        self,
        passages: PassageSync,
        ledger: Ledger,
        detection: Detection,
        scratch: Path,
        *,
        stop: asyncio.Event,
        show: Callable[[float], None],
    ) -> None:
        self._passages = passages
        self._ledger = ledger
        self._detection = detection
        self._scratch = scratch
        self._stop = stop
        self._show = show
        self._names: Mapping[int, Language] = {}  # by the ledger's numbers of languages
        self._language_of: LanguageOf = np.empty(0, np.uint8)  # by story number
        self._steps: Iterator[JoinStep] = iter(())
        self.common = 0  # passages found to be common, once for each language

    async def find_common(self, after: int) -> bool:
        """Read the index and record the common passages; False if `stop` was set before the end.

        `nominate` will leave out the pairs whose later story has a number up to `after`.
        """
        self._names = await self._ledger.do(languages.names)
        self._language_of, copy_keys = await self._read_holders()
        most = self._detection.common_passage
        self._steps = self._passages.index.join(self._language_of, copy_keys, most, self._scratch, after)
        found = [np.empty(0, np.uint32)]
        while not self._stop.is_set():
            steps = await asyncio.to_thread(self._next_steps)
            for common in (step.common for step in steps if len(step.common.hashes)):
                await self._record_common(common)
                found.append(common.hashes)
                self.common += len(common.hashes)
            self._show(steps[-1].done)
            if steps[-1].is_read:
                await self._drop_others(np.unique(np.concatenate(found)))
                return True
        return False

    async def _record_common(self, common: CommonHashes) -> None:
        """Record common passages, and have the pairs of those not on record verified again."""
        flagged = await self._ledger.do(verification.is_reverification_possible)
        left = await self._ledger.do(passages.count_left)
        rows = list(zip(*(column.tolist() for column in common), strict=True))
        for start in range(0, len(rows), ROWS_PER_COMMIT):
            some, holders = rows[start : start + ROWS_PER_COMMIT], set[int]()
            hashes = np.unique(common.hashes[start : start + ROWS_PER_COMMIT])
            recorded = await self._ledger.do(passages.languages_of_common, hashes) if flagged else hashes.tolist()
            unknown = np.setdiff1d(hashes, np.array(list(recorded), np.uint32))
            for held in (await read_holders(self._passages, self._ledger, unknown)).values():
                holders.update(held)
            await self._ledger.do(_put_common, some, left, holders)

    async def _drop_others(self, common: PassageHashes) -> None:
        """Record that all but these hashes, which ascend, are not common."""
        gone = np.setdiff1d(await self._ledger.do(passages.all_common), common)
        for start in range(0, len(gone), COUNTED_AT_ONCE):
            some = gone[start : start + COUNTED_AT_ONCE]
            held = await read_holders(self._passages, self._ledger, some)
            holders_of: dict[int, Holders] = {hash_: held.get(hash_, {}) for hash_ in some.tolist()}
            await self._ledger.do(_drop_common, holders_of, self._detection)

    async def nominate(self) -> AsyncGenerator[Nominated, None]:
        """Record the candidates, some at a time, until all are or `stop` is set."""
        limits, ids = await self._shortlist_limits(), await self._read_ids()
        while not self._stop.is_set() and (steps := await asyncio.to_thread(self._next_steps)):
            left_out = Counter[Language]()
            pairs = [pair for step in steps for pair in self._best(step.pairs, ids, limits, left_out)]
            full = Counter[Language]()
            for start in range(0, len(pairs), ROWS_PER_COMMIT):
                if self._stop.is_set():
                    return
                some = pairs[start : start + ROWS_PER_COMMIT]
                full += await self._ledger.do(record_pairs, some, self._detection, by_passages=True)
            yield Nominated(len(pairs) - full.total(), left_out + full, steps[-1].through)
            self._show(steps[-1].done)

    async def _read_holders(self) -> tuple[LanguageOf, Numbers]:
        """The language of each number, or DEAD, and its copy key; incomplete if `stop` is set meanwhile."""
        size, number = await self._ledger.do(outbox.last_seq) + 1, 0
        language_of, copy_keys = np.full(size, DEAD, np.uint8), np.zeros(size, np.uint32)
        while not self._stop.is_set():
            numbers, spoken, keys = await self._ledger.do(versions.holders_after, number, STORIES_PER_READ)
            if not len(numbers):
                break
            language_of[numbers], copy_keys[numbers], number = spoken, keys, int(numbers[-1])
        return language_of, copy_keys

    async def _read_ids(self) -> Ids:
        """The id of each story, by number; incomplete if `stop` is set meanwhile."""
        ids, story_id = np.zeros(len(self._language_of), np.int64), BEFORE_ALL
        while not self._stop.is_set():
            numbers, read = await self._ledger.do(versions.ids_after, story_id, STORIES_PER_READ)
            if not len(numbers):
                break
            ids[numbers], story_id = read, int(read[-1])
        return ids

    async def _shortlist_limits(self) -> Counts:
        """The limit of matches of a story to nominate, by the number of its language."""
        limits = np.zeros(max(self._names, default=0) + 1, np.int64)
        for number, language in self._names.items():
            limits[number] = await self._ledger.do(shortlist_limit, language, self._detection)
        return limits

    def _next_steps(self) -> list[JoinStep]:
        """The next steps of the join, for about STEP_SECONDS; none at its end."""
        deadline, steps = time.monotonic() + STEP_SECONDS, list[JoinStep]()
        with scratch_errors(self._scratch.parent):
            for step in self._steps:
                steps.append(step)
                if step.is_read or time.monotonic() >= deadline:
                    break
        return steps

    def _best(self, pairs: SharedHashes, ids: Ids, limits: Counts, left_out: Counter[Language]) -> list[NominatedPair]:
        """The best matches of each story, best first; counts the others in `left_out`."""
        best, excess = select_best(pairs, ids, self._language_of, limits)
        left_out.update({self._names[number]: int(excess[number]) for number in np.flatnonzero(excess).tolist()})
        rows = ids[pairs.right[best]], ids[pairs.left[best]], self._language_of[pairs.right[best]]
        return [
            (story, match, self._names[language])
            for story, match, language in zip(*(column.tolist() for column in rows), strict=True)
        ]


def _put_common(
    db: sqlite3.Connection, rows: Sequence[tuple[int, int, int, int]], left: int, affected: Collection[int]
) -> None:
    """Record common passages, given as the columns of CommonHashes; `affected` are holders, by id.

    `left` is how many versions had left when they were counted.
    """
    stories = versions.holders_of(db, [example for *_, example in rows])
    described = [
        CommonPassage(story.language, passage, holders, story.story_id, left + surplus)
        for passage, holders, surplus, example in rows
        for story in [stories[example]]
    ]
    with transaction(db):
        verification.put_common(db, FoundCommon(described, affected))


def _drop_common(db: sqlite3.Connection, held: Mapping[int, Holders], detection: Detection) -> None:
    with transaction(db):
        drop_common(db, held, detection)
