"""The forms of vectors in which they are kept and scanned: 8 bits a dimension, and 1 bit a dimension.

A binary code is the signs of a vector.  Two vectors at an angle of r radians differ in about r / pi of the bits
(Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002), so that the Hamming distance of
codes nominates neighbours, which the vectors then rank.
"""

import numpy as np
import numpy.typing as npt

from neardup.core.native import codes as native
from neardup.core.native import in_c
from neardup.meaning.centring import Vectors, unit

LARGEST = 127
BLOCK = 4096  # codes that are compared with a query together, so that they stay in the nearest caches

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
        scan(self._queries, codes, self._scanned, self.places, self.distances)
        self._scanned += len(codes)


@in_c(native.scan)
def scan(queries: Codes, codes: Codes, first: int, places: Places, distances: Distances) -> None:
    """Compare codes (n, words), the first of which has the place `first`, with queries (q, words), for Nearest.

    Those that are nearer than the last one of a query's row of `places` and `distances` (q, most) are put into it.
    """
    most = places.shape[1]
    for start in range(0, len(codes), BLOCK):
        block = codes[start : start + BLOCK]
        for query, row_places, row_distances in zip(queries, places, distances, strict=True):
            measured = np.bitwise_count(query ^ block).sum(axis=1, dtype=np.uint16)
            nearer = np.flatnonzero(measured < row_distances[-1])
            if len(nearer):
                all_distances = np.concatenate([row_distances, measured[nearer]])
                order = np.argsort(all_distances, kind="stable")[:most]
                row_distances[:] = all_distances[order]
                row_places[:] = np.concatenate([row_places, first + start + nearer])[order]
