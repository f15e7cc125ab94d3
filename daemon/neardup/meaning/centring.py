"""Centring: what the vectors of a language have in common is removed, and the directions in which all vary most.

Vectors of a multilingual model share a large part that says which language a text is in.  Without it the nearest
neighbour of a story is its translation, not another story in its language.  What varies most from story to story is the
kind of text, such as news or scripture, so that stories of a kind are all alike until it is removed (Mu and Viswanath,
"All-but-the-Top", ICLR 2018).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from neardup.records import Language

Vectors = npt.NDArray[np.float32]

DIRECTIONS = 10  # removed from the vectors ...
STORIES_EACH = 50  # ... of so many times as many stories; those of fewer say too much of single stories
COMMON_WEIGHT = 3  # of the mean of all languages in that of one, in stories: the mean of few says most of themselves


@dataclass(frozen=True, slots=True)
class Sums:
    """How many stories of a language there are, and the sum of their vectors: (dimensions,)."""

    stories: int
    total: Vectors

    @property
    def mean(self) -> Vectors:
        """The mean vector: (dimensions,)."""
        return (self.total / max(self.stories, 1)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Centring:
    """What is removed from vectors.

    The mean vectors are of (dimensions,) each: `common` is that for a language that has none of its own.  `directions`
    are unit vectors at right angles, (n, dimensions).
    """

    common: Vectors
    directions: Vectors
    means: Mapping[Language, Vectors] = field(default_factory=dict)

    def apply(self, vectors: Vectors, language: Language) -> Vectors:
        """Unit vectors of a language (n, dimensions), centred and of unit length again."""
        centred = unit(vectors - self.means.get(language, self.common))
        left = (centred - centred @ self.directions.T @ self.directions).astype(np.float32)
        return unit(left)


def fit(sums: Mapping[Language, Sums], directions: Vectors) -> Centring:
    """The centring of a corpus, from the sums of its languages and the directions to remove: (n, dimensions).

    The mean of a language shrinks towards that of all languages, the more the fewer stories it has.
    """
    if not sums:
        return Centring(np.zeros(directions.shape[1], np.float32), directions)
    common: Vectors = np.stack([one.mean for one in sums.values()]).mean(axis=0)
    return Centring(
        common,
        directions,
        {
            language: ((one.total + COMMON_WEIGHT * common) / (one.stories + COMMON_WEIGHT)).astype(np.float32)
            for language, one in sums.items()
        },
    )


def widest_directions(vectors: Vectors) -> Vectors:
    """The directions in which centred vectors of stories (stories, dimensions) vary most: (n, dimensions)."""
    n = min(DIRECTIONS, len(vectors) // STORIES_EACH)
    _, directions = np.linalg.eigh(vectors.T @ vectors)  # by ascending variance
    found: Vectors = directions.T[::-1][:n].astype(np.float32)
    return found


def unit(vectors: Vectors) -> Vectors:
    """The vectors (n, dimensions) at unit length; a vector of zeros stays one."""
    lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
    lengths[lengths == 0] = 1
    return np.asarray(vectors / lengths[:, None], np.float32)
