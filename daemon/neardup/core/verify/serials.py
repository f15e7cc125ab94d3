"""The alignment of two serials: which chapters of one are which of the other.

Each pair of chapters that share text is a dot in a plane: the place of one chapter along one axis, that of the other
along the other.  Where a serial copies another, dots follow each other in a chain.  The best chain is the local
alignment of Smith and Waterman (Identification of common molecular subsequences, J. Mol. Biol. 1981), over the dots
alone, as anchors are chained in comparing genomes (Eppstein, Galil, Giancarlo and Italiano, Sparse dynamic programming,
J. ACM 1992).  A step of a chain goes on by a chapter in both serials; it may leave out a chapter of either, and it may
stay at a chapter of one, which is then two merged, or stands for two that were cut at other places.  Such steps add
about half as much to the score: by chance, dots that nearly follow each other are far more frequent.

What many chapters share (a preface, a disclaimer, a form) makes dots everywhere, and a chain may be laid through them
anywhere.  So a dot counts only if it singles out a chapter: if it is among the two strongest dots of a chapter,
and no more than these two have half of the strength of the strongest.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

LEAST_CHAPTERS = 3  # of either serial, in a chain
MOST_ALIKE = 2  # dots of a chapter of which one may be meant
ALIKE = 0.5  # of the words of the strongest dot of a chapter
# By how many chapters a step goes on in either serial, and what the dot that it leads to adds to the score.  Of steps
# with the same score the first is taken.
STEPS = {(1, 1): 1.0, (0, 1): 0.6, (1, 0): 0.6, (1, 2): 0.5, (2, 1): 0.5, (2, 2): 0.5}
LEAST_SCORE = 3.0  # that of three chapters in a row: where some are left out or merged, there must be more
Place = tuple[int, int]


class Dot(NamedTuple):
    """A pair of chapters: their numbers in the two serials, and the words that one copies from the other."""

    first: int
    second: int
    words: int


class Ranges(NamedTuple):
    """The first and the last chapter of a chain, in either serial."""

    first: tuple[int, int]
    second: tuple[int, int]


def align_chapters(dots: Sequence[Dot]) -> list[list[Place]]:
    """The chains of LEAST_CHAPTERS or more chapters of either serial, the best one first; each ascends.

    The order of the dots does not matter.  A chain leaves no dots to others that are between chapters of its own.
    """
    left, chains = _find_telling_places(dots), list[list[Place]]()
    while chain := _find_best_chain(left):
        firsts, seconds = {first for first, _ in chain}, {second for _, second in chain}
        if min(len(firsts), len(seconds)) >= LEAST_CHAPTERS:
            chains.append(chain)
            left = {place for place in left if place[0] not in firsts or place[1] not in seconds}
        left -= set(chain)
    return chains


def find_ranges(chain: Sequence[Place]) -> Ranges:
    """From which chapter to which a chain reaches."""
    firsts, seconds = zip(*chain, strict=True)
    return Ranges((min(firsts), max(firsts)), (min(seconds), max(seconds)))


def _find_telling_places(dots: Iterable[Dot]) -> set[Place]:
    """The places of the dots that single out a chapter."""
    words_at: defaultdict[Place, int] = defaultdict(int)
    for first, second, words in dots:
        words_at[first, second] = max(words_at[first, second], words)
    found = set[Place]()
    for side in (0, 1):
        of_chapter: defaultdict[int, list[Place]] = defaultdict(list)
        for place in words_at:
            of_chapter[place[side]].append(place)
        for places in of_chapter.values():
            strongest = max(words_at[place] for place in places)
            alike = [place for place in places if words_at[place] >= ALIKE * strongest]
            if len(alike) <= MOST_ALIKE:
                found.update(alike)
    return found


def _find_best_chain(places: set[Place]) -> list[Place]:
    """The chain of the highest score; none where all have less than LEAST_SCORE."""
    scores, before = dict[Place, float](), dict[Place, Place]()
    for place in sorted(places):
        scores[place] = 1.0
        for step, gain in STEPS.items():
            previous = place[0] - step[0], place[1] - step[1]
            if previous in scores and (score := scores[previous] + gain) > scores[place]:
                scores[place], before[place] = score, previous
    if max(scores.values(), default=0) < LEAST_SCORE:
        return []
    chain = [max(scores, key=lambda place: (scores[place], -place[0], -place[1]))]
    while (previous := before.get(chain[-1])) is not None:  # type: ignore[assignment]
        chain.append(previous)
    return chain[::-1]
