"""Runs the real pipeline over a corpus of originals and copies, and measures what is then on record."""

import asyncio
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from neardup.app import App, open_app, run_once
from neardup.config import Config, Content, Export, Extract, Index, Ledger, Source, Thresholds
from neardup.core.candidates.select import merge_found, nominate
from neardup.core.text.html import Extraction, page_text
from neardup.core.text.normalize import tokens
from neardup.index.protocol import BucketKind
from neardup.index.statistics import bucket_sizes
from neardup.insights.evaluate import tally
from neardup.insights.evaluate.plant import Corpus, write
from neardup.insights.evaluate.tally import Pair, Scored
from neardup.insights.evaluate.truth import FALSE_BELOW
from neardup.ledger import fingerprint_arrays, stories
from neardup.pipeline.progress import Watch
from neardup.records import BandedFingerprint, Kind, Language

MAX_MATCHES = 200  # at least, so that the copies of one story do not displace each other
CACHED_TEXTS = 2000


@dataclass(frozen=True, slots=True)
class Lookup:
    """The lookup of one original: stories found, stories nominated, and nominated stories that are not its copies."""

    found: int
    nominated: int
    unrelated: int


@dataclass(frozen=True, slots=True)
class FalseFlag:
    """A flagged pair with little in common: its stories by id and edit, and its scores, computed separately."""

    a: int
    b: int
    edit_a: str | None
    edit_b: str | None
    kind: Kind
    jaccard: float
    containment: float


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements of one corpus.

    `flagged_as` counts the copies of each edit by the kind of their flag.  `cross_pairs` is the number of pairs of
    different origin, `cross_flags` the number of flags among them.
    """

    language: Language
    originals: int
    flagged_as: Mapping[str, Counter[Kind | None]]
    scored: Scored
    cross_pairs: int
    cross_flags: int
    false_flags: Sequence[FalseFlag]
    lookups: Sequence[Lookup]
    simhash_buckets: Sequence[int]
    signature_buckets: Sequence[int]


async def measure(config: Config, corpus: Corpus, watch: Watch) -> Measured:
    """Run the pipeline over a corpus in a temporary folder, with the thresholds of `config`."""
    with tempfile.TemporaryDirectory(prefix="neardup-evaluate-") as name:
        folder = Path(name)
        write(corpus, folder)
        async with open_app(temporary_config(config, folder)) as app:
            await run_once(app, "backfill", asyncio.Event(), watch)
            pairs = await app.reader.do(_pairs)
            originals = await app.reader.do(_originals, corpus)
            sizes = await bucket_sizes(app.index, list(originals.values()))
            lookups = await _look_up(app, originals, corpus)
            cross_flags = tally.cross_flags(corpus, pairs)
            false_flags = await asyncio.to_thread(_false_flags, cross_flags, corpus, folder)
        return Measured(
            language=corpus.originals[0].language,
            originals=len(corpus.originals),
            flagged_as=tally.flagged_as(corpus, pairs),
            scored=tally.scored(corpus, pairs),
            cross_pairs=tally.count_cross_pairs(corpus),
            cross_flags=len(cross_flags),
            false_flags=false_flags,
            lookups=lookups,
            simhash_buckets=[n for bucket, n in sizes.items() if bucket.kind is BucketKind.SIMHASH],
            signature_buckets=[n for bucket, n in sizes.items() if bucket.kind is BucketKind.SIGNATURE],
        )


def temporary_config(config: Config, folder: Path) -> Config:
    """The configuration of a run over `folder`, with files and SQLite, and with the detection settings of `config`."""
    detection = config.detection
    roomy = {"max_matches": max(MAX_MATCHES, detection.max_matches)}
    languages: dict[Language, Thresholds] = {
        language: own.model_copy(update=roomy) for language, own in detection.languages.items()
    }
    return config.model_copy(
        update={
            "source": Source(manifest=folder / "manifest.csv"),
            "content": Content(url=f"file:{folder / 'html'}"),
            "extract": Extract(),
            "index": Index(),
            "ledger": Ledger(path=folder / "neardup.db"),
            "detection": detection.model_copy(update=roomy | {"languages": languages}),
            "export": Export(),
        }
    )


def _pairs(db: sqlite3.Connection) -> list[Pair]:
    """The open flags and the near misses."""
    scores = "coalesce(jaccard, 1 - hamming / 128.0), coalesce(max(containment_a, containment_b), 1 - hamming / 128.0)"
    rows = db.execute(
        f"SELECT a, b, kind, {scores} FROM flags WHERE status = 'open'"
        f" UNION ALL SELECT a, b, NULL, {scores} FROM candidates WHERE verified_at IS NOT NULL"
    )
    return [Pair(a, b, kind, *alike) for a, b, kind, *alike in rows]


def _originals(db: sqlite3.Connection, corpus: Corpus) -> dict[int, BandedFingerprint]:
    places = [place for place, story in enumerate(corpus.stories) if story.edit is None]
    return stories.fingerprints(db, places)


async def _look_up(app: App, originals: dict[int, BandedFingerprint], corpus: Corpus) -> list[Lookup]:
    """Look up each original among all the stories."""
    lookups = []
    step = app.config.run.batch
    batch = list(originals.items())
    for start in range(0, len(batch), step):
        some = batch[start : start + step]
        _, results = await app.index.lookup([banded for _, banded in some])
        held = await app.reader.do(fingerprint_arrays.existing, *merge_found(results))
        limits = {one.language: _unlimited(app.config.detection.of(one.language)) for _, one in some}
        nominees = nominate([([place], banded) for place, banded in some], results, held, limits)
        for result, nominee in zip(results, nominees, strict=True):
            origin = corpus.stories[nominee.story_id].origin
            unrelated = sum(corpus.stories[match].origin != origin for match in nominee.matches)
            ids_by_number = set(held.ids[np.isin(held.numbers, result.numbers)].tolist())
            found = len(result.ids | ids_by_number - {nominee.story_id})
            lookups.append(Lookup(found, len(nominee.matches), unrelated))
    return lookups


def _unlimited(thresholds: Thresholds) -> Thresholds:
    return thresholds.model_copy(update={"max_matches": sys.maxsize})


def _false_flags(flagged: Iterable[Pair], corpus: Corpus, folder: Path) -> list[FalseFlag]:
    """The flags with little in common by their sets of word pairs, computed without the code that is measured."""

    @lru_cache(CACHED_TEXTS)
    def shingles(place: int) -> frozenset[tuple[bytes, ...]]:
        words = tokens(page_text((folder / "html" / f"{place}.html").read_bytes(), None, Extraction()))
        return frozenset(pairwise(words)) or frozenset([tuple(words)])

    false_flags = []
    for pair in sorted(flagged, key=lambda pair: (pair.a, pair.b)):
        a, b = shingles(pair.a), shingles(pair.b)
        common = len(a & b)
        jaccard, containment = common / len(a | b), common / min(len(a), len(b))
        if max(jaccard, containment) < FALSE_BELOW:
            (id_a, edit_a), (id_b, edit_b) = corpus.describe(pair.a), corpus.describe(pair.b)
            assert pair.kind is not None
            false_flags.append(FalseFlag(id_a, id_b, edit_a, edit_b, pair.kind, jaccard, containment))
    return false_flags
