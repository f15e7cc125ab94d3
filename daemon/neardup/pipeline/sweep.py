"""`neardup sweep`: flags the pairs inside what the ledger holds, with no lookup a story and no index.

All fingerprints are read at once, 89 bytes a story.  Then, language by language: nominate all that a
lookup would have nominated, put these on record, judge them.  A sweep that was cut short goes on with
the languages that are left, unless stories or thresholds have changed meanwhile.
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
from neardup.core.candidates.all_pairs import Portion
from neardup.core.candidates.top_k import MAX_STORIES, Held, Shortlist, nominated
from neardup.core.fingerprint.version import algorithm
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
from neardup.pipeline.progress import Progress, Watch
from neardup.pipeline.summary import SweepSummary
from neardup.pipeline.verifier import News, Verifier
from neardup.records import Language
from neardup.telemetry.metrics import CAPPED, CAPPED_BUCKETS

STORIES_A_READ = 2_000  # larger pages leave the processor's cache
PAIRS_A_COMMIT = 5_000
STEP_SECONDS = 0.2  # of nominating, between two looks at the stop event

log = structlog.get_logger()


class Sweep:
    """One sweep, for `run_lifecycle.carry_out`.  Raises Fatal for what an operator must mend."""

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
        self._behind = 0  # stories of the languages that are done

    async def prepare(self) -> None:
        """Make sure that the fingerprints on record are those of this program."""
        await refuse_ledger_mismatch(self._ledger, self._version)

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
        self._progress.size = sum(sizes.values())
        basis = {
            "last_change": await self._ledger.do(changes.last_seq),
            "detection": self._detection.model_dump(mode="json"),
        }
        said = await self._ledger.do(runs.get, "sweep")
        standing = json.loads(said) if said else {}
        done = standing["done"] if standing.items() >= basis.items() else []
        await verifier.drain()  # what a sweep that was cut short has left pending
        self._behind = sum(size for language, size in sizes.items() if language in done)
        left = {Language(language): size for language, size in sizes.items() if language not in done}
        held = await self._load(left)
        for language, size in left.items():
            if not await self._sweep_language(language, held.pop(language)):
                return False
            done.append(language)
            await self._ledger.do(runs.put, "sweep", json.dumps({**basis, "done": done}))
            await verifier.drain()
            self._behind += size
            self._show(0)
        await self._ledger.do(runs.put, "sweep", "{}")
        return True

    async def _load(self, sizes: Mapping[Language, int]) -> dict[Language, Held]:
        """The fingerprints of languages with so many stories; told to stop, as many as are read by then."""
        for language, size in sizes.items():
            if size > MAX_STORIES:
                raise Fatal(f"{language} has {size:,} stories; a sweep takes {MAX_STORIES:,} of a language at most")
        held = {language: Held.zeros(size) for language, size in sizes.items()}
        ends: dict[Language, int] = dict.fromkeys(sizes, 0)
        number = 0
        while not self._stop.is_set() and len(
            page := await self._ledger.do(fingerprint_arrays.after, number, STORIES_A_READ)
        ):
            number = int(page.numbers[-1])
            for language, mine in page.by_language():
                if (room := held.get(language)) is None:
                    continue
                read = slice(ends[language], ends[language] + len(mine))
                for name in Held.__slots__:
                    getattr(room, name)[read] = getattr(mine, name)
                ends[language] = read.stop
        return held

    async def _sweep_language(self, language: Language, held: Held) -> bool:
        """Put the candidates of a language on record; whether it was not told to stop before."""
        most = self._detection.of(language).max_matches
        # Judged pairs take no room; though one story's thousand must not make it a sweep of all pairs.
        judged = await self._ledger.do(active_verdicts.most_of_a_story, language)
        shortlist = Shortlist(held, most + min(judged, most))
        capped = await self._nominate(language, held, shortlist)
        found, full = await asyncio.to_thread(len, shortlist), 0
        for page in shortlist.pages(PAIRS_A_COMMIT):
            if self._stop.is_set():
                break
            full += await self._ledger.do(_put, page, most)
        if self._stop.is_set():
            return False
        self.summary.stories += len(held.ids)
        self.summary.candidates += found - full
        self.summary.left_out += shortlist.left_out + full
        self.summary.capped_runs += len(capped)
        _tell_of_caps(language, shortlist.left_out + full, capped)
        return True

    async def _nominate(self, language: Language, held: Held, shortlist: Shortlist) -> dict[str, int]:
        """Shortlist the pairs of a language, until told to stop; the runs that max_bucket cut, with their sizes."""
        detection = self._detection
        portions = nominated(held, detection.banding(language), detection.of(language).agreeing_rows)
        capped: dict[str, int] = {}

        def shortlist_some() -> Portion | None:
            until = time.monotonic() + STEP_SECONDS
            for portion in portions:
                shortlist.add(portion.left, portion.right)
                capped.update(portion.capped)
                if time.monotonic() >= until:
                    return portion
            return None

        while not self._stop.is_set() and (portion := await asyncio.to_thread(shortlist_some)):
            self._show(int(len(held.ids) * portion.done))
        return capped

    def _show(self, done: int) -> None:
        """So many stories of a language are done, beside all those of the languages before."""
        self._progress.position = self._behind + done
        self._watch(self._progress)

    def _flagged(self, news: News) -> None:
        for (_, kind), n in news.items():
            self.summary.flagged[kind] += n
        self._progress.counts.add_flags(news.items())
        self._watch(self._progress)


def _put(db: sqlite3.Connection, pairs: Sequence[tuple[int, int]], most: int) -> int:
    """Put pairs of a story and its match on record; counts those left out."""
    with transaction(db):
        return sum(
            candidates.nominate(db, candidates.Matches(story_id, [match for _, match in matches], most))
            for story_id, matches in groupby(pairs, itemgetter(0))
        )


def _tell_of_caps(language: Language, left_out: int, capped: dict[str, int]) -> None:
    if left_out:
        CAPPED.labels(language).inc(left_out)
        log.warning("max_matches reached", language=language, left_out=left_out)
    if capped:
        CAPPED_BUCKETS.labels(language).inc(len(capped))
        longest = max(capped, key=lambda name: capped[name])
        log.warning("max_bucket reached", runs=len(capped), longest=f"{language} {longest}", members=capped[longest])
