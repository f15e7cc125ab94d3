"""The margin of a pair, and from which margin on a pair is flagged.

Stories on a common subject are all alike, and a story of few words is like many others.  So a pair is judged by how
much more alike its stories are than their nearest others, as a match of images is by the next nearest (Lowe,
"Distinctive Image Features from Scale-Invariant Keypoints", IJCV 2004).  The others of each story are those in the
language of the other one: a story has one translation in a language, and may have translations in many.

The widest margin of a story without a copy is a maximum of many, so that its distribution is close to Gumbel's
(Gumbel, "Statistics of Extremes", 1958).  It is fitted to the middle of all stories, where the few with copies do not
count, and gives the margin that a share of the stories exceeds by chance.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

NEIGHBOURS = 2  # the nearest others in a language whose likeness is taken off, after the nearest one
TYPICAL = 0.2  # likeness of such a neighbour, counted for each that a language lacks
FITTED = np.linspace(0.1, 0.9, 17)  # quantiles
LEAST_STORIES = 500  # for a fit


class Gumbel(NamedTuple):
    """Gumbel's distribution, of the widest margins of stories without a copy."""

    location: float
    scale: float

    def exceeded_by(self, share: float) -> float:
        """The value that this share of the distribution exceeds."""
        return self.location - self.scale * math.log(-math.log1p(-share))


UNFITTED = Gumbel(0.033, 0.0244)  # of public news, stories, scripture and manuals in ten languages


def background(similarities: Sequence[float]) -> float:
    """How alike a story is to its nearest others in a language, by its similarities to the nearest, descending.

    The nearest does not count, since it may be a copy.
    """
    counted = similarities[1 : 1 + NEIGHBOURS]
    return (sum(counted) + (NEIGHBOURS - len(counted)) * TYPICAL) / NEIGHBOURS


def margin(similarity: float, background: float, other: float) -> float:
    """The margin of a pair, from the background of each story in the language of the other.

    The higher one counts: a story that is like many others is like this one by chance.
    """
    return similarity - max(background, other)


def fit(widest: Sequence[float]) -> Gumbel:
    """The distribution of the widest margins of stories, LEAST_STORIES or more, by least squares of its quantiles."""
    expected = -np.log(-np.log(FITTED))
    scale, location = np.polyfit(expected, np.quantile(np.asarray(widest), FITTED), 1)
    return Gumbel(float(location), max(float(scale), 1e-6))
