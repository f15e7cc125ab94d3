"""The hashes of a story's words, and the two fingerprints that are made of them alone: SimHash and passage hashes.

The SimHash has 128 bits.  Charikar, "Similarity estimation techniques from rounding algorithms" (STOC 2002), in the
form of Manku, Jain and Das Sarma, "Detecting near-duplicates for web crawling" (WWW 2007).  Each distinct word votes on
each bit with the bits of its xxh3-128 hash, weighted 1 + ln(term frequency).  With raw frequencies the function words
of a language would decide all bits, and all its stories would be alike.  Weights are multiples of 1/1024, so that sums
are exact in any order of the words and on any machine.  The sums are taken by byte value instead of by bit: a histogram
of (byte position, byte value) is multiplied by the +-1 patterns of the 256 byte values.

The passage hashes are sampled hashes of word 4-grams, by which a passage inside a longer work is found.  Winnowing:
Schleimer, Wilkerson and Aiken, "Winnowing: local algorithms for document fingerprinting" (SIGMOD 2003).  Of every
WINDOW adjacent grams the one with the least hash is sampled, of equal ones the last.  So two texts that share a run of
GRAM + WINDOW - 1 words share at least one sampled gram, and a text has about 78 samples per 1,000 words.  The hash of a
sampled gram is mixed once more before it is cut to 32 bits, because a minimum is not evenly distributed.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import xxhash
from msgspec import Struct
from numpy.lib.stride_tricks import sliding_window_view

from neardup.core.sets import find_distinct

DIGEST_BYTES = 16

Hashes = npt.NDArray[np.uint64]
HashRows = npt.NDArray[np.uint64]  # (n, 2): SimHashes as two words each
Hash = TypeVar("Hash", Hashes, np.uint64)

SCALE = 1024
OFFSETS = np.arange(DIGEST_BYTES) * 256
SIGNS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float64) * 2 - 1

GRAM = 4  # words
WINDOW = 24  # grams
MIN_SHARED = 2  # passage hashes that a candidate must have in common: one is often shared by chance

PassageHashes = npt.NDArray[np.uint32]
Places = npt.NDArray[np.intp]


class Words(Struct, frozen=True):
    """The words of a story, each hashed once.

    `digests` (distinct, 16) uint8 are the xxh3-128 of the distinct words; `order` (words,) has, for each
    word of the text, its index in `digests`.
    """

    digests: npt.NDArray[np.uint8]
    order: npt.NDArray[np.intp]

    @property
    def hashes(self) -> Hashes:
        """(words,) uint64: the first half of each word's digest, in the order of the text."""
        return np.ascontiguousarray(self.digests[:, :8]).view("<u8").ravel().astype(np.uint64, copy=False)[self.order]


def hash_words(words: Sequence[bytes]) -> Words:
    """Normalised UTF-8 words, in reading order -> their hashes."""
    index_of = {word: n for n, word in enumerate(dict.fromkeys(words))}
    digests = np.frombuffer(b"".join(map(xxhash.xxh3_128_digest, index_of)), np.uint8).reshape(-1, DIGEST_BYTES)
    return Words(digests, np.fromiter(map(index_of.__getitem__, words), np.intp, len(words)))


def mix(x: Hash) -> Hash:
    """The finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014), elementwise for an array."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def hash_word_pairs(hashes: Hashes) -> Hashes:
    """The hashes of n words -> (n - 1,) uint64: those of each two adjacent ones, in reading order."""
    return mix(mix(hashes[:-1]) + hashes[1:])


# The SimHash.


def compute_simhash(words: Words) -> bytes:
    """A story's words, in any order -> 16 bytes."""
    frequencies = np.bincount(words.order)
    histogram = np.bincount(
        (words.digests + OFFSETS).ravel(), np.repeat(weigh_frequencies(frequencies), DIGEST_BYTES), DIGEST_BYTES * 256
    )
    votes = histogram.reshape(DIGEST_BYTES, 256) @ SIGNS
    return np.packbits(votes > 0).tobytes()


def hash_rows(simhashes: Sequence[bytes]) -> HashRows:
    """N SimHashes of 16 bytes -> (n, 2) uint64."""
    return np.frombuffer(b"".join(simhashes), np.uint64).reshape(-1, 2)


def measure_hamming(left: HashRows, right: HashRows) -> npt.NDArray[np.int64]:
    """The Hamming distance, row by row; shapes broadcast over all but the last axis."""
    differing: npt.NDArray[np.uint8] = np.bitwise_count(left ^ right)
    return np.asarray(differing.sum(axis=-1, dtype=np.int64))


def weigh_frequencies(frequencies: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
    """Term frequencies, at least 1 -> the weight of each word's vote in 1024ths, a whole number."""
    return np.asarray(np.rint(SCALE * (1 + np.log(frequencies))))


# The passage hashes.


def hash_passages(words: Hashes) -> PassageHashes:
    """Word hashes (n,), in reading order -> the distinct passage hashes, ascending.  None for fewer than GRAM words."""
    return find_distinct(sample_grams(words)[0])


def sample_grams(words: Hashes) -> tuple[PassageHashes, Places]:
    """Word hashes (n,), in reading order -> their passage hashes in that order, and the place of each one's first."""
    grams = hash_grams(words)
    places = _winnow(grams)
    return make_passage_hashes(grams[places]), places


def hash_grams(words: Hashes) -> Hashes:
    """(n,) word hashes -> (n - GRAM + 1,) the hash of the GRAM words that begin at each place."""
    pairs = hash_word_pairs(words)
    return mix(mix(pairs[:-2]) + pairs[2:])


def make_passage_hashes(grams: Hashes) -> PassageHashes:
    """(n,) hashes of grams -> (n,) their passage hashes: mixed once more, and cut to 32 bits."""
    return (mix(grams) >> np.uint64(32)).astype(np.uint32)


def _winnow(grams: Hashes) -> Places:
    """The ascending places of the sampled grams."""
    if not len(grams):
        return np.empty(0, np.intp)
    window = min(WINDOW, len(grams))
    last_first = sliding_window_view(grams[::-1], window)
    ends = np.arange(len(grams) - 1, window - 2, -1)
    return find_distinct(ends - last_first.argmin(axis=1))
