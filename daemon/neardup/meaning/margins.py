"""How a translated or retold copy is found: by what margin it is more alike, chunk by chunk, than its nearest others.

**Alignment.**  A translation keeps the order of what it translates, but not the length, so that a chunk may belong to
parts of two.  The alignment is monotone: it maps each chunk of a story to one of the other, never back before the last.
It is made both ways, since a story may go on where the other one ends.

**Margin.**  Stories on a common subject are all alike, and a story of few words is like many others.  So a pair is
judged by how much more alike its stories are than their nearest others, as a match of images is by the next nearest
(Lowe, "Distinctive Image Features from Scale-Invariant Keypoints", IJCV 2004).  The others of each story are those in
the language of the other one: a story has one translation in a language, and may have translations in many.

**Threshold.**  The widest margin of a story without a copy is a maximum of many, so that it has an extreme value
distribution (Jenkinson, "The frequency distribution of the annual maximum (or minimum) values of meteorological
elements", QJRMS 1955).  Location and scale are fitted to the middle of all stories, where the few with copies do not
count.  The shape, which says how far the tail reaches, cannot be seen there: it is that of public texts.  Each kind of
pair has its own distribution, since texts of one language have the longer tail: chapters that follow one another, and
manuals on one thing.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.core.verify.tiers import RETOLD, TRANSLATED
from neardup.ledger.meaning_flags import ChunkPair
from neardup.meaning.codes import Vectors
from neardup.records import Kind, Language

Maps = npt.NDArray[np.int64]

# What the likeness of two stories counts for, by the chunks of the shorter one: few words are like many others by
# chance, and would set the threshold that long stories have to pass.
WEIGHTS = {1: 0.7, 2: 0.85, 3: 1.0}
NEIGHBOURS = 2  # the nearest others in a language whose likeness is taken off, after the nearest one
TYPICAL = 0.2  # likeness of such a neighbour, counted for each that a language lacks
FITTED = np.linspace(0.1, 0.8, 15)  # quantiles
LEAST_STORIES = 500  # for a fit


def align_with_others(story: Vectors, others: Vectors) -> Vectors:
    """How alike a story (n, dimensions) is to each of others (stories, m, dimensions), all centred: (stories,).

    It is the mean cosine of the best monotone alignment, over both ways, plus how much larger that is than the mean of
    all chunks of the two: stories on a common subject are alike throughout, a copy is so in order.  The likeness of
    short stories counts for less.
    """
    cosines = np.einsum("nd,smd->snm", story, others)
    aligned = (_find_best_maps(cosines)[0] + _find_best_maps(cosines.transpose(0, 2, 1))[0]) / 2
    weight = WEIGHTS[min(cosines.shape[1:])]
    return np.asarray(weight * (2 * aligned - cosines.mean(axis=(1, 2))), np.float32)


def pair_chunks(story: Vectors, other: Vectors) -> list[ChunkPair]:
    """The chunks of two stories, (n, dimensions) and (m, dimensions), that an alignment either way puts together."""
    cosines = (story @ other.T)[None]
    there = enumerate(_find_best_maps(cosines)[1][0].tolist())
    back = ((a, b) for b, a in enumerate(_find_best_maps(cosines.transpose(0, 2, 1))[1][0].tolist()))
    return [ChunkPair(a, b, round(float(cosines[0, a, b]), 3)) for a, b in sorted({*there, *back})]


def _find_best_maps(cosines: Vectors) -> tuple[Vectors, Maps]:
    """Of cosines (stories, n, m), the mean of the best monotone map for each story, and that map: (stories, n)."""
    rows, columns = cosines.shape[1:]
    maps = _list_monotone_maps(rows, columns)
    means = cosines[:, np.arange(rows), maps].mean(axis=2)
    return means.max(axis=1), maps[means.argmax(axis=1)]


@cache
def _list_monotone_maps(rows: int, columns: int) -> Maps:
    """Every monotone map of rows to columns, (maps, rows): at most 10, as a story has up to three chunks."""
    return np.array(list(combinations_with_replacement(range(columns), rows)), np.int64)


class ExtremeValues(NamedTuple):
    """An extreme value distribution, of the widest margins of stories without a copy; of shape 0 it is Gumbel's."""

    location: float
    scale: float
    shape: float

    def find_exceeded(self, share: float) -> float:
        """The value that this share of the distribution exceeds."""
        return self.location + self.scale * float(_compute_standard(np.array(1 - share), self.shape))


UNFITTED: Mapping[Kind, ExtremeValues] = {  # of public news, stories, scripture and manuals in ten languages
    TRANSLATED: ExtremeValues(0.022, 0.0193, 0.0),
    RETOLD: ExtremeValues(-0.003, 0.025, 0.032),
}


def measure_background(similarities: Sequence[float]) -> float:
    """How alike a story is to its nearest others in a language, by its similarities to the nearest, descending.

    The nearest does not count, since it may be a copy.
    """
    counted = similarities[1 : 1 + NEIGHBOURS]
    return (sum(counted) + (NEIGHBOURS - len(counted)) * TYPICAL) / NEIGHBOURS


def compute_margin(similarity: float, background: float, other: float) -> float:
    """The margin of a pair, from the background of each story in the language of the other.

    The higher one counts: a story that is like many others is like this one by chance.
    """
    return similarity - max(background, other)


def choose_kind(language: Language, other: Language) -> Kind:
    """The kind of a pair of stories, by the languages that they are filed under."""
    return RETOLD if language == other else TRANSLATED


def fit_distribution(widest: Sequence[float], shape: float) -> ExtremeValues:
    """The distribution of the widest margins of stories, LEAST_STORIES or more, by least squares of its quantiles."""
    scale, location = np.polyfit(_compute_standard(FITTED, shape), np.quantile(np.asarray(widest), FITTED), 1)
    return ExtremeValues(float(location), max(float(scale), 1e-6), shape)


def find_thresholds(distributions: Mapping[Kind, ExtremeValues], false_alarms: float) -> dict[Kind, float]:
    """From which margin on a pair of each kind is flagged, if a share of the stories may have a false pair.

    Each kind has the same part of this share.
    """
    return {kind: of_kind.find_exceeded(false_alarms / len(distributions)) for kind, of_kind in distributions.items()}


def _compute_standard(quantiles: npt.NDArray[np.float64], shape: float) -> npt.NDArray[np.float64]:
    """The values of the distribution with location 0 and scale 1 at its quantiles, an array of any dimensions."""
    exponent = -np.log(quantiles)
    return np.asarray(np.expm1(-shape * np.log(exponent)) / shape if shape else -np.log(exponent))
