"""The forms of vectors in which they are kept and scanned: 8 bits a dimension, and 1 bit a dimension.

A binary code is the signs of a vector.  Two vectors at an angle of r radians differ in about r / pi of the bits
(Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002), so that the Hamming distance of
codes nominates neighbours, which the vectors then rank.
"""

import numpy as np
import numpy.typing as npt

from neardup.core.jit import compiled
from neardup.meaning.centring import Vectors, unit

LARGEST = 127
BLOCK = 256  # codes that are compared with a query together; so many stay in the nearest cache

Quantised = npt.NDArray[np.int8]
Codes = npt.NDArray[np.uint64]
Distances = npt.NDArray[np.uint16]
Places = npt.NDArray[np.int64]


def quantised(vectors: Vectors) -> Quantised:
    """Unit vectors (n, dimensions) as 8-bit integers, each scaled by its own largest component."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=1e-9)
    integers: Quantised = np.rint(vectors * (LARGEST / largest)).astype(np.int8)
    return integers


def restored(integers: Quantised) -> Vectors:
    """The unit vectors of 8-bit integers (n, dimensions)."""
    return unit(integers.astype(np.float32))


def codes_of(vectors: Vectors) -> Codes:
    """The binary codes of vectors (n, dimensions): (n, words of 64 bits); bits beyond the dimensions are 0."""
    bits = np.packbits(vectors > 0, axis=1)
    padded = np.zeros((len(bits), -(-bits.shape[1] // 8) * 8), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return padded.view(np.uint64)


class Nearest:
    """The nearest codes to each query among all that were scanned, which may be more than fit into memory.

    `places` (queries, most) are the places of these codes in the order of the scan, and `distances` their Hamming
    distances, ascending; of equal distances the code scanned first comes first.  A place is -1 where there are fewer.
    """

    def __init__(self, queries: Codes, most: int) -> None:
        self._queries = queries
        self._scanned = 0
        self.places: Places = np.full((len(queries), most), -1, np.int64)
        self.distances: Distances = np.full((len(queries), most), np.iinfo(np.uint16).max, np.uint16)

    def scan(self, codes: Codes) -> None:
        """Compare the next codes (n, words) with every query."""
        _scan(self._queries, codes, self._scanned, self.places, self.distances, (0,) * codes.shape[1])
        self._scanned += len(codes)


@compiled
def _bits_set(word: np.uint64) -> np.uint64:
    """How many bits of a word are set: the compiler makes one instruction of it, for several words at once."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@compiled
def _scan(  # noqa: PLR0917 - arrays of both sides
    queries: Codes, codes: Codes, first: int, places: Places, distances: Distances, words: tuple[int, ...]
) -> None:
    """Compare codes (n, words) with queries (q, words), a block of codes at a time.

    Most blocks hold no code that is near enough: their least distance says so.
    """
    last, measured = places.shape[1] - 1, np.empty(BLOCK, np.uint16)
    for start in range(0, len(codes), BLOCK):
        columns = codes[start : start + BLOCK].T.copy()
        for q in range(len(queries)):
            if _measure(queries[q], columns, words, measured) < distances[q, last]:
                for c in range(columns.shape[1]):
                    if measured[c] < distances[q, last]:
                        _insert(places[q], distances[q], first + start + c, measured[c])


@compiled
def _measure(query: Codes, columns: Codes, words: tuple[int, ...], measured: Distances) -> np.uint16:
    """Write the distances of codes (words, n) from a query (words,); returns the least.

    The compiler knows the length of the tuple `words`, unlike that of an array, and so makes instructions that compare
    several codes at once.
    """
    for c in range(columns.shape[1]):
        distance = np.uint64(0)
        for w in range(len(words)):
            distance += _bits_set(query[w] ^ columns[w, c])
        measured[c] = distance
    least: np.uint16 = measured[0]
    for c in range(columns.shape[1]):
        least = min(least, measured[c])
    return least


@compiled
def _insert(places: Places, distances: Distances, place: int, distance: np.uint16) -> None:
    """Put a code into the ascending row of a query, whose last one leaves it."""
    at = len(places) - 1
    while at > 0 and distances[at - 1] > distance:
        places[at], distances[at] = places[at - 1], distances[at - 1]
        at -= 1
    places[at], distances[at] = place, distance
