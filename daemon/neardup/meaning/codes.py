"""The forms of vectors: centred by language, in 8 bits a dimension as they are kept, and in 1 bit as they are scanned.

**Centring** removes what the vectors of a language have in common, and the directions in which all vary most.  Vectors
of a multilingual model share a large part that says which language a text is in.  Without it the nearest neighbour of a
story is its translation, not another story in its language.  What varies most from story to story is the kind of text,
such as news or scripture, so that stories of a kind are all alike until it is removed (Mu and Viswanath,
"All-but-the-Top", ICLR 2018).

**A binary code** is the signs of a vector.  Two vectors at an angle of r radians differ in about r / pi of the bits
(Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002), so that the Hamming distance of
codes nominates neighbours, which the vectors then rank.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from neardup.core.native import codes as native
from neardup.core.native import in_c
from neardup.records import Language

Vectors = npt.NDArray[np.float32]
Quantised = npt.NDArray[np.int8]
Codes = npt.NDArray[np.uint64]
Distances = npt.NDArray[np.uint16]
Places = npt.NDArray[np.int64]

DIRECTIONS = 10  # removed from the vectors ...
STORIES_EACH = 50  # ... of so many times as many stories; those of fewer say too much of single stories
COMMON_WEIGHT = 3  # of the mean of all languages in that of one, in stories: the mean of few says most of themselves
LARGEST_INTEGER = 127
CODES_A_BLOCK = 4096  # codes that are compared with a query together, so that they stay in the nearest caches


class Sums(Struct, frozen=True):
    """How many stories of a language there are, and the sum of their vectors: (dimensions,)."""

    stories: int
    total: Vectors

    @property
    def mean(self) -> Vectors:
        """The mean vector: (dimensions,)."""
        return (self.total / max(self.stories, 1)).astype(np.float32)


class Centring(Struct, frozen=True):
    """What is removed from vectors.

    The mean vectors are of (dimensions,) each: `common` is that for a language that has none of its own.  `directions`
    are unit vectors at right angles, (n, dimensions).
    """

    common: Vectors
    directions: Vectors
    means: Mapping[Language, Vectors] = field(default_factory=dict)

    def apply(self, vectors: Vectors, language: Language) -> Vectors:
        """Unit vectors of a language (n, dimensions), centred and of unit length again."""
        centred = scale_to_unit(vectors - self.means.get(language, self.common))
        left = (centred - centred @ self.directions.T @ self.directions).astype(np.float32)
        return scale_to_unit(left)


def fit_centring(sums: Mapping[Language, Sums], directions: Vectors) -> Centring:
    """The centring of a corpus, from the sums of its languages and the directions to remove: (n, dimensions).

    The mean of a language shrinks towards that of all languages, the more the fewer stories it has.
    """
    if not sums:
        return Centring(np.zeros(directions.shape[1], np.float32), directions)
    common: Vectors = np.stack([of_language.mean for of_language in sums.values()]).mean(axis=0)
    return Centring(
        common,
        directions,
        {
            language: ((own.total + COMMON_WEIGHT * common) / (own.stories + COMMON_WEIGHT)).astype(np.float32)
            for language, own in sums.items()
        },
    )


def find_widest_directions(vectors: Vectors) -> Vectors:
    """The directions in which centred vectors of stories (stories, dimensions) vary most: (n, dimensions)."""
    n = min(DIRECTIONS, len(vectors) // STORIES_EACH)
    _, directions = np.linalg.eigh(vectors.T @ vectors)  # by ascending variance
    found: Vectors = directions.T[::-1][:n].astype(np.float32)
    return found


def scale_to_unit(vectors: Vectors) -> Vectors:
    """The vectors (n, dimensions) at unit length; a vector of zeros stays one."""
    lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
    lengths[lengths == 0] = 1
    return np.asarray(vectors / lengths[:, None], np.float32)


def quantise(vectors: Vectors) -> Quantised:
    """Unit vectors (n, dimensions) as 8-bit integers, each scaled by its own largest component."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=1e-9)
    integers: Quantised = np.rint(vectors * (LARGEST_INTEGER / largest)).astype(np.int8)
    return integers


def restore(integers: Quantised) -> Vectors:
    """The unit vectors of 8-bit integers (n, dimensions)."""
    return scale_to_unit(integers.astype(np.float32))


def compute_codes(vectors: Vectors) -> Codes:
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
    for start in range(0, len(codes), CODES_A_BLOCK):
        block = codes[start : start + CODES_A_BLOCK]
        for query, row_places, row_distances in zip(queries, places, distances, strict=True):
            measured = np.bitwise_count(query ^ block).sum(axis=1, dtype=np.uint16)
            nearer = np.flatnonzero(measured < row_distances[-1])
            if len(nearer):
                all_distances = np.concatenate([row_distances, measured[nearer]])
                order = np.argsort(all_distances, kind="stable")[:most]
                row_distances[:] = all_distances[order]
                row_places[:] = np.concatenate([row_places, first + start + nearer])[order]
