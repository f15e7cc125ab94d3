"""`neardup sweep`: flags the pairs among all stories of the ledger, without an index.

All fingerprints are read into memory, 89 bytes per story.  Then, language by language, the sweep nominates the pairs
that lookups would have nominated, records them and verifies them.  Last come the pairs that share passages (see
neardup.pipeline.passage_sweep).  A sweep that was interrupted resumes with the languages and the passages that are
left, unless stories or thresholds have changed since.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
from msgspec import Struct, field

from neardup.config import Detection
from neardup.config import Run as RunSection
from neardup.core.candidates.all_pairs import (
    MAX_STORIES,
    LanguageFingerprints,
    PairChunk,
    Shortlist,
    find_nominated_pairs,
)
from neardup.core.fingerprint.version import algorithm
from neardup.errors import Fatal
from neardup.ledger import Ledger, candidates, outbox, runs, versions
from neardup.ledger.languages import count_by_language
from neardup.nomination.matches import record_pairs
from neardup.pages.reader_pool import OpenReaderPool
from neardup.pages.text_cache import Texts
from neardup.pipeline.index_sync import admit_ledger_version
from neardup.pipeline.passage_sweep import PassageSweep
from neardup.pipeline.passage_sync import PassageReading, PassageSync, mend_passages, open_passages
from neardup.pipeline.progress import Progress, Watch
from neardup.pipeline.scratch import make_scratch_folder
from neardup.pipeline.summary import SweepSummary, log_left_out
from neardup.pipeline.verifier import NewFlags, Verifier
from neardup.records import Language

CHECKPOINT = "sweep"  # its name in the ledger
STORIES_PER_READ = 2_000  # larger pages do not fit in the processor's cache
PAIRS_PER_COMMIT = 5_000
PENDING_PAIRS = 50_000  # by passages, before they are verified
STEP_SECONDS = 0.2  # of nominating, before the stop event is checked again


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
        if recorded.get("basis") != basis:
            return cls(basis)
        return cls(basis, recorded["languages"], recorded["through"])

    async def save(self, ledger: Ledger) -> None:
        """Record it."""
        values = {"basis": self.basis, "languages": self.languages, "through": self.through}
        await ledger.do(runs.put, CHECKPOINT, json.dumps(values))

    @staticmethod
    async def clear(ledger: Ledger) -> None:
        """Record that no sweep is to be continued."""
        await ledger.do(runs.put, CHECKPOINT, "{}")


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
        page := await ledger.do(versions.list_fingerprints_after, number, STORIES_PER_READ)
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


class Sweep:
    """One sweep, for `run_lifecycle.carry_out`.  Raises Fatal for errors that an operator must fix."""

    watermark = None  # no listing is read

    def __init__(
        self,
        ledger: Ledger,
        detection: Detection,
        version: str,
        *,
        section: RunSection,
        open_readers: OpenReaderPool,
        stop: asyncio.Event,
        watch: Watch,
    ) -> None:
        self.summary = SweepSummary("sweep")
        self._ledger = ledger
        self._detection = detection
        self._version = version
        self._section = section
        self._open_readers = open_readers
        self._stop = stop
        self._watch = watch
        self.progress = Progress()
        self._size = 0  # stories of all languages
        self._done = 0  # those of the languages that are done

    async def prepare(self) -> None:
        """Raise Fatal unless the ledger holds fingerprints of this program's version."""
        await admit_ledger_version(self._ledger, self._version)

    async def collect_facts(self) -> dict[str, object]:
        """The number of stories to compare."""
        return {"stories": sum((await self._ledger.do(count_by_language)).values())}

    async def work(self, _: int) -> bool:
        """Nominate and verify every pair of stories in the ledger; returns whether none is left."""
        with (
            closing(await open_passages(self._ledger)) as index,
            make_scratch_folder(self._ledger.path, "sweep") as scratch,
        ):
            sync = PassageSync(index, self._ledger)
            async with aclosing(self._open_readers()) as readers:
                reading = PassageReading.of_pool(sync, self._ledger, readers, self._section)
                if not await mend_passages(sync, reading, self._stop, self._show_reading):
                    return False
                texts = Texts(readers.read_to_compare)
                verifier = Verifier(self._ledger, self._detection, algorithm(), texts, self._count_flags)
                ended = await self._sweep(verifier, sync, scratch)
                if ended:
                    await verifier.match_serials()
        if ended:
            await self._ledger.do(runs.owe_sweep, owed=False)
        return ended

    async def _sweep(self, verifier: Verifier, sync: PassageSync, scratch: Path) -> bool:
        checkpoint = await SweepCheckpoint.load(self._ledger, self._detection)
        sizes = await self._ledger.do(count_by_language)
        self._size = sum(sizes.values())
        stop, show = self._stop, self._show_passages
        passages = PassageSweep(sync, self._ledger, self._detection, scratch, stop=stop, show=show)
        if not await passages.find_common(checkpoint.through):
            return False
        self.summary.common_passages = passages.common
        await self._verify(verifier)  # candidates that an interrupted sweep left pending
        self._done = sum(size for language, size in sizes.items() if language in checkpoint.languages)
        left = {Language(language): size for language, size in sizes.items() if language not in checkpoint.languages}
        fingerprints = await load_fingerprints(self._ledger, left, checkpoint.basis["last_change"], self._stop)
        for language, size in left.items():
            if not await self._sweep_language(language, fingerprints.pop(language)):
                return False
            checkpoint.languages.append(language)
            await checkpoint.save(self._ledger)
            await self._verify(verifier)
            self._done += size
            self._show(0)
        if not await self._sweep_passages(passages, checkpoint, verifier):
            return False
        await checkpoint.clear(self._ledger)
        return True

    async def _sweep_passages(self, passages: PassageSweep, checkpoint: SweepCheckpoint, verifier: Verifier) -> bool:
        """Record and verify the candidates by passages; False if `stop` was set before the end."""
        left_out, pending = Counter[Language](), 0
        async with aclosing(passages.nominate()) as steps:
            async for nominated in steps:
                self.summary.candidates += nominated.candidates
                self.summary.left_out += nominated.left_out.total()
                left_out += nominated.left_out
                pending += nominated.candidates
                checkpoint.through = nominated.through
                await checkpoint.save(self._ledger)
                if pending >= PENDING_PAIRS:
                    await self._verify(verifier)
                    pending = 0
        for language, pairs in left_out.items():
            log_left_out(language, pairs)
        if self._stop.is_set():
            return False
        await self._verify(verifier)
        return True

    async def _sweep_language(self, language: Language, stories: LanguageFingerprints) -> bool:
        """Record the candidates of a language; False if `stop` was set before the end."""
        shortlist = Shortlist(stories, self._detection.of(language).max_matches)
        await self._nominate(language, stories, shortlist)
        shortlisted, cut = await asyncio.to_thread(len, shortlist), shortlist.cut  # `len` sorts what was added last
        for page in shortlist.pages(PAIRS_PER_COMMIT):
            if self._stop.is_set():
                break
            pairs = [(story_id, match, language) for story_id, match in page]
            await self._ledger.do(record_pairs, pairs, self._detection, cut, by_passages=False)
        if self._stop.is_set():
            return False
        self.summary.stories += len(stories.ids)
        self.summary.candidates += shortlisted
        self.summary.left_out += shortlist.left_out
        log_left_out(language, shortlist.left_out)
        return True

    async def _nominate(self, language: Language, stories: LanguageFingerprints, shortlist: Shortlist) -> None:
        """Shortlist the pairs of a language until `stop` is set."""
        detection = self._detection
        chunks = find_nominated_pairs(stories, detection.banding(language), detection.of(language).agreeing_rows)

        def shortlist_some() -> PairChunk | None:
            deadline = time.monotonic() + STEP_SECONDS
            for chunk in chunks:
                shortlist.add(chunk.left, chunk.right)
                if time.monotonic() >= deadline:
                    return chunk
            return None

        while not self._stop.is_set() and (chunk := await asyncio.to_thread(shortlist_some)):
            self._show(int(len(stories.ids) * chunk.done))

    def _show(self, done: int) -> None:
        """Report progress: `done` stories of the current language, and all stories of the languages before it."""
        self.progress.enter("comparing", self._size, self._done + done)
        self._watch(self.progress)

    def _show_reading(self, done: int, missing: int) -> None:
        self.progress.enter("reading passages again", missing, done)
        self._watch(self.progress)

    def _show_passages(self, done: float) -> None:
        self.progress.enter("comparing passages", self._size, int(self._size * done))
        self._watch(self.progress)

    async def _verify(self, verifier: Verifier) -> None:
        self.progress.enter("verifying", await self._ledger.do(candidates.count_pending))
        await verifier.drain()

    def _count_flags(self, new_flags: NewFlags, pairs: int) -> None:
        self.progress.position += pairs
        for (_, kind), n in new_flags.items():
            self.summary.flagged[kind] += n
        self.progress.counts.add_flags(new_flags.items())
        self._watch(self.progress)
