"""Projects the memory of a corpus, by language and tier and in total, the days until the box is full, and lookups."""

from collections.abc import Mapping
from dataclasses import dataclass

from neardup.config import Detection
from neardup.core.candidates.banding import BAND_BITS, SHARED_BLOCKS, Banding
from neardup.index import packed_buckets
from neardup.index.size import SIZE_PROJECTIONS, IndexSize, LanguageShape
from neardup.index.spread import even_spread, signature_spread, two_shared
from neardup.insights.plan.profile import Profile
from neardup.records import Language

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


@dataclass(frozen=True, slots=True)
class Corpus:
    """The number of stories of each language that can be fingerprinted, and the profile of each language."""

    stories: Mapping[Language, float]
    profiles: Mapping[Language, Profile]
    detection: Detection

    def scaled(self, factor: float) -> "Corpus":
        """The same corpus with `factor` times the stories."""
        return Corpus({one: factor * n for one, n in self.stories.items()}, self.profiles, self.detection)

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
    return TITLE_INDEX_SHARE * sum(n * corpus.profiles[one].row.title for one, n in corpus.stories.items())


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
