"""What two stories share, as a page shows it: pieces of their texts, in lines and folds, and passages in pairs.

Every boundary is a cut of `core.text.Located`: never within a word, nor within what a reader sees as one character.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neardup.core.text.normalize import Located, located
from neardup.core.verify.passages import Passage
from neardup.moderation.evidence.alignment import Mark, Stretch, chains, stretches
from neardup.query.evidence import Evidence, LoadedStory

SPACE = re.compile(r"\s")
SHOWN_PAIRS = 30
PAIR_WORDS = 40  # passages that nothing but edits part are shown as one pair until it has so many
FIRST_WORDS, LAST_WORDS, AROUND_WORDS = 40, 15, 8  # what a pair shows of a longer one, and beside it


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a story's text; of a passage that goes over several lines, one segment `begins` it."""

    text: str
    mark: Mark = Mark.PLAIN
    passage: int | None = None
    begins: bool = False


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One line of a story, with the line feeds at its end."""

    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """Other text of so many words, shown when it is asked for."""

    words: int
    paragraphs: tuple[Paragraph, ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """Where a passage begins, and how much it is, in thousandths of the story's words."""

    passage: int
    at: float
    length: float


@dataclass(frozen=True, slots=True)
class Side:
    """A story's text; joined, its segments are the text in NFC."""

    blocks: tuple[Paragraph | Fold, ...]
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Passages [first, last] as they stand in either story, the edits between them, and some words around them."""

    first: int
    last: int
    words: int
    a: tuple[Segment, ...]
    b: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Shared:
    """Two stories side by side; `pairs` are the longest, in A's order, and `more` counts the others."""

    a: Side
    b: Side
    pairs: tuple[Pair, ...]
    more: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Text [start, end) of a story, and what it is; a fold holds so many `words`."""

    start: int
    end: int
    mark: Mark = Mark.PLAIN
    passage: int | None = None
    words: int = 0


def shared(facts: Evidence, a: LoadedStory, b: LoadedStory) -> Shared:
    """What `query.evidence` found of two stories, placed in their texts.  Passages count from 1, by A."""
    found = [Passage(one.a.word, one.b.word, one.words) for one in facts.passages]
    found.sort(key=lambda passage: passage.start_a)
    marked_a, marked_b = stretches(found, a.words, b.words)
    text_a, text_b = located(a.text), located(b.text)
    pieces_a, pieces_b = pieces(text_a, marked_a), pieces(text_b, marked_b)
    pairs = list(_spans(found, len(a.words), len(b.words)))
    longest = sorted(sorted(pairs, key=lambda pair: -pair.words)[:SHOWN_PAIRS], key=lambda pair: pair.first)
    return Shared(
        Side(tuple(_blocks(text_a.text, pieces_a)), _bars(marked_a, len(a.words))),
        Side(tuple(_blocks(text_b.text, pieces_b)), _bars(marked_b, len(b.words))),
        tuple(
            Pair(
                one.first, one.last, one.words, excerpt(text_a, pieces_a, one.in_a), excerpt(text_b, pieces_b, one.in_b)
            )
            for one in longest
        ),
        len(pairs) - len(longest),
    )


def pieces(text: Located, marked: Sequence[Stretch]) -> list[Piece]:
    """Stretches in reading order -> pieces of the text, all of it, in order."""
    out: list[Piece] = []
    at = 0
    for one in marked:
        folded = one.mark is Mark.FOLDED
        span = (_gap(text, one.first), _gap(text, one.end)) if folded else text.span(one.first, one.end)
        start, end = (max(at, offset) for offset in span)
        if at < start:
            out.append(Piece(at, start))
        out.append(Piece(start, end, one.mark, one.passage, one.end - one.first))
        at = end
    if at < len(text.text):
        out.append(Piece(at, len(text.text)))
    return out


def _gap(text: Located, word: int) -> int:
    """Where to part a text before this word: behind what is written on to the word before it."""
    space = SPACE.search(text.text, text.ends[word - 1])
    end = space.start() if space else len(text.text)
    cut = int(text.cuts[np.searchsorted(text.cuts, end)])
    return min(cut, text.span(word, word + 1)[0])


@dataclass(frozen=True, slots=True)
class _Spans:
    """Passages [first, last], of so many words together, and where they stand in either story."""

    first: int
    last: int
    words: int
    in_a: range
    in_b: range


def _spans(found: Sequence[Passage], words_a: int, words_b: int) -> Iterator[_Spans]:
    """Passages, as they are paired; of a chain, a pair begins where the one before it ends."""
    number = 0
    for chain in chains(found, words_a, words_b):
        at = None
        words, first = 0, number + 1
        for one in chain:
            number += 1
            words += one.words
            at = at or (one.start_a, one.start_b)
            end = one.start_a + one.words, one.start_b + one.words
            if words >= PAIR_WORDS or one is chain[-1]:
                yield _Spans(first, number, words, range(at[0], end[0]), range(at[1], end[1]))
                at = end
                words, first = 0, number + 1


def excerpt(text: Located, whole: Sequence[Piece], words: range) -> tuple[Segment, ...]:
    """These words of a story's pieces, their middle left out where they are many, and some words around them."""
    outer = range(max(words.start - AROUND_WORDS, 0), min(words.stop + AROUND_WORDS, len(text.starts)))
    if len(words) <= 2 * (FIRST_WORDS + LAST_WORDS):
        return tuple(_within(text.text, whole, *text.span(outer.start, outer.stop)))
    return (
        *_within(text.text, whole, *text.span(outer.start, words.start + FIRST_WORDS)),
        Segment("", Mark.ELIDED),
        *_within(text.text, whole, *text.span(words.stop - LAST_WORDS, outer.stop)),
    )


def _within(text: str, whole: Sequence[Piece], start: int, end: int) -> Iterator[Segment]:
    for one in whole:
        if one.start < end and start < one.end:
            mark = Mark.PLAIN if one.mark is Mark.FOLDED else one.mark
            yield Segment(text[max(start, one.start) : min(end, one.end)], mark, one.passage)


def _blocks(text: str, whole: Sequence[Piece]) -> Iterator[Paragraph | Fold]:
    shown: list[Piece] = []
    for one in whole:
        if one.mark is Mark.FOLDED:
            yield from _paragraphs(text, shown)
            yield Fold(one.words, tuple(_paragraphs(text, [replace(one, mark=Mark.PLAIN)])))
            shown = []
        else:
            shown.append(one)
    yield from _paragraphs(text, shown)


def _paragraphs(text: str, whole: Sequence[Piece]) -> list[Paragraph]:
    """A line each; one without a sign is part of the next, or of the last."""
    lines: list[list[Segment]] = []
    line: list[Segment] = []
    blank = True
    for one in whole:
        begins = one.passage is not None
        for part in text[one.start : one.end].splitlines(keepends=True) or [""]:
            line.append(Segment(part, one.mark, one.passage, begins))
            begins = False
            blank = blank and not part.strip()
            if part.endswith("\n") and not blank:
                lines.append(line)
                line, blank = [], True
    if blank and lines:
        lines[-1] += line
    elif line:
        lines.append(line)
    return [Paragraph(tuple(segments)) for segments in lines]


def _bars(marked: Sequence[Stretch], words: int) -> tuple[Bar, ...]:
    return tuple(
        Bar(one.passage, round(1000 * one.first / words, 2), round(1000 * (one.end - one.first) / words, 2))
        for one in marked
        if one.passage is not None
    )
