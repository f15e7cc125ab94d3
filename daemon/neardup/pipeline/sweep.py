"""`neardup sweep`: flags the pairs among all stories of the ledger, without an index.

All fingerprints are read into memory, 89 bytes per story.  Then, language by language, the sweep nominates the pairs
that lookups would have nominated, records them and verifies them.  Last come the pairs that share passages.  A sweep
that was interrupted resumes with the languages and the passages that are left, unless stories or thresholds have
changed since.

By passages, nothing is looked up either: the whole passage index is joined (see neardup.index.passages.join).  The
common passages are recorded first, because verification subtracts them; then the pairs are nominated, in the order of
the higher ids of their two stories.  So the join knows the stories by their places, from 1, in the order of their ids;
these are read once, because stories may be submitted and removed meanwhile.  A sweep that was interrupted reads the
index once more, and continues after the last story whose pairs are on record.
"""

import asyncio
import json
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any, ClassVar, Self

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import asdict

from neardup.config import Detection
from neardup.config import Run as RunSection
from neardup.core.candidates.all_pairs import (
    MAX_STORIES,
    LanguageFingerprints,
    PairChunk,
    Shortlist,
    find_nominated_pairs,
)
from neardup.core.candidates.banding import Numbers
from neardup.core.candidates.passage_groups import DEAD, CommonHashes, Counts, LanguageOf, SharedHashes, select_best
from neardup.core.fingerprint.version import algorithm
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.sets import find_distinct
from neardup.errors import Fatal
from neardup.index.passages.join import JoinStep
from neardup.ledger import Ledger, candidates, languages, outbox, passages, runs, transaction, verification, versions
from neardup.ledger.files import make_scratch_folder, translate_scratch_errors
from neardup.ledger.languages import count_by_language
from neardup.ledger.passages import CommonPassage, FoundCommon
from neardup.nomination.lookup import NominatedPair, record_pairs
from neardup.nomination.passages import COUNTED_AT_ONCE, Holders, drop_common, read_holders
from neardup.pages.reader_pool import OpenReaderPool
from neardup.pages.text_cache import Texts
from neardup.pipeline.index_sync import admit_ledger_version
from neardup.pipeline.passage_sync import PassageReading, PassageSync, open_passages
from neardup.pipeline.summary import Progress, SweepSummary, Watch, log_left_out
from neardup.pipeline.verifier import NewFlags, Verifier
from neardup.records import Language

Ids = npt.NDArray[np.int64]
CHECKPOINT = "sweep"  # its name in the ledger
FINGERPRINTS_PER_READ = 2_000  # larger pages do not fit in the processor's cache
STORIES_PER_READ = 20_000
ROWS_PER_COMMIT = 5_000  # pairs or common passages
PENDING_PAIRS = 50_000  # by passages, before they are verified
STEP_SECONDS = 0.2  # of nominating or of the join, before the stop event is checked again
BEFORE_ALL = -(2**63)  # sorts before every story's id


class SweepCheckpoint(Struct):
    """How far a sweep of the stories and thresholds of `basis` has come.

    The `languages` are done, and of the stories by id, those up to the place `through` have all their pairs by passages
    on record.
    """

    basis: dict[str, Any]
    languages: list[Language] = field(default_factory=list)
    through: int = 0

    @classmethod
    async def load(cls, ledger: Ledger, detection: Detection) -> Self:
        """The checkpoint on record; one at the start if there is none, or stories or thresholds have changed since."""
        basis = {"last_change": await ledger.do(outbox.read_last_seq), "detection": msgspec.to_builtins(detection)}
        text = await ledger.do(runs.get, CHECKPOINT)
        recorded = json.loads(text) if text else {}
        return cls(**recorded) if recorded.get("basis") == basis else cls(basis)

    async def save(self, ledger: Ledger) -> None:
        await ledger.do(runs.put, CHECKPOINT, json.dumps(asdict(self)))


async def load_fingerprints(
    ledger: Ledger, sizes: Mapping[Language, int], last_change: int, stop: asyncio.Event
) -> dict[Language, LanguageFingerprints]:
    """The fingerprints of languages with so many stories, by id; incomplete if `stop` is set meanwhile.

    Stories that were submitted or edited after `last_change` are left out: they are looked up.  The sizes were counted
    after it, so that there is room for the others.

    Raises Fatal for a language of more than MAX_STORIES.
    """
    for language, size in sizes.items():
        if size > MAX_STORIES:
            raise Fatal(f"{language} has {size:,} stories; a sweep takes at most {MAX_STORIES:,} of a language")
    arrays = {language: LanguageFingerprints.zeros(size) for language, size in sizes.items()}
    ends: dict[Language, int] = dict.fromkeys(sizes, 0)
    number = 0
    while not stop.is_set() and len(
        page := await ledger.do(versions.list_fingerprints_after, number, FINGERPRINTS_PER_READ)
    ):
        number = int(page.numbers[-1])
        for language, selected in page.where(page.numbers <= last_change).by_language():
            if (array := arrays.get(language)) is None:
                continue
            read = slice(ends[language], ends[language] + len(selected))
            for name in LanguageFingerprints.__struct_fields__:
                getattr(array, name)[read] = getattr(selected, name)
            ends[language] = read.stop
    for language, whole in arrays.items():
        # stories may have been removed meanwhile
        columns = {name: getattr(whole, name)[: ends[language]] for name in LanguageFingerprints.__struct_fields__}
        arrays[language] = array = LanguageFingerprints(**columns)
        order = np.argsort(array.ids, kind="stable")
        if np.any(order[1:] < order[:-1]):
            for column in columns.values():
                column[:] = column[order]
    return arrays


class Sweep(Struct):
    """One sweep, for `run_lifecycle.carry_out`.  Raises Fatal for errors that an operator must fix."""

    watermark: ClassVar[None] = None  # no listing is read
    ledger: Ledger
    detection: Detection
    version: str
    section: RunSection
    open_readers: OpenReaderPool
    stop: asyncio.Event
    watch: Watch
    summary: SweepSummary = field(default_factory=lambda: SweepSummary("sweep"))
    progress: Progress = field(default_factory=Progress)
    size: int = 0  # stories of all languages
    done: int = 0  # those of the languages that are done

    async def prepare(self) -> None:
        """Raise Fatal unless the ledger holds fingerprints of this program's version."""
        await admit_ledger_version(self.ledger, self.version)

    async def collect_facts(self) -> dict[str, object]:
        """The number of stories to compare."""
        return {"stories": sum((await self.ledger.do(count_by_language)).values())}

    async def work(self, _: int) -> bool:
        """Nominate and verify every pair of stories in the ledger; returns whether none is left."""
        with (
            closing(await open_passages(self.ledger)) as index,
            make_scratch_folder(self.ledger.path, "sweep") as scratch,
        ):
            sync = PassageSync(index, self.ledger)
            async with aclosing(self.open_readers()) as readers:
                reading = PassageReading.of_pool(sync, self.ledger, readers, self.section)
                if not await reading.mend(self.stop, self._show_reading):
                    return False
                texts = Texts(readers.read_to_compare)
                verifier = Verifier(self.ledger, self.detection, algorithm(), texts, self._count_flags)
                ended = await self._sweep(verifier, sync, scratch)
                if ended:
                    await verifier.match_serials()
        if ended:
            await self.ledger.do(runs.owe_sweep, owed=False)
        return ended

    async def _sweep(self, verifier: Verifier, sync: PassageSync, scratch: Path) -> bool:
        checkpoint = await SweepCheckpoint.load(self.ledger, self.detection)
        sizes = await self.ledger.do(count_by_language)
        self.size = sum(sizes.values())
        stop, show = self.stop, self._show_passages
        passages = PassageSweep(sync, self.ledger, self.detection, scratch, stop=stop, show=show)
        if not await passages.find_common(checkpoint.through):
            return False
        self.summary.common_passages = passages.common
        await self._verify(verifier)  # candidates that an interrupted sweep left pending
        self.done = sum(size for language, size in sizes.items() if language in checkpoint.languages)
        left = {Language(language): size for language, size in sizes.items() if language not in checkpoint.languages}
        fingerprints = await load_fingerprints(self.ledger, left, checkpoint.basis["last_change"], self.stop)
        for language, size in left.items():
            if not await self._sweep_language(language, fingerprints.pop(language)):
                return False
            checkpoint.languages.append(language)
            await checkpoint.save(self.ledger)
            await self._verify(verifier)
            self.done += size
            self._show(0)
        if not await self._sweep_passages(passages, checkpoint, verifier):
            return False
        await self.ledger.do(runs.put, CHECKPOINT, "{}")
        return True

    async def _sweep_passages(self, passages: "PassageSweep", checkpoint: SweepCheckpoint, verifier: Verifier) -> bool:
        """Record and verify the candidates by passages; False if `stop` was set before the end."""
        left_out, pending = Counter[Language](), 0
        async with aclosing(passages.nominate()) as steps:
            async for nominated in steps:
                self.summary.candidates += nominated.candidates
                self.summary.left_out += nominated.left_out.total()
                left_out += nominated.left_out
                pending += nominated.candidates
                checkpoint.through = nominated.through
                await checkpoint.save(self.ledger)
                if pending >= PENDING_PAIRS:
                    await self._verify(verifier)
                    pending = 0
        for language, pairs in left_out.items():
            log_left_out(language, pairs)
        if self.stop.is_set():
            return False
        await self._verify(verifier)
        return True

    async def _sweep_language(self, language: Language, stories: LanguageFingerprints) -> bool:
        """Record the candidates of a language; False if `stop` was set before the end."""
        shortlist = Shortlist(stories, self.detection.of(language).max_matches)
        await self._nominate(language, stories, shortlist)
        shortlisted, cut = await asyncio.to_thread(len, shortlist), shortlist.cut  # `len` sorts what was added last
        for page in shortlist.pages(ROWS_PER_COMMIT):
            if self.stop.is_set():
                break
            pairs = [(story_id, match, language) for story_id, match in page]
            await self.ledger.do(record_pairs, pairs, self.detection, cut, by_passages=False)
        if self.stop.is_set():
            return False
        self.summary.stories += len(stories.ids)
        self.summary.candidates += shortlisted
        self.summary.left_out += shortlist.left_out
        log_left_out(language, shortlist.left_out)
        return True

    async def _nominate(self, language: Language, stories: LanguageFingerprints, shortlist: Shortlist) -> None:
        """Shortlist the pairs of a language until `stop` is set."""
        detection = self.detection
        chunks = find_nominated_pairs(stories, detection.banding(language), detection.of(language).agreeing_rows)

        def shortlist_some() -> PairChunk | None:
            deadline = time.monotonic() + STEP_SECONDS
            for chunk in chunks:
                shortlist.add(chunk.left, chunk.right)
                if time.monotonic() >= deadline:
                    return chunk
            return None

        while not self.stop.is_set() and (chunk := await asyncio.to_thread(shortlist_some)):
            self._show(int(len(stories.ids) * chunk.done))

    def _show(self, done: int) -> None:
        """Report progress: `done` stories of the current language, and all stories of the languages before it."""
        self.progress.enter("comparing", self.size, self.done + done)
        self.watch(self.progress)

    def _show_reading(self, done: int, missing: int) -> None:
        self.progress.enter("reading passages again", missing, done)
        self.watch(self.progress)

    def _show_passages(self, done: float) -> None:
        self.progress.enter("comparing passages", self.size, int(self.size * done))
        self.watch(self.progress)

    async def _verify(self, verifier: Verifier) -> None:
        self.progress.enter("verifying", await self.ledger.do(candidates.count_pending))
        await verifier.drain()

    def _count_flags(self, new_flags: NewFlags, pairs: int) -> None:
        self.progress.position += pairs
        for (_, kind), n in new_flags.items():
            self.summary.flagged[kind] += n
        self.progress.counts.add_flags(new_flags.items())
        self.watch(self.progress)


class Nominated(Struct, frozen=True):
    """How many candidates were just recorded, and how many were left out, these by language.

    All candidates of the stories up to the place `through` are on record.
    """

    candidates: int
    left_out: Counter[Language]
    through: int


class PassageSweep(Struct):
    """The join of one sweep: first `find_common`, then `nominate`; both call `show` with the share of it that is done.

    `scratch` is a folder for scratch files.  Both raise Fatal if the folder has no room, and PassagesDamaged.
    """

    passages: PassageSync
    ledger: Ledger
    detection: Detection
    scratch: Path
    stop: asyncio.Event
    show: Callable[[float], None]
    names: Mapping[int, Language] = {}  # by the ledger's numbers of languages
    language_of: LanguageOf = field(default_factory=lambda: np.empty(0, np.uint8))  # by place
    steps: Iterator[JoinStep] = iter(())
    common: int = 0  # passages found to be common, once for each language

    @property
    def ids_file(self) -> Path:
        """The ids by place; in memory they would take 8 bytes a story."""
        return self.scratch / "ids.npy"

    async def find_common(self, after: int) -> bool:
        """Read the index and record the common passages; False if `stop` was set before the end.

        `nominate` will leave out the pairs of which both stories have places up to `after`.
        """
        self.names = await self.ledger.do(languages.map_names)
        versions_gone = await self.ledger.do(passages.count_gone)  # before the stories are read: some may go meanwhile
        numbers, ids = await self._read_ids()
        with translate_scratch_errors(self.scratch.parent):
            await asyncio.to_thread(np.save, self.ids_file, ids)
        del ids
        place_of = np.zeros(int(numbers.max(initial=0)) + 1, np.uint32)
        place_of[numbers] = np.arange(1, len(numbers) + 1, dtype=np.uint32)
        self.language_of, copy_keys = await self._read_languages_and_keys(place_of, len(numbers))
        most = self.detection.common_passage
        self.steps = self.passages.index.join(place_of, self.language_of, copy_keys, most, self.scratch, after)
        found = [np.empty(0, np.uint32)]
        while not self.stop.is_set():
            steps = await asyncio.to_thread(self._take_next_steps)
            for common in (step.common for step in steps if len(step.common.hashes)):
                await self._record_common(common, numbers, versions_gone)
                found.append(common.hashes)
                self.common += len(common.hashes)
            self.show(steps[-1].done)
            if steps[-1].is_read:
                await self._drop_others(find_distinct(np.concatenate(found)))
                return True
        return False

    async def _record_common(self, common: CommonHashes, numbers: Numbers, versions_gone: int) -> None:
        """Record common passages, and have the pairs of those not on record verified again.

        `numbers` are those of the stories, by place from 0; `versions_gone` is as in `_put_common`.
        """
        can_reverify = await self.ledger.do(candidates.is_reverification_possible)
        spoken = [self.names[number] for number in self.language_of[common.examples].tolist()]
        columns = (column.tolist() for column in common._replace(examples=numbers[common.examples - 1]))
        rows = list(zip(spoken, *columns, strict=True))
        for start in range(0, len(rows), ROWS_PER_COMMIT):
            part, affected = rows[start : start + ROWS_PER_COMMIT], set[int]()
            if can_reverify:
                hashes = find_distinct(common.hashes[start : start + ROWS_PER_COMMIT])
                recorded = await self.ledger.do(passages.map_common_languages, hashes)
                unknown = np.setdiff1d(hashes, np.array(list(recorded), np.uint32))
                affected.update(*(await read_holders(self.passages, self.ledger, unknown)).values())
            await self.ledger.do(_put_common, part, versions_gone, affected)

    async def _drop_others(self, common: PassageHashes) -> None:
        """Record that all but these hashes, which ascend, are not common."""
        dropped = np.setdiff1d(await self.ledger.do(passages.read_all_common), common)
        for start in range(0, len(dropped), COUNTED_AT_ONCE):
            part = dropped[start : start + COUNTED_AT_ONCE]
            held = await read_holders(self.passages, self.ledger, part)
            holders_of: dict[int, Holders] = {hash_: held.get(hash_, {}) for hash_ in part.tolist()}
            await self.ledger.do(drop_common, holders_of, self.detection)

    async def nominate(self) -> AsyncGenerator[Nominated, None]:
        """Record the candidates, some at a time, until all are or `stop` is set."""
        ids = np.asarray(np.load(self.ids_file, mmap_mode="r"))
        limits = np.zeros(max(self.names, default=0) + 1, np.int64)
        for number, language in self.names.items():
            limits[number] = self.detection.of(language).max_matches
        while not self.stop.is_set() and (steps := await asyncio.to_thread(self._take_next_steps)):
            left_out, cut = Counter[Language](), set[int]()
            pairs = [pair for step in steps for pair in self._choose_best(step.pairs, ids, limits, left_out, cut)]
            for start in range(0, len(pairs), ROWS_PER_COMMIT):
                if self.stop.is_set():
                    return
                part = pairs[start : start + ROWS_PER_COMMIT]
                await self.ledger.do(record_pairs, part, self.detection, cut, by_passages=True)
            yield Nominated(len(pairs), left_out, steps[-1].through)
            self.show(steps[-1].done)

    async def _read_languages_and_keys(self, place_of: Numbers, size: int) -> tuple[LanguageOf, Numbers]:
        """The language of each place and its copy key; incomplete if `stop` is set meanwhile.

        `place_of` has the places of the `size` stories by their numbers.  The place 0, and that of a story that has
        gone meanwhile, has DEAD for a language.
        """
        number = 0
        language_of, copy_keys = np.full(size + 1, DEAD, np.uint8), np.zeros(size + 1, np.uint32)
        while not self.stop.is_set():
            numbers, spoken, keys = await self.ledger.do(versions.list_holders_after, number, STORIES_PER_READ)
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
        while not self.stop.is_set():
            part, read = await self.ledger.do(versions.list_ids_after, story_id, STORIES_PER_READ)
            if not len(part):
                break
            numbers.append(part)
            ids.append(read)
            story_id = int(read[-1])
        return np.concatenate(numbers), np.concatenate(ids)

    def _take_next_steps(self) -> list[JoinStep]:
        """The next steps of the join, for about STEP_SECONDS; none at its end."""
        deadline, steps = time.monotonic() + STEP_SECONDS, list[JoinStep]()
        with translate_scratch_errors(self.scratch.parent):
            for step in self.steps:
                steps.append(step)
                if step.is_read or time.monotonic() >= deadline:
                    break
        return steps

    def _choose_best(
        self, pairs: SharedHashes, ids: Ids, limits: Counts, left_out: Counter[Language], cut: set[int]
    ) -> list[NominatedPair]:
        """The best matches of each story, best first; counts the others in `left_out`, their stories go to `cut`."""
        best, others = select_best(pairs, self.language_of, limits)
        left_out.update(self.names[number] for number in self.language_of[pairs.right[others]].tolist())
        cut.update(ids[pairs.right[others] - 1].tolist())
        rows = ids[pairs.right[best] - 1], ids[pairs.left[best] - 1], self.language_of[pairs.right[best]]
        return [
            (story, match, self.names[language])
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
