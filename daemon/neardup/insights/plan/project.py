"""Projects what a corpus takes, by language and tier and in all: memory, days until the box is full, lookups."""

from collections.abc import Mapping
from dataclasses import dataclass

from neardup.config import Detection
from neardup.core.candidates.banding import BAND_BITS, SHARED_BLOCKS, Banding
from neardup.index import packed_buckets
from neardup.index.backends import SIZE_PROJECTIONS
from neardup.index.size import IndexSize, LanguageShape
from neardup.index.spread import even_spread, signature_spread, two_shared
from neardup.insights.plan.profile import Profile
from neardup.records import Language

GIB = 1 << 30
SYSTEM = GIB // 2  # the operating system
DAEMON = 400_000_000
FORK = 0.2  # of Redis's memory is written to, and so copied, while a child rewrites the append-only file
# Measured at 0.4 and 1.5 million stories of one language (tests/bench/sweep_size.py), and the shortlist's room.
SWEEP_BASE = 350_000_000
SWEEP_A_STORY = 89  # held of every story
SWEEP_OF_LARGEST = 130  # beside, of each of the largest language: columns, order, chains, places, pairs
SWEEP_MOST = 4_000_000_000
HORIZON, HALVINGS = 3650, 10  # days that are looked ahead, and how finely


@dataclass(frozen=True, slots=True)
class Corpus:
    """The number of stories of each language that can be fingerprinted, and the profile of each language."""

    stories: Mapping[Language, float]
    profiles: Mapping[Language, Profile]
    detection: Detection

    def times(self, factor: float) -> "Corpus":
        """The same corpus with `factor` times the stories."""
        return Corpus({one: factor * n for one, n in self.stories.items()}, self.profiles, self.detection)

    @property
    def bits(self) -> packed_buckets.Bits:
        """The widths of the values in an index that was rebuilt at this size."""
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
            signature_skew=corpus.profiles[language].sketch_skew,
            simhash_skew=corpus.profiles[language].hash_skew,
            banding=corpus.banding(language),
            value_bits=bits[language],
        )
        for language, stories in corpus.stories.items()
    ]
    return SIZE_PROJECTIONS[backend](shapes, grown=grown)


def sweep_bytes(stories: Mapping[Language, float]) -> float:
    """A sweep's memory at its most."""
    return SWEEP_BASE + SWEEP_A_STORY * sum(stories.values()) + SWEEP_OF_LARGEST * max(stories.values(), default=0)


def needed(corpus: Corpus, layout: str) -> dict[str, float]:
    """The box's memory, by what takes it."""
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
    """Days of `daily` new stories until the box is full; None where it is not within HORIZON days."""
    stories = sum(corpus.stories.values())

    def fits(days: float) -> bool:
        return needed(corpus.times(1 + days * daily / stories), layout)["needed"] <= memory

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
    """What a lookup reads of a tier: numbers in buckets, and of these the candidates, whose hashes it compares."""

    numbers: float
    candidates: float


def lookup(corpus: Corpus, language: Language, layout: str, stories: float) -> dict[str, Reads]:
    """Of a lookup among so many stories of a language, by tier."""
    profile, banding = corpus.profiles[language], corpus.banding(language)
    documented = layout == "documented"
    bits = BAND_BITS if documented else corpus.bits[language]
    signed, whole = stories * profile.signed, signature_spread(profile.sketch_skew, banding.bands, BAND_BITS)
    buckets = signature_spread(profile.sketch_skew, banding.bands, bits)
    blocks = even_spread(banding.hamming + SHARED_BLOCKS, bits)
    sharing = profile.two_bands + two_shared(buckets.collisions) - two_shared(whole.collisions)
    return {
        # Redis intersects the documented bands, and gives what differs in a few bits.
        "near": Reads(
            numbers=0.0 if documented else blocks.read(stories, banding.max_bucket),
            candidates=0.0 if documented else stories * two_shared(blocks.collisions),
        ),
        "similar": Reads(
            numbers=buckets.read(signed, banding.max_bucket),
            candidates=signed * sharing * buckets.read_share(signed, banding.max_bucket) ** 2,  # in both of the buckets
        ),
    }
