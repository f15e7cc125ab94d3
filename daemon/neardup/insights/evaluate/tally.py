"""What is on record of a planted corpus, told apart: copies found, pairs by score, pairs of different origin."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from neardup.core.verify.scores import NEAR_MISS
from neardup.insights.evaluate.plant import Corpus, Planted
from neardup.records import Kind


@dataclass(frozen=True, slots=True)
class Pair:
    """A pair on record, by the stories' places in the corpus; `kind` is None for a near miss."""

    a: int
    b: int
    kind: Kind | None
    jaccard: float
    containment: float


@dataclass(frozen=True, slots=True)
class Scored:
    """Originals and copies on record, by their scores: (Jaccard, containment).

    `planted` are copies with their own originals, of `copies` there are; `strange` the pairs that have
    nothing to do with each other; `left_out` counts those that overlap without being planted.
    """

    copies: int
    planted: Sequence[tuple[float, float]]
    strange: Sequence[tuple[float, float]]
    left_out: int


def found(corpus: Corpus, pairs: Iterable[Pair]) -> dict[str, Counter[Kind | None]]:
    """Edit -> how its copies and their originals were flagged; None: they were not."""
    kinds = {
        (copy.origin, copy.edit): pair.kind
        for pair, original, copy in _of_original_and_copy(corpus, pairs)
        if original.origin == copy.origin
    }
    out: dict[str, Counter[Kind | None]] = {}
    for story in corpus.stories:
        if story.edit is not None:
            out.setdefault(story.edit.name, Counter())[kinds.get((story.origin, story.edit))] += 1
    return out


def scored(corpus: Corpus, pairs: Sequence[Pair]) -> Scored:
    """Each original on record with each copy.

    Left out are the pairs of a copy with what its foreign text is from, and with stories that are like
    that, or like its own original, by themselves.
    """
    planted, strange, left_out = [], [], 0
    related = _related(corpus, pairs)
    for pair, original, copy in _of_original_and_copy(corpus, pairs):
        if original.origin == copy.origin:
            planted.append((pair.jaccard, pair.containment))
        elif original.origin in related[copy.origin]:
            left_out += 1
        else:
            strange.append((pair.jaccard, pair.containment))
    return Scored(len(corpus.stories) - len(corpus.originals), planted, strange, left_out)


def crossed(corpus: Corpus, pairs: Iterable[Pair]) -> list[Pair]:
    """The flagged pairs of different origin."""
    return [
        pair
        for pair in pairs
        if pair.kind is not None and corpus.stories[pair.a].origin != corpus.stories[pair.b].origin
    ]


def compared(corpus: Corpus) -> int:
    """How many pairs of different origin there are."""
    sizes = Counter(story.origin for story in corpus.stories)
    return (len(corpus.stories) ** 2 - sum(n * n for n in sizes.values())) // 2


def _of_original_and_copy(corpus: Corpus, pairs: Iterable[Pair]) -> Iterator[tuple[Pair, Planted, Planted]]:
    for pair in pairs:
        a, b = corpus.stories[pair.a], corpus.stories[pair.b]
        if (a.edit is None) != (b.edit is None):
            yield (pair, a, b) if a.edit is None else (pair, b, a)


def _related(corpus: Corpus, pairs: Iterable[Pair]) -> Mapping[int, frozenset[int]]:
    """Origin -> itself, the donors of its copies, and the originals that overlap with any of these."""
    kin: list[set[int]] = [{n} for n in range(len(corpus.originals))]
    for pair in pairs:
        a, b = corpus.stories[pair.a], corpus.stories[pair.b]
        if a.edit is b.edit is None and max(pair.jaccard, pair.containment) >= NEAR_MISS:
            kin[a.origin].add(b.origin)
            kin[b.origin].add(a.origin)
    return {
        origin: frozenset().union(*(kin[n] for n in {origin} | corpus.donors[origin]))
        for origin in range(len(corpus.originals))
    }
