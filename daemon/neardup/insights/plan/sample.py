"""What a projection is made of: the costs of a story, the profiles of languages, and a sample that measures both.

The cost of fetching, reading and fingerprinting a page is measured by the sample on this machine.  The other costs are
the constants below, in microseconds of CPU a story.  They were measured on two shared x86-64 vCPUs that also ran Redis
7.0.  A profile has the properties of a language's stories that decide how much space they take, measured on the sample
or typical.
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from statistics import fmean

import numpy as np
import numpy.typing as npt

from neardup.app import open_readers
from neardup.config import Config
from neardup.core.candidates.banding import BANDS, ROWS_A_BAND
from neardup.core.columns import Key, Outcomes, StoryColumns
from neardup.core.fingerprint.minhash import ROWS, SignatureRows, agreeing, signature_rows
from neardup.core.verify.scores import HashRows, hamming, hash_rows
from neardup.index.spread import BAND_VALUES, BYTE_VALUES, Floats, two_shared
from neardup.ledger.story_rows import StoryRow, pack_etag, pack_id
from neardup.pipeline.worker import Jobs, Known, Worker
from neardup.records import Fingerprinted, Language, Outcome, Skipped, Story
from neardup.source import rows_of
from neardup.source.listings import open_source
from neardup.sqlite import integer_bytes

MICRO = 1e6
HOUR, MINUTE = 3600, 60
STAGES = ("processors", "writer", "fetching pages")
USED = 0.9  # share of the cores that is used at best, because stages wait for each other


@dataclass(frozen=True, slots=True)
class PageCost:
    """The cost of a page.

    `fetch` is the CPU time to fetch it, `read` the CPU time to extract and fingerprint its text, `wall` the elapsed
    time a page with as many requests in flight as a run has, all in microseconds; `bytes` is its size.  The defaults
    are for 20 KB of HTML with 1,130 words, from a store on the same machine, with both cores busy.
    """

    fetch: float = 95.0
    read: float = 155.0
    wall: float = 180.0
    bytes: float = 20_000.0


@dataclass(frozen=True, slots=True)
class IndexCost:
    """The costs of an index in microseconds of CPU, including those of Redis.

    `lookup` is for a lookup without the numbers that it reads, `a_number` for each of these, `insert` for an insert,
    and `build` for a story of an index that is built from the ledger.
    """

    lookup: float
    a_number: float
    insert: float
    build: float


# Batches of 256 stories as uneven as prose, at 1 to 15.8 million stories of all languages.
INDEX = {
    "documented": IndexCost(lookup=300.0, a_number=0.012, insert=190.0, build=15.0),
    "compact": IndexCost(lookup=95.0, a_number=0.012, insert=170.0, build=6.0),
    "sqlite": IndexCost(lookup=110.0, a_number=0.012, insert=650.0, build=5.0),
}
FLOW = 60.0  # to list a story and pass it between the processes
COMMIT = 25.0  # to commit a story and its candidates to the ledger
CANDIDATE = 6.0  # to read the row of a candidate from the ledger and compare its fingerprints


@dataclass(frozen=True, slots=True)
class Pace:
    """Stories a second, and the stage of STAGES that limits them."""

    rate: float
    limited_by: str


def find_pace(page: PageCost, writing: float, cores: int) -> Pace:
    """The rate of a run whose writer takes `writing` microseconds a story."""
    costs = ((page.fetch + page.read + FLOW + writing) / (USED * cores), writing, page.wall)
    rates = dict(zip(STAGES, (MICRO / max(cost, 1.0) for cost in costs), strict=True))
    slowest = min(rates, key=lambda name: rates[name])
    return Pace(rates[slowest], slowest)


def writing_cost(index: IndexCost, numbers: float, candidates: float) -> float:
    """The writer's cost of a story whose lookup reads `numbers` numbers and `candidates` candidates."""
    return COMMIT + index.lookup + index.a_number * numbers + CANDIDATE * candidates + index.insert


# Profiles of languages

HASH_BYTES = 4  # of a passage hash
FEW = 100  # with fewer stories of a language, its skew is taken as typical instead of measured
COPY_ROWS = ROWS // 2  # stories that agree in this many rows, or differ in at most COPY_BITS bits, are related
COPY_BITS = 10
STYLES = 3  # factor by which real pairs share two bands more often than with independent bands
MOST_SHARED = 0.5  # upper limit for the share of pairs that share a band, if nearly all stories are copies
SIGNIFICANT = 4  # stories or pairs of a sample that share a band, for it not to be by chance


@dataclass(frozen=True, slots=True)
class Profile:
    """The average story of a language.

    `signature_skew` and `simhash_skew` say how much more often than the uniform 2 ** -16 two unrelated stories share a
    band of their signatures and of their SimHashes.  `two_bands` is the share of pairs that share at least two bands of
    their signatures.  `fullest` is the share of the stories in the largest bucket, 0 if unknown.  `signed` is the
    share of stories with a signature, `readable` the share that can be fingerprinted, `passages` the mean number of
    passage hashes of a story, and `row` the average row of the ledger.
    """

    signature_skew: float
    simhash_skew: float
    two_bands: float
    fullest: float = 0.0
    signed: float = 1.0
    readable: float = 1.0
    passages: float = 91.0  # of 1,000 words
    row: StoryRow = field(default_factory=StoryRow)


# Measured by `python -m tests.bench.skew` on those of 5,954 real documents (encyclopedias, news, manuals, scripture)
# that have at least 100 words and are not copies.  Marathi has too few documents for shared bands, so its rows and bits
# are taken as independent.  Only English has enough pairs to count those that share two bands; for the other languages
# this is STYLES times the share with independent bands.
TYPICAL = {
    Language("HINDI"): Profile(10.0, 29.0, 3.3e-5, 0.034),
    Language("MALAYALAM"): Profile(2.2, 2.5, 1.5e-6, 0.006),
    Language("BENGALI"): Profile(3.1, 8.5, 3.0e-6),
    Language("MARATHI"): Profile(1.7, 3.0, 9.8e-7),
    Language("TAMIL"): Profile(2.3, 2.9, 1.8e-6, 0.018),
    Language("TELUGU"): Profile(1.5, 2.9, 7.2e-7),
    Language("GUJARATI"): Profile(17.0, 23.0, 9.3e-5, 0.054),
    Language("ENGLISH"): Profile(12.0, 32.0, 7.0e-5, 0.033),
    Language("ODIA"): Profile(6.1, 3.5, 8.1e-6),
    Language("PUNJABI"): Profile(6.3, 5.4, 1.3e-5, 0.023),
}
TYPICAL_OF_OTHERS = Profile(3.0, 8.0, 3.0e-6)  # for a language that was not measured: about the median of these


MOST = 5000  # largest number of stories that are compared with each other


def measure_profile(language: Language, outcomes: Sequence[Outcome]) -> Profile:
    """The profile of a sample; the skews are typical if it has fewer than FEW signatures of unrelated stories."""
    fingerprinted = [outcome for outcome in outcomes if isinstance(outcome, Fingerprinted)]
    typical = TYPICAL.get(language, TYPICAL_OF_OTHERS)
    if not fingerprinted:
        return typical
    common = replace(
        typical,
        signed=fmean(story.fingerprint.signature is not None for story in fingerprinted),
        readable=1 - sum(isinstance(outcome, Skipped) for outcome in outcomes) / len(outcomes),
        passages=fmean(len(story.fingerprint.passages) / HASH_BYTES for story in fingerprinted),
        row=_average_row(fingerprinted),
    )
    signed = [story.fingerprint for story in fingerprinted if story.fingerprint.signature is not None]
    if len(signed) < FEW:
        return common
    signatures = signature_rows([fingerprint.signature for fingerprint in signed if fingerprint.signature])
    simhashes = hash_rows([fingerprint.simhash for fingerprint in signed])
    unrelated = _unrelated(signatures[:MOST], simhashes[:MOST])
    if len(unrelated) < FEW:
        return common
    signature_skew, simhash_skew, two_bands = _skews(signatures[unrelated], simhashes[unrelated])
    fullest = _fullest(signatures)
    return replace(
        common, signature_skew=signature_skew, simhash_skew=simhash_skew, two_bands=two_bands, fullest=fullest
    )


def _average_row(stories: Sequence[Fingerprinted]) -> StoryRow:
    """The average sizes of what the ledger would store of the stories, apart from the hashes."""

    def mean(size: Callable[[Fingerprinted], float]) -> float:
        return fmean(map(size, stories))

    return StoryRow(
        highest_id=max(outcome.story.id for outcome in stories),
        title=mean(lambda outcome: len((outcome.story.title or outcome.page_title or "").encode())),
        path=mean(lambda outcome: len((outcome.story.path or "").encode())),
        author_id=mean(lambda outcome: _stored(pack_id(outcome.story.author_id))),
        etag=mean(lambda outcome: _stored(pack_etag(outcome.etag))),
        dates=mean(lambda outcome: (outcome.story.published_at is not None) + (outcome.story.updated_at is not None)),
    )


def _stored(value: bytes | str | int | None) -> int:
    if value is None:
        return 0
    return integer_bytes(value) if isinstance(value, int) else len(value)


def _unrelated(signatures: SignatureRows, simhashes: HashRows) -> list[int]:
    """The positions of stories of which no two are related: of related stories, the first."""
    unrelated: list[int] = []
    for position in range(len(signatures)):
        similar = agreeing(signatures[unrelated], signatures[position]) >= COPY_ROWS
        near = hamming(simhashes[unrelated], simhashes[position]) <= COPY_BITS
        if not (similar | near).any():
            unrelated.append(position)
    return unrelated


def _skews(signatures: SignatureRows, simhashes: HashRows) -> tuple[float, float, float]:
    """The two skews, and the share of pairs that share two bands.

    A skew is computed from the share of pairs that share a band, or from the share that would with independent rows and
    bits, whichever is larger.  The second is a lower bound, and varies far less in a small sample.
    """
    bands, hash_bands = _values(signatures), _values(simhashes)
    rows = collisions(signatures, BYTE_VALUES).reshape(-1, ROWS_A_BAND).prod(axis=1)
    bits = np.unpackbits(np.ascontiguousarray(simhashes).view(np.uint8), axis=1)
    hashes = collisions(bits, 2).reshape(BANDS, -1).prod(axis=1)
    sharing = max(collisions(bands, BAND_VALUES).mean(), rows.mean())
    hash_sharing = max(collisions(hash_bands, BAND_VALUES).mean(), hashes.mean())
    by_chance = two_shared(np.minimum(rows * sharing / rows.mean(), MOST_SHARED))
    return BAND_VALUES * sharing, BAND_VALUES * hash_sharing, _sharing_two(bands) or STYLES * by_chance


def _sharing_two(bands: npt.NDArray[np.uint16]) -> float:
    """The share of pairs that share at least two bands; 0 for fewer than SIGNIFICANT such pairs."""
    pairs = sum(
        int(np.count_nonzero(np.count_nonzero(bands[n + 1 :] == bands[n], axis=1) > 1)) for n in range(len(bands) - 1)
    )
    return pairs / (len(bands) * (len(bands) - 1) / 2) if pairs >= SIGNIFICANT else 0.0


def _values(fingerprints: SignatureRows | HashRows) -> npt.NDArray[np.uint16]:
    """Split n fingerprints into their bands, of shape (n, bands); the byte order does not matter."""
    return np.ascontiguousarray(fingerprints).view(np.uint16)


def collisions(values: npt.NDArray[np.unsignedinteger], size: int) -> Floats:
    """The share of pairs with equal values, for each column of an (n, columns) array of values below `size`."""
    counts = np.array([np.bincount(column, minlength=size) for column in values.T])
    return np.asarray((counts * (counts - 1)).sum(axis=1) / (len(values) * (len(values) - 1)))


def _fullest(signatures: SignatureRows) -> float:
    """The share of stories in the largest bucket, copies included; 0 if it has fewer than SIGNIFICANT stories."""
    most = max(int(np.bincount(band).max()) for band in _values(signatures).T)
    return most / len(signatures) if most >= SIGNIFICANT else 0.0


# The sample

SEED = 1


@dataclass(slots=True)
class Sample:
    """The stories listed by language, the outcomes of those that were read, and the cost of a page."""

    listed: Counter[Language] = field(default_factory=Counter)
    bad_rows: int = 0
    outcomes: dict[Language, list[Outcome]] = field(default_factory=dict)
    cost: PageCost = field(default_factory=PageCost)

    @property
    def unread(self) -> Counter[str]:
        """Count the stories that could not be fingerprinted, by reason."""
        every = (outcome for outcomes in self.outcomes.values() for outcome in outcomes)
        return Counter(str(outcome.reason) for outcome in every if not isinstance(outcome, Fingerprinted))


async def read_sample(config: Config, size: int, show_listed: Callable[[int], None]) -> Sample:
    """Read `size` stories, divided over the languages as evenly as possible; the same listing gives the same stories.

    `show_listed` is called with the number of stories listed so far.
    """
    sample = Sample()
    drawn = await _draw(config, size, sample, show_listed)
    stories = StoryColumns.of(story for of_language in drawn.values() for story in of_language)
    outcomes, sizes = dict[Key, Outcome](), list[int]()

    async def keep(found: Outcomes) -> None:
        outcomes.update(zip(found.keys, found.objects(), strict=True))
        sizes.extend(found.made.pages.headers["size"].tolist())

    async with aclosing(open_readers(config)) as pool:
        worker = Worker(_nothing_on_record, pool.read_all, config.registry)
        if len(stories):
            await pool.start()  # before the measurement, which must not include it
        wall_before, cpu_before, computing_before = time.perf_counter(), pool.cpu_seconds, pool.computing_seconds
        await worker.work(Jobs(stories), keep)
        sample.cost = _cost(
            sizes,
            computing=pool.computing_seconds - computing_before,
            cpu=pool.cpu_seconds - cpu_before,
            wall=time.perf_counter() - wall_before,
        )
    sample.outcomes = {
        language: [outcomes[story.id] for story in of_language] for language, of_language in drawn.items()
    }
    return sample


async def _draw(
    config: Config, size: int, sample: Sample, show_listed: Callable[[int], None]
) -> dict[Language, list[Story]]:
    """Draw `size` stories in all, and count what is listed in `sample`.

    Algorithm R, with a reservoir for each language (Vitter, "Random sampling with a reservoir", 1985).
    """
    rng = random.Random(SEED)  # noqa: S311 - not for cryptography
    reservoirs: dict[Language, list[Story]] = {}
    async for story in rows_of(open_source(config)):
        if not isinstance(story, Story):
            sample.bad_rows += 1
            continue
        sample.listed[story.language] += 1
        show_listed(sample.listed.total())
        reservoir = reservoirs.setdefault(story.language, [])
        if len(reservoir) < size:
            reservoir.append(story)
        elif (place := rng.randrange(sample.listed[story.language])) < size:
            reservoir[place] = story
    shares = _shares({language: len(reservoir) for language, reservoir in reservoirs.items()}, size)
    return {language: rng.sample(reservoirs[language], n) for language, n in shares.items()}


def _shares(available: dict[Language, int], size: int) -> dict[Language, int]:
    """Divide `size` over the languages as evenly as possible; what one language lacks goes to the others."""
    shares, left = {}, size
    for done, language in enumerate(sorted(available, key=lambda language: available[language])):
        shares[language] = min(available[language], left // (len(available) - done))
        left -= shares[language]
    return shares


def _cost(sizes: Sequence[int], *, computing: float, cpu: float, wall: float) -> PageCost:
    """The mean cost of pages of these sizes, which took these seconds in total; the default cost if there are none."""
    if not sizes:
        return PageCost()
    per_page = MICRO / len(sizes)  # seconds in total -> microseconds a page
    read = computing * per_page
    return PageCost(fetch=max(0.0, cpu * per_page - read), read=read, wall=wall * per_page, bytes=fmean(sizes))


async def _nothing_on_record(_: Sequence[int]) -> dict[int, Known]:
    """Find no story on record, so that every page is read."""
    return {}
