"""The alignment of two stories: which chunks of one belong to which of the other.

A translation keeps the order of what it translates, but not the length, so that a chunk may belong to parts of two.
The alignment is monotone: it maps each chunk of a story to one of the other, never back before the last.  It is made
both ways, since a story may go on where the other one ends.
"""

from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt

from neardup.ledger.meaning_flags import ChunkPair
from neardup.meaning.centring import Vectors

Maps = npt.NDArray[np.int64]

# What the likeness of two stories counts for, by the chunks of the shorter one: few words are like many others by
# chance, and would set the threshold that long stories have to pass.
WEIGHTS = {1: 0.7, 2: 0.85, 3: 1.0}


def similarities(story: Vectors, others: Vectors) -> Vectors:
    """How alike a story (n, dimensions) is to each of others (stories, m, dimensions), all centred: (stories,).

    It is the mean cosine of the best monotone alignment, over both ways, and how much larger that is than the mean of
    all chunks of the two: stories on a common subject are alike throughout, a copy is so in order.  The likeness of
    short stories counts for less.
    """
    cosines = np.einsum("nd,smd->snm", story, others)
    aligned = (_best(cosines)[0] + _best(cosines.transpose(0, 2, 1))[0]) / 2
    weight = WEIGHTS[min(cosines.shape[1:])]
    return np.asarray(weight * (2 * aligned - cosines.mean(axis=(1, 2))), np.float32)


def chunk_pairs(story: Vectors, other: Vectors) -> list[ChunkPair]:
    """The chunks of two stories, (n, dimensions) and (m, dimensions), that an alignment either way puts together."""
    cosines = (story @ other.T)[None]
    there = enumerate(_best(cosines)[1][0].tolist())
    back = ((a, b) for b, a in enumerate(_best(cosines.transpose(0, 2, 1))[1][0].tolist()))
    return [ChunkPair(a, b, round(float(cosines[0, a, b]), 3)) for a, b in sorted({*there, *back})]


def _best(cosines: Vectors) -> tuple[Vectors, Maps]:
    """Of cosines (stories, n, m), the mean of the best monotone map for each story, and that map: (stories, n)."""
    rows, columns = cosines.shape[1:]
    maps = _maps(rows, columns)
    means = cosines[:, np.arange(rows), maps].mean(axis=2)
    return means.max(axis=1), maps[means.argmax(axis=1)]


@cache
def _maps(rows: int, columns: int) -> Maps:
    """Every monotone map of rows to columns, (maps, rows): at most 10, as a story has up to three chunks."""
    return np.array(list(combinations_with_replacement(range(columns), rows)), np.int64)
