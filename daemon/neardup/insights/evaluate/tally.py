"""Counts the pairs on record of a planted corpus: copies found, pairs by score, pairs of different origin."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from neardup.core.verify.scores import NEAR_MISS
from neardup.insights.evaluate.plant import Corpus
from neardup.pairs import Kind


@dataclass(frozen=True, slots=True)
class Pair:
    """A pair on record, by the stories' positions in the corpus; `kind` is None for a near miss."""

    a: int
    b: int
    kind: Kind | None
    jaccard: float
    containment: float


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores, as (Jaccard, containment), of the pairs on record of an original and a copy of it as a whole.

    `planted` are the pairs of a copy with its own original, `copies` the number of copies in the corpus.  `unrelated`
    are the pairs that share no text by design.  `left_out` counts the pairs that overlap for another reason.
    """

    copies: int
    planted: Sequence[tuple[float, float]]
    unrelated: Sequence[tuple[float, float]]
    left_out: int


def flagged_as(corpus: Corpus, pairs: Iterable[Pair]) -> dict[str, Counter[Kind | None]]:
    """Count for each way of copying the kinds as which its copies were flagged with their originals; None if not.

    A work counts once for each of its chapters.
    """
    kinds = {(pair.a, pair.b): pair.kind for pair in pairs}
    originals = {story.origins[0]: place for place, story in enumerate(corpus.stories) if story.copy is None}
    out: dict[str, Counter[Kind | None]] = {}
    for place, story in enumerate(corpus.stories):
        if story.copy is not None:
            counts = out.setdefault(story.copy.name, Counter())
            for origin in story.origins:
                counts[kinds.get((originals[origin], place))] += 1
    return out


def scored(corpus: Corpus, pairs: Sequence[Pair]) -> Scored:
    """Divide the pairs on record of an original and a copy by whether they are planted.

    Left out are the pairs of a copy with the donors of its foreign text, and with originals that overlap with these
    donors or with its own original.
    """
    planted, unrelated, left_out = [], [], 0
    related = _related(corpus, pairs)
    for pair, original, copy in _original_copy_pairs(corpus, pairs):
        if original == copy:
            planted.append((pair.jaccard, pair.containment))
        elif original in related[copy]:
            left_out += 1
        else:
            unrelated.append((pair.jaccard, pair.containment))
    copies = sum(story.copy is not None and not story.copy.part for story in corpus.stories)
    return Scored(copies, planted, unrelated, left_out)


def cross_flags(corpus: Corpus, pairs: Iterable[Pair]) -> list[Pair]:
    """The flagged pairs of stories that have text of no common original."""
    return [pair for pair in pairs if pair.kind is not None and not corpus.share_origin(pair.a, pair.b)]


def count_cross_pairs(corpus: Corpus) -> int:
    """Count the pairs of stories that have text of no common original."""
    of_origin: dict[int, list[int]] = {}
    for place, story in enumerate(corpus.stories):
        for origin in story.origins:
            of_origin.setdefault(origin, []).append(place)
    related = {pair for places in of_origin.values() for pair in combinations(places, 2)}
    n = len(corpus.stories)
    return n * (n - 1) // 2 - len(related)


def _original_copy_pairs(corpus: Corpus, pairs: Iterable[Pair]) -> Iterator[tuple[Pair, int, int]]:
    """The pairs of an original and a copy as a whole, each with the number of the original and that of the copy's."""
    for pair in pairs:
        a, b = sorted((corpus.stories[pair.a], corpus.stories[pair.b]), key=lambda story: story.copy is not None)
        if a.copy is None and b.copy is not None and not b.copy.part:
            yield pair, a.origins[0], b.origins[0]


def _related(corpus: Corpus, pairs: Iterable[Pair]) -> Mapping[int, frozenset[int]]:
    """For each original: itself, the donors of its copies, and the originals that overlap with any of these."""
    overlapping: list[set[int]] = [{n} for n in range(len(corpus.originals))]
    for pair in pairs:
        a, b = corpus.stories[pair.a], corpus.stories[pair.b]
        if a.copy is b.copy is None and max(pair.jaccard, pair.containment) >= NEAR_MISS:
            overlapping[a.origins[0]].add(b.origins[0])
            overlapping[b.origins[0]].add(a.origins[0])
    return {
        origin: frozenset().union(*(overlapping[n] for n in {origin} | corpus.donors[origin]))
        for origin in range(len(corpus.originals))
    }
