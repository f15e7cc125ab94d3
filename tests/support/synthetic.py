"""Fingerprints of stories that were never written: any number of them, of one language, uniform or as uneven as prose.

In prose some word pairs stand in many stories: where one of them has the least hash of a row, its byte
recurs, and a band's bucket holds many times what it would hold if all bytes were as likely.  So a row is
drawn as what it is, the least of a story's hashes, of COMMON pairs whose frequencies fall by a power law
and of RARE pairs that no other story has; its shares follow in closed form.  A SimHash bit leans as the
common words do.  A style has common pairs and a lean of its own, so that two stories of one style share
bands more often than chance: without it, the pairs that share two bands are too few by a factor of 3.

SHAPES holds the two numbers that are fitted, so that two stories collide in a band as often as two
unrelated ones of that language do in measured corpora; the other constants hold for all languages.
`python -m tests.bench.skew CORPUS` puts real and drawn ones side by side.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from neardup.core.candidates.banding import Numbers
from neardup.core.fingerprint.minhash import ROWS, SignatureRows
from neardup.records import Banded, Change, Language

from tests.support.languages import BENGALI, ENGLISH, GUJARATI, HINDI, MALAYALAM, MARATHI, ODIA, PUNJABI, TAMIL, TELUGU

LANGUAGE = HINDI
FIRST_ID = 1_000_000_000
HASH_BYTES = 16
HASH_BITS = 8 * HASH_BYTES
BYTE_VALUES = 256

SHAPE_SEED = 1
COMMON, RARE = 1000, 400
FALL = 0.7  # the k-th common pair stands in scale * k ** -FALL of the stories
MOST = 0.9  # no pair stands in more
STYLES = 32  # the n-th is 1 / n as frequent as the first
OWN_SCALE = 2.0  # of the frequencies of a style's own pairs to those of the language's
OWN_LEAN = 0.5
DRAWS = 4096  # equally likely entries of a row's table
CHUNK = 1 << 14  # stories drawn at a time

STRANGERS, BITS, FEW_ROWS, MANY_ROWS = "strangers", "3 bits differ", "3 of 10 rows kept", "6 of 10 rows kept"
COPIES = (BITS, FEW_ROWS, MANY_ROWS)
KINDS = (STRANGERS, STRANGERS, STRANGERS, *COPIES)  # a probe's kind, by its place

HashBytes = npt.NDArray[np.uint8]  # (n, 16)
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Stories:
    """Story n has the number n + 1 and the id FIRST_ID + n."""

    simhashes: HashBytes
    signatures: SignatureRows

    def __len__(self) -> int:
        return len(self.simhashes)

    def banded(self, start: int, stop: int) -> list[Banded]:
        pairs = zip(self.simhashes[start:stop], self.signatures[start:stop], strict=True)
        return [Banded(LANGUAGE, simhash.tobytes(), signature.tobytes()) for simhash, signature in pairs]

    def changes(self, start: int, stop: int, batch: int) -> Iterator[list[Change]]:
        """What a ledger tells an index of the new stories from start to stop, so many at a time."""
        for at in range(start, stop, batch):
            new = enumerate(self.banded(at, min(at + batch, stop)), at)
            yield [Change(n + 1, FIRST_ID + n, None, banded, n + 1) for n, banded in new]


@dataclass(frozen=True, slots=True)
class Probes:
    """Stories to look up, the kind of each, and the place of the story that it is a copy of."""

    stories: Stories
    kinds: Sequence[str]
    originals: Numbers


@dataclass(frozen=True, slots=True)
class Source:
    """What stories are drawn from, style by style: how often each style, its rows' bytes, its bits that are set."""

    styles: Floats  # (s,), of sum 1
    shares: Floats  # (s, 64, 256): how often a row takes each value
    leans: Floats  # (s, 128): how often a bit is set

    def collision(self) -> float:
        """The probability that two stories share a band of their signatures, on average over the bands."""
        alike = np.einsum("arv,brv->abr", self.shares, self.shares)
        bands = (alike[:, :, ::2] * alike[:, :, 1::2]).mean(axis=2)
        return float(self.styles @ bands @ self.styles)

    def hash_collision(self) -> float:
        """The same of the bands of their SimHashes."""
        ones = self.leans[:, None]
        alike = ones * self.leans + (1 - ones) * (1 - self.leans)
        bands = alike.reshape(*alike.shape[:2], HASH_BYTES // 2, -1).prod(axis=3).mean(axis=2)
        return float(self.styles @ bands @ self.styles)


# By language: the scale of the common pairs' frequencies, and how much the bits of a SimHash lean; behind them
# what they give, the collisions of a band of the signature and of the SimHash, in times of the uniform 2 ** -16.
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


def uniform() -> Source:
    """Every byte and every bit as likely as the others."""
    return Source(np.ones(1), np.full((1, ROWS, BYTE_VALUES), 1 / BYTE_VALUES), np.full((1, HASH_BITS), 0.5))


def prose(language: Language) -> Source:
    return shaped(*SHAPES[language])


def shaped(scale: float, lean: float) -> Source:
    """Prose whose common pairs are so frequent, and whose SimHash bits lean so much; always the same for the same."""
    rng = np.random.default_rng(SHAPE_SEED)
    styles = 1 / np.arange(1, STYLES + 1)
    falling = np.arange(1, COMMON + 1) ** -FALL * scale
    frequencies: Floats = np.minimum(np.concatenate((falling, OWN_SCALE * falling)), MOST)
    hashes = rng.random((2, COMMON, ROWS))
    values = rng.integers(0, BYTE_VALUES, (2, COMMON, ROWS))
    shares = np.empty((STYLES, ROWS, BYTE_VALUES))
    for style in shares:
        hashes[1] = rng.random((COMMON, ROWS))
        values[1] = rng.integers(0, BYTE_VALUES, (COMMON, ROWS))
        style[:] = _least(frequencies, hashes.reshape(-1, ROWS), values.reshape(-1, ROWS))
    leans = lean * rng.standard_normal(HASH_BITS) + OWN_LEAN * rng.standard_normal((STYLES, HASH_BITS))
    return Source(styles / styles.sum(), shares, np.vectorize(math.erf)(leans / math.sqrt(2)) / 2 + 0.5)


def _least(frequencies: Floats, hashes: Floats, values: npt.NDArray[np.int64]) -> Floats:
    """(64, 256): how often the least of a story's hashes has each value.

    A common pair is the least if it stands in the story, no common pair of a lesser hash does, and
    none of the RARE, whose hashes lie anywhere between 0 and 1, is less.
    """
    order = np.argsort(hashes, axis=0)
    within = frequencies[order]
    absent = np.cumprod(1 - within, axis=0)
    is_least = within * np.vstack((np.ones(ROWS), absent[:-1])) * (1 - np.take_along_axis(hashes, order, 0)) ** RARE
    cells = np.take_along_axis(values, order, 0) + BYTE_VALUES * np.arange(ROWS)
    shares = np.bincount(cells.ravel(), is_least.ravel(), ROWS * BYTE_VALUES).reshape(ROWS, BYTE_VALUES)
    return np.asarray(shares + (1 - shares.sum(axis=1, keepdims=True)) / BYTE_VALUES)


def draw(rng: np.random.Generator, source: Source, count: int) -> Stories:
    """So many stories that have nothing in common but their language and style."""
    made = Stories(np.empty((count, HASH_BYTES), np.uint8), np.empty((count, ROWS), np.uint8))
    start = 0
    for part in drawn(rng, source, count):
        chunk = slice(start, start := start + len(part))
        made.simhashes[chunk], made.signatures[chunk] = part.simhashes, part.signatures
    return made


def drawn(rng: np.random.Generator, source: Source, count: int, copies: float = 0.0) -> Iterator[Stories]:
    """The same, CHUNK at a time; of each chunk such a share, 0 to 0.5, are copies of others in it."""
    ends = np.rint(np.cumsum(source.shares, axis=2) * DRAWS).astype(np.int64)
    entries = np.diff(ends, axis=2, prepend=0)
    bytes_of = np.repeat(np.tile(np.arange(BYTE_VALUES, dtype=np.uint8), entries.size // BYTE_VALUES), entries.ravel())
    tables = DRAWS * np.arange(len(bytes_of) // DRAWS, dtype=np.int32).reshape(-1, ROWS)
    set_below = np.rint(source.leans * BYTE_VALUES).clip(0, BYTE_VALUES - 1).astype(np.uint8)
    for start in range(0, count, CHUNK):
        size = min(CHUNK, count - start)
        style = rng.choice(len(source.styles), size, p=source.styles)
        simhashes = np.packbits(rng.integers(0, BYTE_VALUES, (size, HASH_BITS), np.uint8) < set_below[style], axis=1)
        signatures = bytes_of.take(tables[style] + rng.integers(0, DRAWS, (size, ROWS), np.int32))
        stories = Stories(simhashes, signatures)
        plant(rng, stories, round(copies * size))
        yield stories


def plant(rng: np.random.Generator, stories: Stories, count: int) -> None:
    """Make so many of the stories copies of as many others: half are near, half alike in 3 to 9 of 10 rows."""
    originals, copies = rng.permutation(len(stories))[: 2 * count].reshape(2, -1)
    near = np.arange(count) < count // 2
    flipped = np.where(near, rng.integers(0, 4, count), rng.integers(8, 40, count))
    kept = np.where(near, 0.95, rng.uniform(0.3, 0.9, count))[:, None]
    stories.simhashes[copies] = stories.simhashes[originals] ^ _bits(rng, flipped)
    same = rng.random((count, ROWS)) < kept
    stories.signatures[copies] = np.where(same, stories.signatures[originals], stories.signatures[copies])


def _bits(rng: np.random.Generator, counts: npt.NDArray[np.int64]) -> HashBytes:
    """(n, 16): of each, so many bits are set, anywhere."""
    order = rng.permuted(np.tile(np.arange(HASH_BITS, dtype=np.uint8), (len(counts), 1)), axis=1)
    return np.packbits(order < counts[:, None], axis=1)


def make_probes(rng: np.random.Generator, source: Source, stories: Stories, count: int) -> Probes:
    """Half of them strangers, a sixth of each kind of copy."""
    places = rng.integers(0, len(stories), count).astype(np.uint32)
    originals = Stories(stories.simhashes[places], stories.signatures[places])
    fresh = draw(rng, source, count)
    made = {
        STRANGERS: fresh,
        BITS: Stories(originals.simhashes ^ _bits(rng, np.full(count, 3)), fresh.signatures),
        FEW_ROWS: _keeping_rows(rng, 0.3, originals, fresh),
        MANY_ROWS: _keeping_rows(rng, 0.6, originals, fresh),
    }
    kinds = [KINDS[n % len(KINDS)] for n in range(count)]
    simhashes = np.stack([made[kind].simhashes[n] for n, kind in enumerate(kinds)])
    signatures = np.stack([made[kind].signatures[n] for n, kind in enumerate(kinds)])
    return Probes(Stories(simhashes, signatures), kinds, places)


def _keeping_rows(rng: np.random.Generator, share: float, originals: Stories, fresh: Stories) -> Stories:
    """Copies that keep so many of their original's rows, and of its SimHash nothing."""
    kept = rng.random(originals.signatures.shape) < share
    return Stories(fresh.simhashes, np.where(kept, originals.signatures, fresh.signatures))
