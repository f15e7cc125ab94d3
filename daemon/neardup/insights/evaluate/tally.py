"""Counts the pairs on record of a planted corpus: copies found, pairs by score, pairs of different origin."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from neardup.core.verify.scores import NEAR_MISS
from neardup.insights.evaluate.plant import Corpus, PlantedStory
from neardup.records import Kind


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
    """The scores, as (Jaccard, containment), of the pairs on record of an original and a copy.

    `planted` are the pairs of a copy with its own original, `copies` the number of copies in the corpus.  `unrelated`
    are the pairs that share no text by design.  `left_out` counts the pairs that overlap for another reason.
    """

    copies: int
    planted: Sequence[tuple[float, float]]
    unrelated: Sequence[tuple[float, float]]
    left_out: int


def flagged_as(corpus: Corpus, pairs: Iterable[Pair]) -> dict[str, Counter[Kind | None]]:
    """Count for each edit the kinds as which its copies were flagged with their originals; None if not flagged."""
    kinds = {
        (copy.origin, copy.edit): pair.kind
        for pair, original, copy in _original_copy_pairs(corpus, pairs)
        if original.origin == copy.origin
    }
    out: dict[str, Counter[Kind | None]] = {}
    for story in corpus.stories:
        if story.edit is not None:
            out.setdefault(story.edit.name, Counter())[kinds.get((story.origin, story.edit))] += 1
    return out


def scored(corpus: Corpus, pairs: Sequence[Pair]) -> Scored:
    """Divide the pairs on record of an original and a copy by whether they are planted.

    Left out are the pairs of a copy with the donors of its foreign text, and with originals that overlap with these
    donors or with its own original.
    """
    planted, unrelated, left_out = [], [], 0
    related = _related(corpus, pairs)
    for pair, original, copy in _original_copy_pairs(corpus, pairs):
        if original.origin == copy.origin:
            planted.append((pair.jaccard, pair.containment))
        elif original.origin in related[copy.origin]:
            left_out += 1
        else:
            unrelated.append((pair.jaccard, pair.containment))
    return Scored(len(corpus.stories) - len(corpus.originals), planted, unrelated, left_out)


def cross_flags(corpus: Corpus, pairs: Iterable[Pair]) -> list[Pair]:
    """The flagged pairs of stories with different originals."""
    return [
        pair
        for pair in pairs
        if pair.kind is not None and corpus.stories[pair.a].origin != corpus.stories[pair.b].origin
    ]


def count_cross_pairs(corpus: Corpus) -> int:
    """Count the pairs of stories with different originals."""
    sizes = Counter(story.origin for story in corpus.stories)
    return (len(corpus.stories) ** 2 - sum(n * n for n in sizes.values())) // 2


def _original_copy_pairs(corpus: Corpus, pairs: Iterable[Pair]) -> Iterator[tuple[Pair, PlantedStory, PlantedStory]]:
    """The pairs of an original and a copy, each with the two stories in this order."""
    for pair in pairs:
        a, b = corpus.stories[pair.a], corpus.stories[pair.b]
        if (a.edit is None) != (b.edit is None):
            yield (pair, a, b) if a.edit is None else (pair, b, a)


def _related(corpus: Corpus, pairs: Iterable[Pair]) -> Mapping[int, frozenset[int]]:
    """For each original: itself, the donors of its copies, and the originals that overlap with any of these."""
    overlapping: list[set[int]] = [{n} for n in range(len(corpus.originals))]
    for pair in pairs:
        a, b = corpus.stories[pair.a], corpus.stories[pair.b]
        if a.edit is b.edit is None and max(pair.jaccard, pair.containment) >= NEAR_MISS:
            overlapping[a.origin].add(b.origin)
            overlapping[b.origin].add(a.origin)
    return {
        origin: frozenset().union(*(overlapping[n] for n in {origin} | corpus.donors[origin]))
        for origin in range(len(corpus.originals))
    }
