"""The similarity report of a story: its text once, with each copied passage highlighted with its source.

Where several sources hold the same words, the words belong to the source that holds the largest share of the story.
Words in common passages are shown as common, and count as no part copied.
"""

import sqlite3
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from neardup.core.fingerprint.word_hashes import Hashes, sample_grams
from neardup.core.sets import find_distinct
from neardup.core.verify.alignment import Mask, mask_common
from neardup.core.verify.spans import union_of_spans
from neardup.ledger import passages
from neardup.ledger.similarities import Similarity, Source
from neardup.moderation.evidence.alignment import (
    Bar,
    Fold,
    Highlight,
    Paragraph,
    Stretch,
    add_folds,
    convert_to_spans,
    cut_blocks,
    make_bars,
)
from neardup.query.compare import LoadedStory
from neardup.records import Language, Spans

COLOURS = 8  # the sources with the largest shares have one each; all others share the colour 0
MOST_BARS = 400  # drawn of a source; more could not be distinguished
Places = npt.NDArray[np.int64]


def find_common_words(db: sqlite3.Connection, language: Language, words: Hashes) -> Mask:
    """Word hashes (n,) of a story -> (n,) which words stand in common passages of its language."""
    hashes, _ = sample_grams(words)
    return mask_common(words, passages.find_common_among(db, language, find_distinct(hashes)))


class ReportedSource(Struct, frozen=True):
    """A source of the story; `number` counts from 1, the largest share first.

    `word` is the first word of the story that stands in it, None without spans; `passage` is the first passage that is
    highlighted as its own.
    """

    number: int
    colour: int
    about: Source
    word: int | None
    passage: int | None
    bars: tuple[Bar, ...]


class ReportedPassage(Struct, frozen=True):
    """Words [word, word + words) of the story, which stand in a source and for the larger part also in `others`."""

    number: int
    source: ReportedSource
    word: int
    words: int
    others: tuple[int, ...]


class StoryReport(Struct, frozen=True):
    """The sources of a story, its text and its passages, by their number less 1; `bars` are those of all sources.

    `blocks` is empty if the text is not known, and has no highlights if the text is not the one that was compared.
    """

    sources: tuple[ReportedSource, ...]
    passages: tuple[ReportedPassage, ...]
    bars: tuple[Bar, ...]
    blocks: tuple[Paragraph | Fold, ...]
    has_common: bool


def make_story_report(found: Similarity, story: LoadedStory | None, common: Mask | None) -> StoryReport:
    """The report on a story; `story` is None if its text is not known.

    `common` (words,) says which words stand in common passages; it is None if the text is not the one that was
    compared, so that no place in it is known.
    """
    owned = _list_stretches(found, common if common is not None else np.zeros(found.words, bool))
    owners = [owner for owner, _ in owned if owner is not None]
    first_of = {owner: number for number, owner in reversed(list(enumerate(owners, 1)))}
    sources = tuple(
        ReportedSource(
            n + 1,
            _choose_colour(n),
            source,
            int(source.spans[0, 0]) if len(source.spans) else None,
            first_of.get(n) if common is not None else None,
            make_bars(source.spans[:MOST_BARS].tolist(), found.words, _choose_colour(n)),
        )
        for n, source in enumerate(found.sources)
    )
    stretches = [stretch for _, stretch in owned]
    passages = tuple(_list_passages(sources, owners, [stretch for stretch in stretches if stretch.passage is not None]))
    return StoryReport(
        sources,
        passages,
        tuple(
            bar
            for passage in passages
            for bar in make_bars([(passage.word, passage.word + passage.words)], found.words, passage.source.colour)
        ),
        () if story is None else _cut_blocks(story, stretches if common is not None else []),
        has_common=any(stretch.highlight is Highlight.COMMON for stretch in stretches),
    )


def _choose_colour(n: int) -> int:
    return n + 1 if n < COLOURS else 0


def _list_stretches(found: Similarity, common: Mask) -> list[tuple[int | None, Stretch]]:
    """The stretches to highlight in reading order, each with the index of its source, None for common text."""
    spans = [(n, start, end) for n, source in enumerate(found.sources) for start, end in source.spans.tolist()]
    span_of = np.full(found.words, -1, np.int64)
    span_of[common] = len(spans)
    for n in range(len(spans) - 1, -1, -1):
        _, start, end = spans[n]
        span_of[start:end] = n
    edges = np.flatnonzero(np.diff(span_of, prepend=-2, append=-2))
    owned: list[tuple[int | None, Stretch]] = []
    passages = 0
    for first, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        n = int(span_of[first])
        if n == len(spans):
            owned.append((None, Stretch(first, end, Highlight.COMMON)))
        elif n >= 0:
            passages += 1
            owned.append((spans[n][0], Stretch(first, end, Highlight.COPIED, passages)))
    return owned


def _list_passages(
    sources: Sequence[ReportedSource], owners: Sequence[int], stretches: Sequence[Stretch]
) -> Iterator[ReportedPassage]:
    starts = np.array([stretch.first for stretch in stretches], np.int64)
    ends = np.array([stretch.end for stretch in stretches], np.int64)
    others: list[list[int]] = [[] for _ in stretches]
    for source in sources:
        held = _count_covered_before(source.about.spans, ends) - _count_covered_before(source.about.spans, starts)
        for n in np.flatnonzero(2 * held > ends - starts).tolist():
            others[n].append(source.number)
    for number, (owner, stretch, holding) in enumerate(zip(owners, stretches, others, strict=True), 1):
        source = sources[owner]
        others_of = tuple(other for other in holding if other != source.number)
        yield ReportedPassage(number, source, stretch.first, stretch.end - stretch.first, others_of)


def _count_covered_before(spans: Spans, places: Places) -> Places:
    """How many words of the spans stand before each of these places."""
    spans = union_of_spans(spans)
    if not len(spans):
        return np.zeros(len(places), np.int64)
    lengths = spans[:, 1] - spans[:, 0]
    n = np.searchsorted(spans[:, 0], places, "right")
    total = np.concatenate(([0], np.cumsum(lengths)))[n]
    beyond = np.where(n > 0, spans[n - 1, 1] - places, 0)
    return total - np.maximum(beyond, 0)


def _cut_blocks(story: LoadedStory, stretches: Sequence[Stretch]) -> tuple[Paragraph | Fold, ...]:
    text = story.text.located
    return tuple(cut_blocks(text.text, convert_to_spans(text, add_folds(list(stretches), len(text.starts)))))
