"""Centring: the mean vector of a language is removed from its vectors.

Vectors of a multilingual model share a large part that says which language a text is in.  Without it the nearest
neighbour of a story is its translation, not another story in its language.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from neardup.records import Language

Vectors = npt.NDArray[np.float32]

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
    """The mean vectors to remove, (dimensions,) each: `common` for a language that has none of its own."""

    common: Vectors
    means: Mapping[Language, Vectors] = field(default_factory=dict)

    def apply(self, vectors: Vectors, language: Language) -> Vectors:
        """Unit vectors of a language (n, dimensions), centred and of unit length again."""
        return unit(vectors - self.means.get(language, self.common))


def fit(sums: Mapping[Language, Sums], dimensions: int) -> Centring:
    """The centring of a corpus, from the sums of its languages.

    The mean of a language shrinks towards that of all languages, the more the fewer stories it has.
    """
    if not sums:
        return Centring(np.zeros(dimensions, np.float32))
    common: Vectors = np.stack([one.mean for one in sums.values()]).mean(axis=0)
    return Centring(
        common,
        {
            language: ((one.total + COMMON_WEIGHT * common) / (one.stories + COMMON_WEIGHT)).astype(np.float32)
            for language, one in sums.items()
        },
    )


def unit(vectors: Vectors) -> Vectors:
    """The vectors (n, dimensions) at unit length; a vector of zeros stays one."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors, np.float32), where=lengths > 0)
    return scaled
