"""Synthetic fingerprints: any number of stories of one language, uniform or as skewed as prose.

In prose some word pairs occur in many stories.  Where such a pair has the minimum hash of a signature row, its byte
recurs in many signatures, and a band's bucket holds many times the members of a uniform bucket.  The model draws a row
as MinHash computes it: the minimum over COMMON pairs, whose frequencies follow a power law, and RARE pairs, which occur
in one story only.  The probability of each byte follows in closed form.  Common words also bias the bits of a SimHash.
Each style adds common pairs and a bias of its own, so two stories of one style share bands more often; without styles,
three times too few pairs share two bands.

SHAPES holds the two parameters fitted for each language: two synthetic stories share a band as often as two unrelated
stories in measured corpora.  The other constants hold for all languages.  `python -m tests.bench.skew CORPUS` compares
a real corpus with synthetic stories.
"""

import math
import sqlite3
from collections.abc import Iterator, Sequence

import click
import numpy as np
import numpy.typing as npt
from msgspec import Struct
from neardup.core.candidates.banding import BAND_BITS, Numbers
from neardup.core.columns import Outcomes
from neardup.core.fingerprint.minhash import ROWS, SignatureRows
from neardup.core.languages import LANGUAGES
from neardup.index.redis.client import cut_batches
from neardup.ledger import outbox, stories
from neardup.records import BandedFingerprint, Change, Fingerprint, Fingerprinted, Language, Outcome, Story

from tests.support.languages import BENGALI, ENGLISH, GUJARATI, HINDI, MALAYALAM, MARATHI, ODIA, PUNJABI, TAMIL, TELUGU
from tests.support.resource_meter import cpu_seconds

LANGUAGE = HINDI
FIRST_ID = 1_000_000_000
HASH_BYTES = 16
HASH_BITS = 8 * HASH_BYTES
BYTE_VALUES = 256
BAND_VALUES = 1 << BAND_BITS

SHAPE_SEED = 1
COMMON, RARE = 1000, 400
EXPONENT = 0.7  # the k-th common pair occurs in a share scale * k ** -EXPONENT of the stories
MAX_FREQUENCY = 0.9  # the largest share of the stories that a pair may occur in
STYLES = 32  # the n-th is 1 / n as frequent as the first
STYLE_SCALE = 2.0  # ratio of the frequencies of a style's own pairs to those of the language's
STYLE_BIAS = 0.5
TABLE_SIZE = 4096  # equally likely entries of a row's table
CHUNK = 1 << 14  # stories drawn at a time

UNRELATED, THREE_BITS = "unrelated", "3 bits differ"
FEW_ROWS, MANY_ROWS = "3 of 10 rows kept", "6 of 10 rows kept"
COPY_KINDS = (THREE_BITS, FEW_ROWS, MANY_ROWS)
KINDS = (UNRELATED, UNRELATED, UNRELATED, *COPY_KINDS)  # probe n has kind n % 6

HashBytes = npt.NDArray[np.uint8]  # (n, 16)
Floats = npt.NDArray[np.float64]


class Stories(Struct, frozen=True):
    """The fingerprints of many stories; story n has the number n + 1 and the id FIRST_ID + n."""

    simhashes: HashBytes
    signatures: SignatureRows

    def __len__(self) -> int:
        return len(self.simhashes)

    def banded(self, start: int, stop: int) -> list[BandedFingerprint]:
        pairs = zip(self.simhashes[start:stop], self.signatures[start:stop], strict=True)
        return [BandedFingerprint(LANGUAGE, simhash.tobytes(), signature.tobytes()) for simhash, signature in pairs]

    def changes(self, start: int, stop: int, batch: int) -> Iterator[list[Change]]:
        """The ledger's changes that insert the stories from start to stop, `batch` at a time."""
        for at in range(start, stop, batch):
            new = enumerate(self.banded(at, min(at + batch, stop)), at)
            yield [Change(n + 1, FIRST_ID + n, None, banded, n + 1) for n, banded in new]


class Probes(Struct, frozen=True):
    """Stories to look up, the kind of each, and the position of the original that it copies."""

    stories: Stories
    kinds: Sequence[str]
    originals: Numbers


class Distribution(Struct, frozen=True):
    """The probabilities of styles, and by style of each byte in a signature row and of each SimHash bit being set."""

    styles: Floats  # (s,), sum 1
    row_bytes: Floats  # (s, 64, 256), sum 1 along the last axis
    set_bits: Floats  # (s, 128)

    def signature_collision(self) -> float:
        """The probability that two stories share a band of their signatures, on average over the bands."""
        equal = np.einsum("arv,brv->abr", self.row_bytes, self.row_bytes)
        bands = (equal[:, :, ::2] * equal[:, :, 1::2]).mean(axis=2)
        return float(self.styles @ bands @ self.styles)

    def simhash_collision(self) -> float:
        """The probability that two stories share a band of their SimHashes, on average over the bands."""
        set_bits = self.set_bits[:, None]
        equal = set_bits * self.set_bits + (1 - set_bits) * (1 - self.set_bits)
        bands = equal.reshape(*equal.shape[:2], HASH_BYTES // 2, -1).prod(axis=3).mean(axis=2)
        return float(self.styles @ bands @ self.styles)


# By language: the scale of the common pairs' frequencies, and the bias of the SimHash bits.  The comments give the
# resulting band collisions of signatures and of SimHashes, as multiples of the uniform 2 ** -16.
SHAPES = {
    HINDI: (2.65, 0.74),  # 10 29
    MALAYALAM: (1.02, 0.25),  # 2.2 2.5
    BENGALI: (1.34, 0.50),  # 3.1 8.5
    MARATHI: (0.80, 0.30),  # 1.7 3.0
    TAMIL: (1.07, 0.28),  # 2.3 2.9
    TELUGU: (0.67, 0.28),  # 1.5 2.9
    GUJARATI: (3.45, 0.69),  # 17 23
    ENGLISH: (2.92, 0.77),  # 12 32
    ODIA: (2.05, 0.33),  # 6.1 3.5
    PUNJABI: (2.07, 0.42),  # 6.3 5.4
}


def collisions(values: npt.NDArray[np.unsignedinteger], size: int) -> Floats:
    """The share of pairs with equal values, for each column of an (n, columns) array of values below `size`."""
    counts = np.array([np.bincount(column, minlength=size) for column in values.T])
    return np.asarray((counts * (counts - 1)).sum(axis=1) / (len(values) * (len(values) - 1)))


def uniform() -> Distribution:
    """Every byte is equally likely, and so is every bit."""
    return Distribution(np.ones(1), np.full((1, ROWS, BYTE_VALUES), 1 / BYTE_VALUES), np.full((1, HASH_BITS), 0.5))


def prose(language: Language) -> Distribution:
    return skewed(*SHAPES[language])


def skewed(scale: float, bias: float) -> Distribution:
    """The distribution of prose with this scale of pair frequencies and this bias of SimHash bits; deterministic."""
    rng = np.random.default_rng(SHAPE_SEED)
    styles = 1 / np.arange(1, STYLES + 1)
    power_law = np.arange(1, COMMON + 1) ** -EXPONENT * scale
    frequencies: Floats = np.minimum(np.concatenate((power_law, STYLE_SCALE * power_law)), MAX_FREQUENCY)
    hashes = rng.random((2, COMMON, ROWS))
    values = rng.integers(0, BYTE_VALUES, (2, COMMON, ROWS))
    row_bytes = np.empty((STYLES, ROWS, BYTE_VALUES))
    for style in row_bytes:
        hashes[1] = rng.random((COMMON, ROWS))
        values[1] = rng.integers(0, BYTE_VALUES, (COMMON, ROWS))
        style[:] = _minimum_bytes(frequencies, hashes.reshape(-1, ROWS), values.reshape(-1, ROWS))
    biases = bias * rng.standard_normal(HASH_BITS) + STYLE_BIAS * rng.standard_normal((STYLES, HASH_BITS))
    return Distribution(styles / styles.sum(), row_bytes, np.vectorize(math.erf)(biases / math.sqrt(2)) / 2 + 0.5)


def _minimum_bytes(frequencies: Floats, hashes: Floats, values: npt.NDArray[np.int64]) -> Floats:
    """(64, 256): the probability of each byte value of the minimum hash, by row.

    A common pair has the minimum hash if it occurs in the story, no common pair with a smaller hash does, and the
    hashes of all RARE pairs, which are uniform between 0 and 1, are larger.
    """
    order = np.argsort(hashes, axis=0)
    present = frequencies[order]
    absent = np.cumprod(1 - present, axis=0)
    is_minimum = present * np.vstack((np.ones(ROWS), absent[:-1])) * (1 - np.take_along_axis(hashes, order, 0)) ** RARE
    cells = np.take_along_axis(values, order, 0) + BYTE_VALUES * np.arange(ROWS)
    common = np.bincount(cells.ravel(), is_minimum.ravel(), ROWS * BYTE_VALUES).reshape(ROWS, BYTE_VALUES)
    return np.asarray(common + (1 - common.sum(axis=1, keepdims=True)) / BYTE_VALUES)


def draw(rng: np.random.Generator, distribution: Distribution, count: int) -> Stories:
    """`count` stories that have nothing in common but their language and style."""
    stories = Stories(np.empty((count, HASH_BYTES), np.uint8), np.empty((count, ROWS), np.uint8))
    start = 0
    for part in draw_chunks(rng, distribution, count):
        chunk = slice(start, start := start + len(part))
        stories.simhashes[chunk], stories.signatures[chunk] = part.simhashes, part.signatures
    return stories


def draw_chunks(
    rng: np.random.Generator, distribution: Distribution, count: int, copies: float = 0.0
) -> Iterator[Stories]:
    """As `draw`, CHUNK stories at a time; a share `copies`, 0 to 0.5, of each chunk are copies of others in it."""
    ends = np.rint(np.cumsum(distribution.row_bytes, axis=2) * TABLE_SIZE).astype(np.int64)
    entries = np.diff(ends, axis=2, prepend=0)
    bytes_of = np.repeat(np.tile(np.arange(BYTE_VALUES, dtype=np.uint8), entries.size // BYTE_VALUES), entries.ravel())
    tables = TABLE_SIZE * np.arange(len(bytes_of) // TABLE_SIZE, dtype=np.int32).reshape(-1, ROWS)
    set_below = np.rint(distribution.set_bits * BYTE_VALUES).clip(0, BYTE_VALUES - 1).astype(np.uint8)
    for start in range(0, count, CHUNK):
        size = min(CHUNK, count - start)
        style = rng.choice(len(distribution.styles), size, p=distribution.styles)
        simhashes = np.packbits(rng.integers(0, BYTE_VALUES, (size, HASH_BITS), np.uint8) < set_below[style], axis=1)
        signatures = bytes_of.take(tables[style] + rng.integers(0, TABLE_SIZE, (size, ROWS), np.int32))
        stories = Stories(simhashes, signatures)
        plant_copies(rng, stories, round(copies * size))
        yield stories


def plant_copies(rng: np.random.Generator, stories: Stories, count: int) -> None:
    """Turn `count` stories into copies of `count` others: half near by SimHash, half with 3 to 9 of 10 rows kept."""
    originals, copies = rng.permutation(len(stories))[: 2 * count].reshape(2, -1)
    near = np.arange(count) < count // 2
    flipped = np.where(near, rng.integers(0, 4, count), rng.integers(8, 40, count))
    kept = np.where(near, 0.95, rng.uniform(0.3, 0.9, count))[:, None]
    stories.simhashes[copies] = stories.simhashes[originals] ^ _bits(rng, flipped)
    same = rng.random((count, ROWS)) < kept
    stories.signatures[copies] = np.where(same, stories.signatures[originals], stories.signatures[copies])


def _bits(rng: np.random.Generator, counts: npt.NDArray[np.int64]) -> HashBytes:
    """(n, 16): rows with these counts of bits set, at random positions."""
    order = rng.permuted(np.tile(np.arange(HASH_BITS, dtype=np.uint8), (len(counts), 1)), axis=1)
    return np.packbits(order < counts[:, None], axis=1)


def make_probes(rng: np.random.Generator, distribution: Distribution, stories: Stories, count: int) -> Probes:
    """Half of the probes are unrelated to all stories, a sixth are copies of each kind."""
    positions = rng.integers(0, len(stories), count).astype(np.uint32)
    originals = Stories(stories.simhashes[positions], stories.signatures[positions])
    fresh = draw(rng, distribution, count)
    by_kind = {
        UNRELATED: fresh,
        THREE_BITS: Stories(originals.simhashes ^ _bits(rng, np.full(count, 3)), fresh.signatures),
        FEW_ROWS: _keeping_rows(rng, 0.3, originals, fresh),
        MANY_ROWS: _keeping_rows(rng, 0.6, originals, fresh),
    }
    kinds = [KINDS[n % len(KINDS)] for n in range(count)]
    simhashes = np.stack([by_kind[kind].simhashes[n] for n, kind in enumerate(kinds)])
    signatures = np.stack([by_kind[kind].signatures[n] for n, kind in enumerate(kinds)])
    return Probes(Stories(simhashes, signatures), kinds, positions)


def _keeping_rows(rng: np.random.Generator, share: float, originals: Stories, fresh: Stories) -> Stories:
    """Copies that keep this share of the original's signature rows, and nothing of its SimHash."""
    kept = rng.random(originals.signatures.shape) < share
    return Stories(fresh.simhashes, np.where(kept, originals.signatures, fresh.signatures))


FILL_BATCH = 10_000
FIRST_LISTED_ID, ID_STEP = 6_755_373_518_000_000, 997
AUTHORS = 1_000_003
FIRST_TIME, PERIOD = 1_600_000_000_000, 10**11
WORDS = [
    "डाकघर",
    "की",
    "पुरानी",
    "दराज़",
    "सात",
    "नंबर",
    "की",
    "सीट",
    "मेरी",
    "अधूरी",
    "प्रेम",
    "कहानी",
    "एक",
    "रात",
    "का",
    "राज़",
    "वो",
    "लड़की",
]
MICRO = 1e6
PLATFORM = {
    HINDI: 4_170_000,
    MALAYALAM: 2_060_000,
    BENGALI: 1_850_000,
    MARATHI: 1_850_000,
    TAMIL: 1_820_000,
    TELUGU: 1_540_000,
    GUJARATI: 1_120_000,
    ENGLISH: 710_000,
    ODIA: 410_000,
    PUNJABI: 270_000,
}


def random_stories(ids: Sequence[int], seed: int) -> list[Fingerprinted]:
    """Synthetic stories with these ids, of random languages and with random fingerprints."""
    rng = np.random.default_rng(seed)
    hashes = rng.integers(0, 256, (len(ids), HASH_BYTES + ROWS), np.uint8)
    languages = rng.integers(0, len(LANGUAGES), len(ids)).tolist()
    fingerprints = [
        BandedFingerprint(LANGUAGES[language], row[:HASH_BYTES].tobytes(), row[HASH_BYTES:].tobytes())
        for language, row in zip(languages, hashes, strict=True)
    ]
    return stories_of(rng, ids, fingerprints)


def stories_of(
    rng: np.random.Generator, ids: Sequence[int], fingerprints: Sequence[BandedFingerprint]
) -> list[Fingerprinted]:
    """Synthetic stories with these ids and fingerprints; author, title and times are random."""
    hashes = rng.integers(0, 256, (len(ids), 2 * HASH_BYTES), np.uint8)
    words = iter(rng.integers(0, len(WORDS), (len(ids), 6)).tolist())
    lengths = rng.integers(2, 7, len(ids)).tolist()
    times = (rng.integers(0, PERIOD, len(ids)) + FIRST_TIME).tolist()
    return [
        Fingerprinted(
            Story(
                story_id,
                banded.language,
                author_id=str(FIRST_LISTED_ID + story_id % AUTHORS),
                title=" ".join([WORDS[word] for word in next(words)[:length]]),
                published_at=time,
                updated_at=time,
            ),
            Fingerprint(row[:HASH_BYTES].tobytes(), banded.simhash, banded.signature, 1130, 1050),
            f'"{row[HASH_BYTES:].tobytes().hex()}"',
        )
        for story_id, banded, length, time, row in zip(ids, fingerprints, lengths, times, hashes, strict=True)
    ]


def commit(db: sqlite3.Connection, outcomes: Sequence[Outcome]) -> None:
    """Commit a batch in which no pair is nominated."""
    stories.commit(db, stories.Batch(Outcomes.of(outcomes), (), 1, {}, None))


def fill(db: sqlite3.Connection, ids: Sequence[int]) -> None:
    """Commit random stories with these ids, and print the CPU time of the commits."""
    cpu = 0.0
    for seed, batch in enumerate(cut_batches(ids, FILL_BATCH)):
        outcomes = random_stories(batch, seed)
        cpu -= cpu_seconds()
        commit(db, outcomes)
        cpu += cpu_seconds()
    outbox.prune_changes(db, 0)
    click.echo(f"filled in batches of {FILL_BATCH:,}: {cpu / len(ids) * MICRO:.1f} us of CPU per story")
