"""The texts of two stories, cut into marked fragments for a page, and the passages that they share in pairs.

Every cut is one of `core.text.Located.cuts`: never inside a word or a grapheme cluster.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neardup.core.text.normalize import Located
from neardup.core.verify.passages import Passage
from neardup.moderation.evidence.alignment import Mark, Stretch, chains, stretches
from neardup.query.evidence import Evidence, LoadedStory

SPACE = re.compile(r"\s")
MAX_PASSAGE_PAIRS = 30
MIN_PAIR_WORDS = 40  # passages separated only by edits are joined in one pair until it has this many words
FIRST_WORDS, LAST_WORDS, SURROUNDING_WORDS = 40, 15, 8  # the words shown of a long passage, and around it


@dataclass(frozen=True, slots=True)
class Fragment:
    """Part of a story's text with one mark; `begins` is set on the first fragment of a passage."""

    text: str
    mark: Mark = Mark.PLAIN
    passage: int | None = None
    begins: bool = False


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One line of a story, including the line feeds at its end."""

    fragments: tuple[Fragment, ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """Text that was not copied, collapsed until the reader opens it; `words` is its length."""

    words: int
    paragraphs: tuple[Paragraph, ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """The position and the length of a passage, in thousandths of the story's words."""

    passage: int
    at: float
    length: float


@dataclass(frozen=True, slots=True)
class Side:
    """A story's text; its fragments, joined, are the whole text in NFC."""

    blocks: tuple[Paragraph | Fold, ...]
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class PassagePair:
    """Passages `first` to `last` in both stories, with the edits between them and a few words around them.

    `words` is the number of copied words.
    """

    first: int
    last: int
    words: int
    a: tuple[Fragment, ...]
    b: tuple[Fragment, ...]


@dataclass(frozen=True, slots=True)
class AlignedStories:
    """Two stories side by side; `pairs` are the longest pairs of passages, in A's order, and `more` counts the rest."""

    a: Side
    b: Side
    pairs: tuple[PassagePair, ...]
    more: int


@dataclass(frozen=True, slots=True)
class MarkedSpan:
    """Characters [start, end) of a story and their mark; `words` is the length of a stretch, 0 between stretches."""

    start: int
    end: int
    mark: Mark = Mark.PLAIN
    passage: int | None = None
    words: int = 0


def align_stories(facts: Evidence, a: LoadedStory, b: LoadedStory) -> AlignedStories:
    """Mark the passages of `query.evidence` in both texts.  Passages are numbered from 1, in A's order."""
    shared = [Passage(one.a.word, one.b.word, one.words) for one in facts.passages]
    shared.sort(key=lambda passage: passage.start_a)
    marked_a, marked_b = stretches(shared, a.words, b.words)
    text_a, text_b = a.located, b.located
    spans_a, spans_b = marked_spans(text_a, marked_a), marked_spans(text_b, marked_b)
    groups = list(_passage_groups(shared, len(a.words), len(b.words)))
    longest = sorted(sorted(groups, key=lambda group: -group.words)[:MAX_PASSAGE_PAIRS], key=lambda group: group.first)
    return AlignedStories(
        Side(tuple(blocks(text_a.text, spans_a)), _bars(marked_a, len(a.words))),
        Side(tuple(blocks(text_b.text, spans_b)), _bars(marked_b, len(b.words))),
        tuple(
            PassagePair(
                group.first,
                group.last,
                group.words,
                excerpt(text_a, spans_a, group.in_a),
                excerpt(text_b, spans_b, group.in_b),
            )
            for group in longest
        ),
        len(groups) - len(longest),
    )


def marked_spans(text: Located, marked: Sequence[Stretch]) -> list[MarkedSpan]:
    """Convert stretches of words, in reading order, to spans of characters that cover the whole text."""
    spans: list[MarkedSpan] = []
    done = 0
    for stretch in marked:
        folded = stretch.mark is Mark.FOLDED
        offsets = (
            (_cut_before(text, stretch.first), _cut_before(text, stretch.end))
            if folded
            else text.span(stretch.first, stretch.end)
        )
        start, end = (max(done, offset) for offset in offsets)
        if done < start:
            spans.append(MarkedSpan(done, start))
        spans.append(MarkedSpan(start, end, stretch.mark, stretch.passage, stretch.end - stretch.first))
        done = end
    if done < len(text.text):
        spans.append(MarkedSpan(done, len(text.text)))
    return spans


def _cut_before(text: Located, word: int) -> int:
    """The offset of the cut before a word, after any punctuation attached to the previous word."""
    space = SPACE.search(text.text, text.ends[word - 1])
    end = space.start() if space else len(text.text)
    cut = int(text.cuts[np.searchsorted(text.cuts, end)])
    return min(cut, text.span(word, word + 1)[0])


@dataclass(frozen=True, slots=True)
class _PassageGroup:
    """Passages `first` to `last`, their number of words, and their words' ranges in both stories."""

    first: int
    last: int
    words: int
    in_a: range
    in_b: range


def _passage_groups(shared: Sequence[Passage], words_a: int, words_b: int) -> Iterator[_PassageGroup]:
    """Group the passages of each chain; a group begins where the previous group of its chain ends."""
    number = 0
    for chain in chains(shared, words_a, words_b):
        start = None
        words, first = 0, number + 1
        for passage in chain:
            number += 1
            words += passage.words
            start = start or (passage.start_a, passage.start_b)
            end = passage.start_a + passage.words, passage.start_b + passage.words
            if words >= MIN_PAIR_WORDS or passage is chain[-1]:
                yield _PassageGroup(first, number, words, range(start[0], end[0]), range(start[1], end[1]))
                start = end
                words, first = 0, number + 1


def excerpt(text: Located, spans: Sequence[MarkedSpan], words: range) -> tuple[Fragment, ...]:
    """The fragments of these words and a few words around them; the middle of a long range is elided."""
    outer = range(max(words.start - SURROUNDING_WORDS, 0), min(words.stop + SURROUNDING_WORDS, len(text.starts)))
    if len(words) <= 2 * (FIRST_WORDS + LAST_WORDS):
        return tuple(_within(text.text, spans, *text.span(outer.start, outer.stop)))
    return (
        *_within(text.text, spans, *text.span(outer.start, words.start + FIRST_WORDS)),
        Fragment("", Mark.ELIDED),
        *_within(text.text, spans, *text.span(words.stop - LAST_WORDS, outer.stop)),
    )


def _within(text: str, spans: Sequence[MarkedSpan], start: int, end: int) -> Iterator[Fragment]:
    for span in spans:
        if span.start < end and start < span.end:
            mark = Mark.PLAIN if span.mark is Mark.FOLDED else span.mark
            yield Fragment(text[max(start, span.start) : min(end, span.end)], mark, span.passage)


def blocks(text: str, spans: Sequence[MarkedSpan]) -> Iterator[Paragraph | Fold]:
    """Cut the text of these spans into paragraphs and folds."""
    shown: list[MarkedSpan] = []
    for span in spans:
        if span.mark is Mark.FOLDED:
            yield from paragraphs(text, shown)
            yield Fold(span.words, tuple(paragraphs(text, [replace(span, mark=Mark.PLAIN)])))
            shown = []
        else:
            shown.append(span)
    yield from paragraphs(text, shown)


def paragraphs(text: str, spans: Sequence[MarkedSpan]) -> list[Paragraph]:
    """Cut the text of these spans into one paragraph per line; a blank line is part of the next or the last one."""
    lines: list[list[Fragment]] = []
    line: list[Fragment] = []
    blank = True
    for span in spans:
        begins = span.passage is not None
        for part in text[span.start : span.end].splitlines(keepends=True) or [""]:
            line.append(Fragment(part, span.mark, span.passage, begins))
            begins = False
            blank = blank and not part.strip()
            if part.endswith("\n") and not blank:
                lines.append(line)
                line, blank = [], True
    if blank and lines:
        lines[-1] += line
    elif line:
        lines.append(line)
    return [Paragraph(tuple(fragments)) for fragments in lines]


def _bars(marked: Sequence[Stretch], words: int) -> tuple[Bar, ...]:
    return tuple(
        Bar(
            stretch.passage,
            round(1000 * stretch.first / words, 2),
            round(1000 * (stretch.end - stretch.first) / words, 2),
        )
        for stretch in marked
        if stretch.passage is not None
    )
