"""The projection of a corpus: memory, disk, time, the days until the box is full, and a warning for each problem.

Sizes are those that the projections of the index and ledger packages give, by language and tier; the passage index has
its own, with the reads of a day's lookups from a cold disk.
"""

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from neardup.config import Config, Detection
from neardup.core.candidates.banding import BAND_BITS, SHARED_BLOCKS, Banding
from neardup.index import packed_buckets
from neardup.index.passages.segment import BLOCK, OFFSET, bucket_bits, segment_bytes
from neardup.index.redis import LAYOUTS
from neardup.index.size import SIZE_PROJECTIONS, IndexSize, LanguageShape, valkey_bytes
from neardup.index.spread import even_spread, signature_spread, two_shared
from neardup.insights.plan.sample import (
    COMMIT,
    FEW,
    INDEX,
    MICRO,
    STAGES,
    PageCost,
    Profile,
    Sample,
    find_pace,
    measure_profile,
    writing_cost,
)
from neardup.ledger.story_rows import ledger_bytes
from neardup.records import Fingerprinted, Language

GIB = 1 << 30
SYSTEM = GIB // 2  # the operating system
DAEMON = 400_000_000
FORK = 0.2  # share of Redis's memory that is copied because it is written to while a child rewrites the AOF
# Measured at 0.4 and 1.5 million stories of one language (tests/bench/sweep_size.py), plus the memory of the top-k
# lists.
SWEEP_BASE = 350_000_000
SWEEP_A_STORY = 89  # bytes for every story
SWEEP_OF_LARGEST = 130  # more bytes for each story of the largest language, whose bucket join is in memory
SWEEP_MOST = 4_000_000_000
TITLE_INDEX_SHARE = 0.4  # bytes for each byte of the titles; 0.25 to 0.51 with 20,000 to 240,000 titles of 2 to 8 words
HORIZON, HALVINGS = 3650, 10  # days to look ahead, and steps of the bisection
READS_A_SECOND = 3000  # of 4 KiB at random places, by a gp3 volume as it comes
SOON = 365  # days; a box that is full earlier gets a warning


@dataclass(frozen=True, slots=True)
class Corpus:
    """The number of stories of each language that can be fingerprinted, and the profile of each language."""

    stories: Mapping[Language, float]
    profiles: Mapping[Language, Profile]
    detection: Detection

    def scaled(self, factor: float) -> "Corpus":
        """The same corpus with `factor` times the stories."""
        return Corpus({language: factor * n for language, n in self.stories.items()}, self.profiles, self.detection)

    @property
    def bits(self) -> packed_buckets.Bits:
        """The widths in bits of the bucket values, in an index that was rebuilt at this size."""
        return packed_buckets.bits_for({language: round(n) for language, n in self.stories.items()}, self.stories)

    def banding(self, language: Language) -> Banding:
        return self.detection.banding(language)


def index_size(corpus: Corpus, backend: str, *, grown: bool = True) -> IndexSize:
    """The size of the index of a corpus in a backend of SIZE_PROJECTIONS, `grown` story by story or rebuilt."""
    bits = corpus.bits
    shapes = [
        LanguageShape(
            language,
            stories,
            signed=corpus.profiles[language].signed,
            highest_id=corpus.profiles[language].row.highest_id,
            signature_skew=corpus.profiles[language].signature_skew,
            simhash_skew=corpus.profiles[language].simhash_skew,
            banding=corpus.banding(language),
            value_bits=bits[language],
        )
        for language, stories in corpus.stories.items()
    ]
    return SIZE_PROJECTIONS[backend](shapes, grown=grown)


def sweep_bytes(stories: Mapping[Language, float]) -> float:
    """The peak memory of a sweep, in bytes."""
    return SWEEP_BASE + SWEEP_A_STORY * sum(stories.values()) + SWEEP_OF_LARGEST * max(stories.values(), default=0)


def title_index_bytes(corpus: Corpus) -> float:
    """The bytes on disk of the index of titles, which the desk fills."""
    return TITLE_INDEX_SHARE * sum(n * corpus.profiles[language].row.title for language, n in corpus.stories.items())


def memory_needed(corpus: Corpus, layout: str) -> dict[str, float]:
    """The memory that the box needs, in bytes, by part and in total."""
    redis = index_size(corpus, layout).total
    parts = {
        "redis": redis,
        "rewrite": FORK * redis,
        "daemon": DAEMON,
        "sweep": sweep_bytes(corpus.stories),
        "system": SYSTEM,
    }
    return {**parts, "needed": sum(parts.values())}


def days_until_full(corpus: Corpus, layout: str, daily: int, memory: float) -> float | None:
    """The days of `daily` new stories until the box is full; None if that takes more than HORIZON days."""
    stories = sum(corpus.stories.values())

    def fits(days: float) -> bool:
        return memory_needed(corpus.scaled(1 + days * daily / stories), layout)["needed"] <= memory

    if not stories or fits(HORIZON):
        return None
    if not fits(0):
        return 0.0
    low, high = 0.0, float(HORIZON)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


@dataclass(frozen=True, slots=True)
class Reads:
    """What a lookup reads for a tier: story numbers in buckets, and candidates, whose fingerprints it compares."""

    numbers: float
    candidates: float


def reads_per_lookup(corpus: Corpus, language: Language, layout: str, stories: float) -> dict[str, Reads]:
    """What a lookup among `stories` stories of a language reads, by tier."""
    profile, banding = corpus.profiles[language], corpus.banding(language)
    documented = layout == "documented"
    bits = BAND_BITS if documented else corpus.bits[language]
    signed, whole = stories * profile.signed, signature_spread(profile.signature_skew, banding.bands, BAND_BITS)
    buckets = signature_spread(profile.signature_skew, banding.bands, bits)
    blocks = even_spread(banding.hamming + SHARED_BLOCKS, bits)
    sharing = profile.two_bands + two_shared(buckets.collisions) - two_shared(whole.collisions)
    return {
        # In the documented layout Redis intersects the bands itself, and returns the few stories that match.
        "near": Reads(
            numbers=0.0 if documented else blocks.read(stories, banding.max_bucket),
            candidates=0.0 if documented else stories * two_shared(blocks.collisions),
        ),
        "similar": Reads(
            numbers=buckets.read(signed, banding.max_bucket),
            candidates=signed
            * sharing
            * buckets.read_share(signed, banding.max_bucket) ** 2,  # a candidate is read from both buckets
        ),
    }


@dataclass(frozen=True, slots=True)
class PassageProjection:
    """The passage index of a corpus: its bytes on disk once it is merged, and its postings.

    `daily_reads` are the blocks that a day's lookups read if none is in the page cache, and `daily_seconds` the time
    that they take at READS_A_SECOND.
    """

    bytes: int
    postings: int
    daily_reads: float
    daily_seconds: float


def project_passages(corpus: Corpus, daily: int) -> PassageProjection:
    """Project the passage index of a corpus, and the lookups of `daily` new stories in it."""
    stories = sum(corpus.stories.values())
    postings = round(sum(n * corpus.profiles[language].passages for language, n in corpus.stories.items()))
    size = segment_bytes(postings, max(round(stories), 1))
    directory = (OFFSET.itemsize << bucket_bits(postings)) / BLOCK
    hashes = daily * postings / stories if stories else 0.0
    reads = _distinct(directory, hashes) + _distinct(size / BLOCK - directory, hashes)
    return PassageProjection(size, postings, reads, reads / READS_A_SECOND)


def _distinct(blocks: float, draws: float) -> float:
    """How many different blocks so many random draws hit."""
    return blocks * -math.expm1(-draws / blocks)


def plan(
    config: Config, sample: Sample | None, counts: Mapping[Language, int], daily: int, memory: int
) -> dict[str, Any]:
    """Project what `counts` stories need, and `daily` more each day, on a box with `memory` bytes: the JSON object."""
    outcomes = sample.outcomes if sample else {}
    profiles = {language: measure_profile(language, outcomes.get(language, [])) for language in counts}
    corpus = Corpus(
        {language: n * profiles[language].readable for language, n in counts.items()}, profiles, config.detection
    )
    cost = sample.cost if sample else PageCost()
    boxes = {layout: memory_needed(corpus, layout) for layout in LAYOUTS}
    facts: dict[str, Any] = {
        "sample": _sample_counts(sample) if sample else None,
        "languages": {str(language): _project_language(corpus, language, n) for language, n in counts.items()},
        "page": {"fetch_us": cost.fetch, "read_us": cost.read, "wall_us": cost.wall, "bytes": cost.bytes},
        **_servers(corpus),
        "memory": {"box": memory, **boxes},
        "passages": asdict(project_passages(corpus, daily)),
        "title_index_bytes": title_index_bytes(corpus),
        "days_until_full": {layout: days_until_full(corpus, layout, daily, memory) for layout in boxes},
        "daily_stories": daily,
        **_runs(corpus, cost, daily),
    }
    facts["warnings"] = _warnings(config, facts, corpus, sample)
    return _rounded(facts)


def _servers(corpus: Corpus) -> dict[str, Any]:
    """The bytes of the index in Redis and in Valkey, by layout: if it grew story by story, and if it was rebuilt."""
    sizes = {
        layout: {state: index_size(corpus, layout, grown=state == "grown") for state in ("grown", "rebuilt")}
        for layout in LAYOUTS
    }
    return {
        "redis": {layout: {state: size.total for state, size in of.items()} for layout, of in sizes.items()},
        "valkey": {
            layout: {state: valkey_bytes(size, layout, grown=state == "grown") for state, size in of.items()}
            for layout, of in sizes.items()
        },
    }


def _sample_counts(sample: Sample) -> dict[str, Any]:
    read = {
        str(language): sum(isinstance(out, Fingerprinted) for out in outs) for language, outs in sample.outcomes.items()
    }
    return {"fingerprinted": read, "not_fingerprinted": dict(sample.unread), "bad_rows": sample.bad_rows}


def _project_language(corpus: Corpus, language: Language, listed: int) -> dict[str, Any]:
    stories, profile = corpus.stories[language], corpus.profiles[language]
    only = Corpus({language: stories}, corpus.profiles, corpus.detection)
    tiers = {
        f"{backend}_bytes": {tier: size.bytes for tier, size in index_size(only, backend).tiers[language].items()}
        for backend in SIZE_PROJECTIONS
    }
    return {
        "listed": listed,
        "stories": stories,
        **tiers,
        "ledger_bytes": ledger_bytes(stories, profile.signed, profile.row),
        "skew": {"signatures": profile.signature_skew, "simhashes": profile.simhash_skew},
        "fullest_bucket": profile.fullest * stories,
        "lookup": {
            layout: {tier: asdict(reads) for tier, reads in reads_per_lookup(corpus, language, layout, stories).items()}
            for layout in LAYOUTS
        },
    }


def _run(cost: PageCost, stories: Mapping[Language, float], writing: Callable[[Language], float]) -> dict[str, Any]:
    """Project a run: its duration, and the stage that limits it.  `writing` is the writer's microseconds a story."""
    seconds = dict.fromkeys(STAGES, 0.0)
    for language, n in stories.items():
        pace = find_pace(cost, writing(language), os.cpu_count() or 1)
        seconds[pace.limited_by] += n / pace.rate
    return {"seconds": sum(seconds.values()), "limited_by": max(seconds, key=lambda stage: seconds[stage])}


def _runs(corpus: Corpus, cost: PageCost, daily: int) -> dict[str, dict[str, Any]]:
    """Project by index a backfill, a backfill --fresh (without its sweep), and the daily run of `daily` stories."""

    def writer_cost(name: str, filled: float) -> Callable[[Language], float]:
        """The writer's cost of a story by language, with an index that holds the share `filled` of the corpus."""

        def cost_of(language: Language) -> float:
            tiers = reads_per_lookup(corpus, language, name, filled * corpus.stories[language]).values()
            numbers, candidates = sum(tier.numbers for tier in tiers), sum(tier.candidates for tier in tiers)
            return writing_cost(INDEX[name], numbers, candidates)

        return cost_of

    total = sum(corpus.stories.values()) or 1
    day = {language: daily * n / total for language, n in corpus.stories.items()}
    runs: dict[str, dict[str, Any]] = {"backfill": {}, "fresh": {}, "daily": {}}
    for name, index in INDEX.items():
        fresh = _run(cost, corpus.stories, lambda _: COMMIT)
        fresh["seconds"] += total * index.build / MICRO
        runs["fresh"][name] = fresh
        runs["backfill"][name] = _run(cost, corpus.stories, writer_cost(name, 0.5))  # half full on average
        runs["daily"][name] = _run(cost, day, writer_cost(name, 1.0))
    return runs


def _warnings(config: Config, facts: Mapping[str, Any], corpus: Corpus, sample: Sample | None) -> list[str]:
    warnings: list[str] = []
    for layout, days in facts["days_until_full"].items():
        required, box = facts["memory"][layout]["needed"], facts["memory"]["box"]
        if days == 0:
            warnings.append(
                f'does not fit with index.layout = "{layout}": needs {gigabytes(required)} of {gigabytes(box)}'
            )
        elif days is not None and days < SOON:
            warnings.append(f'the box is full in {days:,.0f} days with index.layout = "{layout}"')
    if (sweep := facts["memory"]["compact"]["sweep"]) > SWEEP_MOST:
        warnings.append(f"a sweep takes {gigabytes(sweep)} of memory, more than {gigabytes(SWEEP_MOST)}")
    overfull = [
        f"{language} {corpus.profiles[language].fullest * n:,.0f}"
        for language, n in corpus.stories.items()
        if corpus.profiles[language].fullest * n > config.detection.of(language).max_bucket
    ]
    if overfull:
        warnings.append(
            f"some buckets will exceed detection.max_bucket; the largest have {', '.join(overfull)} stories. Look for "
            "text that many pages share. A lookup reads only the latest stories of such a bucket"
        )
    if sample is not None:
        counted = facts["sample"]["fingerprinted"]
        few = [
            f"{language} {counted.get(str(language), 0):,}"
            for language in corpus.stories
            if counted.get(str(language), 0) < FEW
        ]
        if few:
            warnings.append(f"few stories sampled ({', '.join(few)}): their skew is assumed to be typical")
        if sample.bad_rows:
            warnings.append(f"{sample.bad_rows:,} rows of the listing name no story")
        if bad := facts["sample"]["not_fingerprinted"]:
            warnings.append(f"sampled but not fingerprinted: {', '.join(f'{why} {n:,}' for why, n in bad.items())}")
    return warnings


def gigabytes(size: float) -> str:
    """Format bytes in GiB, or in MiB below half a GiB."""
    return f"{size / (1 << 30):.2f} GiB" if size >= 1 << 29 else f"{size / (1 << 20):,.1f} MiB"


def _rounded(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Round to the precision of the model: four digits, and whole numbers from 1,000."""
    rounded = dict(facts)
    for name, fact in facts.items():
        if isinstance(fact, dict):
            rounded[name] = _rounded(fact)
        elif isinstance(fact, float):
            rounded[name] = round(fact) if fact >= 1000 else float(f"{fact:.4g}")
    return rounded
