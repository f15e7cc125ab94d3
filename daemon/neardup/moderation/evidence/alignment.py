"""Two stories side by side: their copied passages, the edits between them, and other text, as the evidence has them.

The words become stretches, each with a highlight; the stretches cut the texts into fragments for a page, and into the
pairs of passages that a report quotes.  Every cut is one of `Located.cuts` of `core.text.normalize`: never inside a
word or a grapheme cluster.
"""

import math
import re
from bisect import bisect
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import groupby

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from neardup.core.text.normalize import Located
from neardup.query.compare import CopiedPassage, Evidence, LoadedStory, WordSpans

CONTEXT_WORDS = 20  # words of other text left open beside highlighted text, and at both ends of a story
MIN_FOLDED_WORDS = 25  # folding fewer words would save no space
SPACE = re.compile(r"\s")
MAX_PASSAGE_PAIRS = 30
MIN_PAIR_WORDS = 40  # passages separated only by edits are joined in one pair until it has this many words
FIRST_WORDS, LAST_WORDS, SURROUNDING_WORDS = 40, 15, 8  # the words shown of a long passage, and around it


class Highlight(StrEnum):
    """How a stretch of a story is shown."""

    PLAIN = "plain"
    COPIED = "copied"  # a passage, which is in both stories
    CHANGED = "changed"  # words of an edit, within a copied span
    COMMON = "common"  # text that many stories share, which does not count as copied
    FOLDED = "folded"  # other text, collapsed because it is long
    ELIDED = "elided"  # the omitted middle of a long passage


class Stretch(Struct, frozen=True):
    """Words [first, end) of a story; `passage` is the number of the copied passage, if it is one."""

    first: int
    end: int
    highlight: Highlight
    passage: int | None = None


Sides = tuple[list[Stretch], list[Stretch]]


def list_stretches(facts: Evidence) -> Sides:
    """The stretches to highlight or fold in A and in B, in reading order; passages are numbered from 1, in A's order.

    Words in no stretch are plain text.  The highlighted ones are those of the copied spans: the passages, and the edits
    between them.
    """
    both = [
        [Stretch(side.word, side.word + side.words, Highlight.COPIED, number) for side in (passage.a, passage.b)]
        for number, passage in enumerate(sort_passages(facts), 1)
    ]
    shown_a, shown_b = (
        list(_cut_spans(spans, (sides[n] for sides in both))) for n, spans in enumerate((facts.spans_a, facts.spans_b))
    )
    return add_folds(shown_a, facts.a.words or 0), add_folds(shown_b, facts.b.words or 0)


def sort_passages(facts: Evidence) -> list[CopiedPassage]:
    """The passages in A's order, by which they are numbered."""
    return sorted(facts.passages, key=lambda passage: passage.a.word)


def _cut_spans(spans: WordSpans, copied: Iterable[Stretch]) -> Iterator[Stretch]:
    """Cut spans, ascending, into copied passages and edits.  A span without a passage has no number.

    Where skeletons are compared, two spans may match one of the other story, and one of the two has no passage.
    """
    left = deque(sorted(copied, key=lambda stretch: stretch.first))
    for start, end in spans:
        if not left or left[0].first >= end:
            yield Stretch(start, end, Highlight.COPIED)
            continue
        at = start
        while left and left[0].first < end:
            passage = left.popleft()
            if at < passage.first:
                yield Stretch(at, passage.first, Highlight.CHANGED)
            yield passage
            at = passage.end
        if at < end:
            yield Stretch(at, end, Highlight.CHANGED)


def add_folds(shown: list[Stretch], words: int) -> list[Stretch]:
    """Sort the stretches and add folds between them; a story without highlights gets no folds."""
    if not shown:
        return []
    folded: list[Stretch] = []
    previous_end = 0
    for stretch in [*sorted(shown, key=lambda stretch: stretch.first), Stretch(words, words, Highlight.PLAIN)]:
        first, end = previous_end + CONTEXT_WORDS, stretch.first - CONTEXT_WORDS
        if end - first >= MIN_FOLDED_WORDS:
            folded.append(Stretch(first, end, Highlight.FOLDED))
        if stretch.highlight is not Highlight.PLAIN:
            folded.append(stretch)
        previous_end = stretch.end
    return folded


# The texts, cut into highlighted fragments.


class Fragment(Struct, frozen=True):
    """Part of a story's text with one highlight; `begins` is set on the first fragment of a passage."""

    text: str
    highlight: Highlight = Highlight.PLAIN
    passage: int | None = None
    begins: bool = False


class Paragraph(Struct, frozen=True):
    """One line of a story, with the blank lines before it; the last one also has those after it."""

    fragments: tuple[Fragment, ...]


class Fold(Struct, frozen=True):
    """Text that was not copied, collapsed until the reader opens it; `words` is its length."""

    words: int
    paragraphs: tuple[Paragraph, ...]


class Bar(Struct, frozen=True):
    """The position and the length of a copied span, in thousandths of the story's words; the colour of its source."""

    at: float
    length: float
    colour: int


class Side(Struct, frozen=True):
    """A story's text; its fragments, joined, are the whole text in NFC."""

    blocks: tuple[Paragraph | Fold, ...]
    bars: tuple[Bar, ...]


class PassagePair(Struct, frozen=True):
    """Passages `first` to `last` in both stories, with the edits between them and a few words around them.

    `words` is the number of copied words.
    """

    first: int
    last: int
    words: int
    a: tuple[Fragment, ...]
    b: tuple[Fragment, ...]


class AlignedStories(Struct, frozen=True):
    """Two stories side by side; `pairs` are the longest pairs of passages, in A's order, and `more` counts the rest."""

    a: Side
    b: Side
    pairs: tuple[PassagePair, ...]
    more: int


class ShownSpan(Struct, frozen=True):
    """Characters [start, end) of a story and their highlight; `words` is the length of a stretch, 0 between two."""

    start: int
    end: int
    highlight: Highlight = Highlight.PLAIN
    passage: int | None = None
    words: int = 0


def align_stories(facts: Evidence, a: LoadedStory, b: LoadedStory) -> AlignedStories:
    """Highlight what `query.compare` found in both texts.  Passages are numbered from 1, in A's order."""
    shown_a, shown_b = list_stretches(facts)
    text_a, text_b = a.text.located, b.text.located
    spans_a, spans_b = convert_to_spans(text_a, shown_a), convert_to_spans(text_b, shown_b)
    groups = list(_group_passages(facts))
    longest = sorted(sorted(groups, key=lambda group: -group.words)[:MAX_PASSAGE_PAIRS], key=lambda group: group.first)
    return AlignedStories(
        Side(tuple(cut_blocks(text_a.text, spans_a)), make_bars(facts.spans_a, facts.a.words or 0)),
        Side(tuple(cut_blocks(text_b.text, spans_b)), make_bars(facts.spans_b, facts.b.words or 0)),
        tuple(
            PassagePair(
                group.first,
                group.last,
                group.words,
                cut_excerpt(text_a, spans_a, group.in_a),
                cut_excerpt(text_b, spans_b, group.in_b),
            )
            for group in longest
        ),
        len(groups) - len(longest),
    )


def convert_to_spans(text: Located, shown: Sequence[Stretch]) -> list[ShownSpan]:
    """Convert stretches of words, in reading order, to spans of characters that cover the whole text."""
    spans: list[ShownSpan] = []
    done = 0
    for stretch in shown:
        is_folded = stretch.highlight is Highlight.FOLDED
        offsets = (
            (_cut_before(text, stretch.first), _cut_before(text, stretch.end))
            if is_folded
            else text.find_span(stretch.first, stretch.end)
        )
        start, end = (max(done, offset) for offset in offsets)
        if done < start:
            spans.append(ShownSpan(done, start))
        spans.append(ShownSpan(start, end, stretch.highlight, stretch.passage, stretch.end - stretch.first))
        done = end
    if done < len(text.text):
        spans.append(ShownSpan(done, len(text.text)))
    return spans


def _cut_before(text: Located, word: int) -> int:
    """The offset of the cut before a word, after any punctuation attached to the previous word."""
    space = SPACE.search(text.text, text.ends[word - 1])
    end = space.start() if space else len(text.text)
    cut = int(text.cuts[np.searchsorted(text.cuts, end)])
    return min(cut, text.find_span(word, word + 1)[0])


class _PassageGroup(Struct, frozen=True):
    """Passages `first` to `last`, their number of words, and their words' ranges in both stories."""

    first: int
    last: int
    words: int
    in_a: range
    in_b: range


def _group_passages(facts: Evidence) -> Iterator[_PassageGroup]:
    """Group the passages of each span, in A's order; a group begins where the previous group of its span ends."""

    def find_spans(passage: CopiedPassage) -> tuple[int, int]:
        return bisect(facts.spans_a, (passage.a.word, math.inf)), bisect(facts.spans_b, (passage.b.word, math.inf))

    number = 0
    for _, chain in groupby(sort_passages(facts), find_spans):
        start = None
        words, first, passages = 0, number + 1, list(chain)
        for passage in passages:
            number += 1
            words += passage.words
            start = start or (passage.a.word, passage.b.word)
            end = passage.a.word + passage.a.words, passage.b.word + passage.b.words
            if words >= MIN_PAIR_WORDS or passage is passages[-1]:
                yield _PassageGroup(first, number, words, range(start[0], end[0]), range(start[1], end[1]))
                start = end
                words, first = 0, number + 1


def cut_excerpt(text: Located, spans: Sequence[ShownSpan], words: range) -> tuple[Fragment, ...]:
    """The fragments of these words and a few words around them; the middle of a long range is elided."""
    outer = range(max(words.start - SURROUNDING_WORDS, 0), min(words.stop + SURROUNDING_WORDS, len(text.starts)))
    if len(words) <= 2 * (FIRST_WORDS + LAST_WORDS):
        return tuple(_cut_within(text.text, spans, *text.find_span(outer.start, outer.stop)))
    return (
        *_cut_within(text.text, spans, *text.find_span(outer.start, words.start + FIRST_WORDS)),
        Fragment("", Highlight.ELIDED),
        *_cut_within(text.text, spans, *text.find_span(words.stop - LAST_WORDS, outer.stop)),
    )


def _cut_within(text: str, spans: Sequence[ShownSpan], start: int, end: int) -> Iterator[Fragment]:
    for span in spans:
        if span.start < end and start < span.end:
            highlight = Highlight.PLAIN if span.highlight is Highlight.FOLDED else span.highlight
            yield Fragment(text[max(start, span.start) : min(end, span.end)], highlight, span.passage)


def cut_blocks(text: str, spans: Sequence[ShownSpan]) -> Iterator[Paragraph | Fold]:
    shown: list[ShownSpan] = []
    for span in spans:
        if span.highlight is Highlight.FOLDED:
            yield from cut_paragraphs(text, shown)
            yield Fold(span.words, tuple(cut_paragraphs(text, [replace(span, highlight=Highlight.PLAIN)])))
            shown = []
        else:
            shown.append(span)
    yield from cut_paragraphs(text, shown)


def cut_paragraphs(text: str, spans: Sequence[ShownSpan]) -> list[Paragraph]:
    """Cut the text of these spans into one paragraph per line; a blank line is part of the next or the last one."""
    lines: list[list[Fragment]] = []
    line: list[Fragment] = []
    blank = True
    for span in spans:
        begins = span.passage is not None
        for part in text[span.start : span.end].splitlines(keepends=True) or [""]:
            line.append(Fragment(part, span.highlight, span.passage, begins))
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


def make_bars(spans: Iterable[Sequence[int]], words: int, colour: int = 0) -> tuple[Bar, ...]:
    return tuple(
        Bar(round(1000 * start / words, 2), round(1000 * (end - start) / words, 2), colour) for start, end in spans
    )


# The legend of a page.


def list_highlights(a: Iterable[Fragment], b: Iterable[Fragment]) -> set[str]:
    """The highlights among the fragments of A and of B: "copied", and "changed_a" and "changed_b" for edited words."""
    in_a, in_b = ({fragment.highlight for fragment in fragments} for fragments in (a, b))
    found = {
        "copied": Highlight.COPIED in in_a | in_b,
        "changed_a": Highlight.CHANGED in in_a,
        "changed_b": Highlight.CHANGED in in_b,
    }
    return {name for name, occurs in found.items() if occurs}


def list_story_highlights(aligned: AlignedStories) -> set[str]:
    return list_highlights(_list_fragments(aligned.a), _list_fragments(aligned.b))


def _list_fragments(side: Side) -> Iterator[Fragment]:
    for block in side.blocks:
        for paragraph in block.paragraphs if isinstance(block, Fold) else (block,):
            yield from paragraph.fragments
