"""`neardup sweep`: flags the pairs among all stories of the ledger, without an index.

All fingerprints are read into memory, 89 bytes per story.  Then, language by language, the sweep nominates the pairs
that lookups would have nominated, records them and verifies them.  A sweep that was interrupted resumes with the
languages that are left, unless stories or thresholds have changed since.
"""

import asyncio
import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from itertools import groupby
from operator import itemgetter

import structlog

from neardup.config import Detection
from neardup.core.candidates.all_pairs import PairChunk
from neardup.core.candidates.top_k import MAX_STORIES, LanguageFingerprints, Shortlist, nominated_pairs
from neardup.core.fingerprint.version import algorithm
from neardup.core.warm_up import load_for_sweep
from neardup.errors import Fatal
from neardup.ledger import (
    Ledger,
    active_verdicts,
    candidates,
    changes,
    fingerprint_arrays,
    runs,
    transaction,
)
from neardup.pages.reader_pool import OpenReaderPool
from neardup.pages.text_cache import Texts
from neardup.pipeline.index_sync import refuse_ledger_mismatch
from neardup.pipeline.prepare import load_compiled, unless_stopped
from neardup.pipeline.progress import Progress, Watch
from neardup.pipeline.summary import SweepSummary
from neardup.pipeline.verifier import NewFlags, Verifier
from neardup.records import Language
from neardup.telemetry.metrics import CAPPED, CAPPED_BUCKETS

STORIES_PER_READ = 2_000  # larger pages do not fit in the processor's cache
PAIRS_PER_COMMIT = 5_000
STEP_SECONDS = 0.2  # of nominating, before the stop event is checked again

log = structlog.get_logger()


class Sweep:
    """One sweep, for `run_lifecycle.carry_out`.  Raises Fatal for errors that an operator must fix."""

    watermark = None

    def __init__(
        self,
        ledger: Ledger,
        detection: Detection,
        version: str,
        *,
        open_readers: OpenReaderPool,
        stop: asyncio.Event,
        watch: Watch,
    ) -> None:
        self.summary = SweepSummary("sweep")
        self._ledger = ledger
        self._detection = detection
        self._version = version
        self._open_readers = open_readers
        self._stop = stop
        self._watch = watch
        self._progress = Progress()
        self._size = 0  # stories of all languages
        self._done = 0  # those of the languages that are done

    async def prepare(self) -> None:
        """Raise Fatal unless the ledger holds fingerprints of this program's version; load the compiled functions."""
        await unless_stopped(load_compiled(load_for_sweep, self._progress, self._watch), self._stop)
        await refuse_ledger_mismatch(self._ledger, self._version)

    async def facts(self) -> dict[str, object]:
        """The number of stories to compare."""
        return {"stories": sum((await self._ledger.do(runs.stories_by_language)).values())}

    async def work(self, _: int) -> bool:
        """Nominate and verify every pair of stories in the ledger; returns whether no language is left."""
        async with aclosing(self._open_readers()) as readers:
            texts = Texts(readers.shingled)
            ended = await self._sweep(Verifier(self._ledger, self._detection, algorithm(), texts, self._flagged))
        if ended:
            await self._ledger.do(runs.owe_sweep, owed=False)
        return ended

    async def _sweep(self, verifier: Verifier) -> bool:
        sizes = await self._ledger.do(runs.stories_by_language)
        self._size = sum(sizes.values())
        basis = {
            "last_change": await self._ledger.do(changes.last_seq),
            "detection": self._detection.model_dump(mode="json"),
        }
        recorded = await self._ledger.do(runs.get, "sweep")
        interrupted = json.loads(recorded) if recorded else {}
        done = interrupted["done"] if interrupted.items() >= basis.items() else []
        await self._verify(verifier)  # candidates that an interrupted sweep left pending
        self._done = sum(size for language, size in sizes.items() if language in done)
        left = {Language(language): size for language, size in sizes.items() if language not in done}
        fingerprints = await self._load(left)
        for language, size in left.items():
            if not await self._sweep_language(language, fingerprints.pop(language)):
                return False
            done.append(language)
            await self._ledger.do(runs.put, "sweep", json.dumps({**basis, "done": done}))
            await self._verify(verifier)
            self._done += size
            self._show(0)
        await self._ledger.do(runs.put, "sweep", "{}")
        return True

    async def _load(self, sizes: Mapping[Language, int]) -> dict[Language, LanguageFingerprints]:
        """The fingerprints of languages of these sizes; incomplete if `stop` is set meanwhile."""
        for language, size in sizes.items():
            if size > MAX_STORIES:
                raise Fatal(f"{language} has {size:,} stories; a sweep takes at most {MAX_STORIES:,} of a language")
        arrays = {language: LanguageFingerprints.zeros(size) for language, size in sizes.items()}
        ends: dict[Language, int] = dict.fromkeys(sizes, 0)
        number = 0
        while not self._stop.is_set() and len(
            page := await self._ledger.do(fingerprint_arrays.after, number, STORIES_PER_READ)
        ):
            number = int(page.numbers[-1])
            for language, selected in page.by_language():
                if (array := arrays.get(language)) is None:
                    continue
                read = slice(ends[language], ends[language] + len(selected))
                for name in LanguageFingerprints.__slots__:
                    getattr(array, name)[read] = getattr(selected, name)
                ends[language] = read.stop
        return arrays

    async def _sweep_language(self, language: Language, stories: LanguageFingerprints) -> bool:
        """Record the candidates of a language; False if `stop` was set before the end."""
        most = self._detection.of(language).max_matches
        # Pairs with a verdict do not count towards `most`; the limit keeps a story with many from listing all pairs.
        with_verdict = await self._ledger.do(active_verdicts.most_of_a_story, language)
        shortlist = Shortlist(stories, most + min(with_verdict, most))
        capped = await self._nominate(language, stories, shortlist)
        shortlisted, full = await asyncio.to_thread(len, shortlist), 0
        for page in shortlist.pages(PAIRS_PER_COMMIT):
            if self._stop.is_set():
                break
            full += await self._ledger.do(_put, page, most)
        if self._stop.is_set():
            return False
        self.summary.stories += len(stories.ids)
        self.summary.candidates += shortlisted - full
        self.summary.left_out += shortlist.left_out + full
        self.summary.capped_runs += len(capped)
        _log_caps(language, shortlist.left_out + full, capped)
        return True

    async def _nominate(
        self, language: Language, stories: LanguageFingerprints, shortlist: Shortlist
    ) -> dict[str, int]:
        """Shortlist the pairs of a language until `stop` is set; returns the sizes of the buckets over max_bucket."""
        detection = self._detection
        chunks = nominated_pairs(stories, detection.banding(language), detection.of(language).agreeing_rows)
        capped: dict[str, int] = {}

        def shortlist_some() -> PairChunk | None:
            deadline = time.monotonic() + STEP_SECONDS
            for chunk in chunks:
                shortlist.add(chunk.left, chunk.right)
                capped.update(chunk.capped)
                if time.monotonic() >= deadline:
                    return chunk
            return None

        while not self._stop.is_set() and (chunk := await asyncio.to_thread(shortlist_some)):
            self._show(int(len(stories.ids) * chunk.done))
        return capped

    def _show(self, done: int) -> None:
        """Report progress: `done` stories of the current language, and all stories of the languages before it."""
        self._progress.enter("comparing", self._size, self._done + done)
        self._watch(self._progress)

    async def _verify(self, verifier: Verifier) -> None:
        self._progress.enter("verifying", await self._ledger.do(candidates.pending_count))
        await verifier.drain()

    def _flagged(self, new_flags: NewFlags, pairs: int) -> None:
        self._progress.position += pairs
        for (_, kind), n in new_flags.items():
            self.summary.flagged[kind] += n
        self._progress.counts.add_flags(new_flags.items())
        self._watch(self._progress)


def _put(db: sqlite3.Connection, pairs: Sequence[tuple[int, int]], most: int) -> int:
    """Record pairs of a story and its match, `most` per story; returns how many were left out."""
    with transaction(db):
        return sum(
            candidates.nominate(db, candidates.Matches(story_id, [match for _, match in matches], most))
            for story_id, matches in groupby(pairs, itemgetter(0))
        )


def _log_caps(language: Language, left_out: int, capped: dict[str, int]) -> None:
    if left_out:
        CAPPED.labels(language).inc(left_out)
        log.warning("max_matches reached", language=language, left_out=left_out)
    if capped:
        CAPPED_BUCKETS.labels(language).inc(len(capped))
        longest = max(capped, key=lambda name: capped[name])
        log.warning("max_bucket reached", runs=len(capped), longest=f"{language} {longest}", members=capped[longest])
