"""The part of a sweep that nominates by passages, without lookups.

The whole passage index is joined (see neardup.index.passages.join).  The common passages are recorded first, because
verification subtracts them; then the pairs are nominated, in the order of the higher ids of their two stories.  So the
join knows the stories by their places, from 1, in the order of their ids; these are read once, because stories may be
submitted and removed meanwhile.  A sweep that was interrupted reads the index once more, and continues after the last
story whose pairs are on record.
"""

import asyncio
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from neardup.config import Detection
from neardup.core.candidates.banding import Numbers
from neardup.core.candidates.passage_groups import DEAD, CommonHashes, Counts, LanguageOf, SharedHashes, select_best
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.sets import find_distinct
from neardup.index.passages.join import JoinStep
from neardup.ledger import Ledger, languages, passages, transaction, verification, versions
from neardup.ledger.passages import CommonPassage, FoundCommon
from neardup.nomination.common_passages import COUNTED_AT_ONCE, Holders, drop_common, read_holders
from neardup.nomination.matches import NominatedPair, record_pairs
from neardup.pipeline.passage_sync import PassageSync
from neardup.pipeline.scratch import translate_scratch_errors
from neardup.records import Language

Ids = npt.NDArray[np.int64]
STORIES_PER_READ = 20_000
ROWS_PER_COMMIT = 5_000
BEFORE_ALL = -(2**63)  # sorts before every story's id
STEP_SECONDS = 0.2  # of the join, before the stop event is checked again


class Nominated(Struct, frozen=True):
    """How many candidates were just recorded, and how many were left out, these by language.

    All candidates of the stories up to the place `through` are on record.
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
        self._ids_file = scratch / "ids.npy"  # by place; in memory they would take 8 bytes a story
        self._stop = stop
        self._show = show
        self._names: Mapping[int, Language] = {}  # by the ledger's numbers of languages
        self._language_of: LanguageOf = np.empty(0, np.uint8)  # by place
        self._steps: Iterator[JoinStep] = iter(())
        self.common = 0  # passages found to be common, once for each language

    async def find_common(self, after: int) -> bool:
        """Read the index and record the common passages; False if `stop` was set before the end.

        `nominate` will leave out the pairs of which both stories have places up to `after`.
        """
        self._names = await self._ledger.do(languages.map_names)
        versions_gone = await self._ledger.do(passages.count_gone)  # before the stories are read: some may go meanwhile
        numbers, ids = await self._read_ids()
        with translate_scratch_errors(self._scratch.parent):
            await asyncio.to_thread(np.save, self._ids_file, ids)
        del ids
        place_of = np.zeros(int(numbers.max(initial=0)) + 1, np.uint32)
        place_of[numbers] = np.arange(1, len(numbers) + 1, dtype=np.uint32)
        self._language_of, copy_keys = await self._read_languages_and_keys(place_of, len(numbers))
        most = self._detection.common_passage
        self._steps = self._passages.index.join(place_of, self._language_of, copy_keys, most, self._scratch, after)
        found = [np.empty(0, np.uint32)]
        while not self._stop.is_set():
            steps = await asyncio.to_thread(self._take_next_steps)
            for common in (step.common for step in steps if len(step.common.hashes)):
                await self._record_common(common, numbers, versions_gone)
                found.append(common.hashes)
                self.common += len(common.hashes)
            self._show(steps[-1].done)
            if steps[-1].is_read:
                await self._drop_others(find_distinct(np.concatenate(found)))
                return True
        return False

    async def _record_common(self, common: CommonHashes, numbers: Numbers, versions_gone: int) -> None:
        """Record common passages, and have the pairs of those not on record verified again.

        `numbers` are those of the stories, by place from 0; `versions_gone` is as in `_put_common`.
        """
        can_reverify = await self._ledger.do(verification.is_reverification_possible)
        spoken = [self._names[number] for number in self._language_of[common.examples].tolist()]
        columns = (column.tolist() for column in common._replace(examples=numbers[common.examples - 1]))
        rows = list(zip(spoken, *columns, strict=True))
        for start in range(0, len(rows), ROWS_PER_COMMIT):
            part, affected = rows[start : start + ROWS_PER_COMMIT], set[int]()
            if can_reverify:
                hashes = find_distinct(common.hashes[start : start + ROWS_PER_COMMIT])
                recorded = await self._ledger.do(passages.map_common_languages, hashes)
                unknown = np.setdiff1d(hashes, np.array(list(recorded), np.uint32))
                affected.update(*(await read_holders(self._passages, self._ledger, unknown)).values())
            await self._ledger.do(_put_common, part, versions_gone, affected)

    async def _drop_others(self, common: PassageHashes) -> None:
        """Record that all but these hashes, which ascend, are not common."""
        dropped = np.setdiff1d(await self._ledger.do(passages.read_all_common), common)
        for start in range(0, len(dropped), COUNTED_AT_ONCE):
            part = dropped[start : start + COUNTED_AT_ONCE]
            held = await read_holders(self._passages, self._ledger, part)
            holders_of: dict[int, Holders] = {hash_: held.get(hash_, {}) for hash_ in part.tolist()}
            await self._ledger.do(_drop_common, holders_of, self._detection)

    async def nominate(self) -> AsyncGenerator[Nominated, None]:
        """Record the candidates, some at a time, until all are or `stop` is set."""
        ids = np.asarray(np.load(self._ids_file, mmap_mode="r"))
        limits = np.zeros(max(self._names, default=0) + 1, np.int64)
        for number, language in self._names.items():
            limits[number] = self._detection.of(language).max_matches
        while not self._stop.is_set() and (steps := await asyncio.to_thread(self._take_next_steps)):
            left_out, cut = Counter[Language](), set[int]()
            pairs = [pair for step in steps for pair in self._choose_best(step.pairs, ids, limits, left_out, cut)]
            for start in range(0, len(pairs), ROWS_PER_COMMIT):
                if self._stop.is_set():
                    return
                part = pairs[start : start + ROWS_PER_COMMIT]
                await self._ledger.do(record_pairs, part, self._detection, cut, by_passages=True)
            yield Nominated(len(pairs), left_out, steps[-1].through)
            self._show(steps[-1].done)

    async def _read_languages_and_keys(self, place_of: Numbers, size: int) -> tuple[LanguageOf, Numbers]:
        """The language of each place and its copy key; incomplete if `stop` is set meanwhile.

        `place_of` has the places of the `size` stories by their numbers.  The place 0, and that of a story that has
        gone meanwhile, has DEAD for a language.
        """
        number = 0
        language_of, copy_keys = np.full(size + 1, DEAD, np.uint8), np.zeros(size + 1, np.uint32)
        while not self._stop.is_set():
            numbers, spoken, keys = await self._ledger.do(versions.list_holders_after, number, STORIES_PER_READ)
            if len(numbers):
                number = int(numbers[-1])
            known = numbers < len(place_of)  # a story that was submitted meanwhile is looked up
            if not known.any():
                break
            places = place_of[numbers[known]]
            language_of[places], copy_keys[places] = spoken[known], keys[known]
        language_of[0] = DEAD
        return language_of, copy_keys

    async def _read_ids(self) -> tuple[Numbers, Ids]:
        """The numbers and the ids of all stories, by id; incomplete if `stop` is set meanwhile."""
        numbers, ids, story_id = [np.empty(0, np.uint32)], [np.empty(0, np.int64)], BEFORE_ALL
        while not self._stop.is_set():
            part, read = await self._ledger.do(versions.list_ids_after, story_id, STORIES_PER_READ)
            if not len(part):
                break
            numbers.append(part)
            ids.append(read)
            story_id = int(read[-1])
        return np.concatenate(numbers), np.concatenate(ids)

    def _take_next_steps(self) -> list[JoinStep]:
        """The next steps of the join, for about STEP_SECONDS; none at its end."""
        deadline, steps = time.monotonic() + STEP_SECONDS, list[JoinStep]()
        with translate_scratch_errors(self._scratch.parent):
            for step in self._steps:
                steps.append(step)
                if step.is_read or time.monotonic() >= deadline:
                    break
        return steps

    def _choose_best(
        self, pairs: SharedHashes, ids: Ids, limits: Counts, left_out: Counter[Language], cut: set[int]
    ) -> list[NominatedPair]:
        """The best matches of each story, best first; counts the others in `left_out`, their stories go to `cut`."""
        best, others = select_best(pairs, self._language_of, limits)
        left_out.update(self._names[number] for number in self._language_of[pairs.right[others]].tolist())
        cut.update(ids[pairs.right[others] - 1].tolist())
        rows = ids[pairs.right[best] - 1], ids[pairs.left[best] - 1], self._language_of[pairs.right[best]]
        return [
            (story, match, self._names[language])
            for story, match, language in zip(*(column.tolist() for column in rows), strict=True)
        ]


def _put_common(
    db: sqlite3.Connection,
    rows: Sequence[tuple[Language, int, int, int, int]],
    versions_gone: int,
    affected: Collection[int],
) -> None:
    """Record common passages, given by their languages and the columns of CommonHashes.

    `affected` are the ids of holders, and `versions_gone` is how many were gone before the holders were counted.  An
    example, given by its number, may have gone since.
    """
    id_of = versions.read_ids(db, [example for *_, example in rows])
    described = [
        CommonPassage(language, passage, holders, id_of.get(example), due_at=versions_gone + surplus)
        for language, passage, holders, surplus, example in rows
    ]
    with transaction(db):
        verification.put_common(db, FoundCommon(described, affected))


def _drop_common(db: sqlite3.Connection, held: Mapping[int, Holders], detection: Detection) -> None:
    with transaction(db):
        drop_common(db, held, detection)
