"""What two texts have in common, computed from sets of words and not from the code that is measured."""

from collections.abc import Sequence
from itertools import pairwise

RUN = 5  # words
FALSE_BELOW_WORDS = 30  # a flagged pair with less than this in common runs, and with low scores, is false


def scores(a: Sequence[bytes], b: Sequence[bytes]) -> tuple[float, float]:
    """The Jaccard similarity of the sets of word pairs of two texts, and the containment of the smaller."""
    pairs_a, pairs_b = (frozenset[Sequence[bytes]](pairwise(words)) or frozenset([tuple(words)]) for words in (a, b))
    common = len(pairs_a & pairs_b)
    return common / len(pairs_a | pairs_b), common / min(len(pairs_a), len(pairs_b))


def words_in_common_runs(a: Sequence[bytes], b: Sequence[bytes]) -> int:
    """Count the words of `a` that are in a run of RUN words that `b` has too."""
    known = set(_runs(b))
    return len({n + k for n, run in enumerate(_runs(a)) if run in known for k in range(RUN)})


def _runs(words: Sequence[bytes]) -> list[tuple[bytes, ...]]:
    return [tuple(words[n : n + RUN]) for n in range(len(words) - RUN + 1)]
