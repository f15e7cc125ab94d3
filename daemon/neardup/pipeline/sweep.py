"""`neardup sweep`: flags the pairs inside what the ledger holds, with no lookup a story and no index.

All fingerprints are read at once, 89 bytes a story.  Then, language by language: nominate all that a
lookup would have nominated, put these on record, judge them.  A sweep that was cut short goes on with
the languages that are left, unless stories or thresholds have changed meanwhile.
"""

import asyncio
import json
import sqlite3
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter

import structlog
from structlog.contextvars import bind_contextvars

from neardup.app import open_readers
from neardup.config import Config
from neardup.core.candidates.all_pairs import Portion
from neardup.core.candidates.top_k import MAX_STORIES, Held, Shortlist, nominated
from neardup.core.fingerprint import version as fingerprint_version
from neardup.errors import Fatal, NeardupError
from neardup.ledger import (
    Ledger,
    candidates,
    changes,
    fingerprint_arrays,
    now_ms,
    remembered_verdicts,
    runs,
    transaction,
)
from neardup.ledger.lock import only_one
from neardup.moderation.export.write import export_after_run
from neardup.pages.text_cache import Texts
from neardup.pipeline.grace_period import drained
from neardup.pipeline.index_sync import refuse_other_fingerprints
from neardup.pipeline.run import Progress, Watch
from neardup.pipeline.verifier import News, Verifier
from neardup.records import Language
from neardup.telemetry.metrics import CAPPED, CAPPED_BUCKETS, RUN_FAILURES, RUNNING

STORIES_A_READ = 2_000  # larger pages leave the processor's cache
PAIRS_A_COMMIT = 5_000
STEP_SECONDS = 0.2  # of nominating, between two looks at the stop event

log = structlog.get_logger()


@dataclass(slots=True)
class Swept:
    """What a sweep did.  It is `done`, or was `stopped` by a signal before its last language.

    `candidates` are the pairs it nominated, without those `left_out` by max_matches; of
    `capped_runs`, longer than max_bucket, not every pair was looked at.
    """

    started_at: int
    status: str = "stopped"
    stories: int = 0
    candidates: int = 0
    left_out: int = 0
    capped_runs: int = 0
    flagged: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def as_dict(self) -> dict[str, object]:
        return {
            "stories": self.stories,
            "candidates": self.candidates,
            "left_out": self.left_out,
            "capped_runs": self.capped_runs,
            "flagged": dict(sorted(self.flagged.items())),
            "seconds": round(self.seconds, 3),
        }


async def sweep(config: Config, ledger: Ledger, stop: asyncio.Event, watch: Watch = lambda progress: None) -> Swept:
    """Nominate and judge every pair of stories in the ledger, until done or `stop` is set.

    `watch` is told of the progress, in stories.  Raises Transient where the ledger is in use, Fatal
    for what somebody has to mend.
    """
    with only_one(config.ledger.path, "sweep"):
        version = fingerprint_version.version(config.registry)
        await refuse_other_fingerprints(ledger, version)
        run_id = await ledger.do(runs.begin, "sweep")
        bind_contextvars(run=run_id)
        work = _Sweep(config, ledger, fingerprint_version.algorithm(), stop, watch)
        RUNNING.labels("sweep").set(1)
        try:
            await work.go()
            if work.swept.status == "done":
                await ledger.do(runs.owe_sweep, owed=False)
            await export_after_run(config, passages=not stop.is_set())
        except BaseException as error:
            RUN_FAILURES.labels("sweep").inc()
            why = str(error) if isinstance(error, NeardupError) else repr(error)
            with suppress(NeardupError):  # it may be the ledger that failed
                await ledger.do(runs.finish, run_id, "failed", counts=work.swept.as_dict(), error=why)
            raise
        finally:
            RUNNING.labels("sweep").set(0)
        await ledger.do(runs.finish, run_id, work.swept.status, counts=work.swept.as_dict())
        return work.swept


class _Sweep:
    """The wiring of one sweep."""

    def __init__(self, config: Config, ledger: Ledger, version: str, stop: asyncio.Event, watch: Watch) -> None:
        self._config = config
        self._ledger = ledger
        self._stop = stop
        self._watch = watch
        self._progress = Progress()
        self._behind = 0  # stories of the languages that are done
        self._readers = open_readers(config)
        texts = Texts(self._readers.shingled)
        self._verifier = Verifier(ledger, config.detection, version, texts, self._flagged)
        self.swept = Swept(now_ms())

    async def go(self) -> None:
        """Sweep the languages that are left, as far as `stop` and run.shutdown_seconds allow."""
        try:
            ended = await drained(self._sweep(), self._stop, self._config.run.shutdown_seconds)
        finally:
            self._readers.close()
        self.swept.status = "done" if ended else "stopped"
        self.swept.seconds = (now_ms() - self.swept.started_at) / 1000

    async def _sweep(self) -> bool:
        """Whether it came to its end."""
        sizes = await self._ledger.do(runs.stories_by_language)
        self._progress.size = sum(sizes.values())
        basis = {
            "last_change": await self._ledger.do(changes.last_seq),
            "detection": self._config.detection.model_dump(mode="json"),
        }
        said = await self._ledger.do(runs.get, "sweep")
        standing = json.loads(said) if said else {}
        done = standing["done"] if standing.items() >= basis.items() else []
        await self._verifier.drain()  # what a sweep that was cut short has left pending
        self._behind = sum(size for language, size in sizes.items() if language in done)
        left = {Language(language): size for language, size in sizes.items() if language not in done}
        held = await self._load(left)
        for language, size in left.items():
            if not await self._sweep_language(language, held.pop(language)):
                return False
            done.append(language)
            await self._ledger.do(runs.put, "sweep", json.dumps({**basis, "done": done}))
            await self._verifier.drain()
            self._behind += size
            self._tell(0)
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
        most = self._config.detection.of(language).max_matches
        # Judged pairs take no room; though one story's thousand must not make it a sweep of all pairs.
        judged = await self._ledger.do(remembered_verdicts.most_judged, language)
        shortlist = Shortlist(held, most + min(judged, most))
        capped = await self._nominate(language, held, shortlist)
        found, full = await asyncio.to_thread(len, shortlist), 0
        for page in shortlist.pages(PAIRS_A_COMMIT):
            if self._stop.is_set():
                break
            full += await self._ledger.do(_put, page, most)
        if self._stop.is_set():
            return False
        self.swept.stories += len(held.ids)
        self.swept.candidates += found - full
        self.swept.left_out += shortlist.left_out + full
        self.swept.capped_runs += len(capped)
        _tell_of_caps(language, shortlist.left_out + full, capped)
        return True

    async def _nominate(self, language: Language, held: Held, shortlist: Shortlist) -> dict[str, int]:
        """Shortlist the pairs of a language, until told to stop; the runs that max_bucket cut, with their sizes."""
        detection = self._config.detection
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
            self._tell(int(len(held.ids) * portion.done))
        return capped

    def _tell(self, done: int) -> None:
        """So many stories of a language are done, beside all those of the languages before."""
        self._progress.position = self._behind + done
        self._watch(self._progress)

    def _flagged(self, news: News) -> None:
        for (_, kind), n in news.items():
            self.swept.flagged[kind.value] += n
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
