"""Two stories aligned word by word: their copied passages, the edits between them, and other text.

The words become stretches, each with a highlight; the stretches cut the texts into fragments for a page, and into the
pairs of passages that a report quotes.  Every cut is one of `core.text.Located.cuts`: never inside a word or a grapheme
cluster.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from enum import StrEnum

import numpy as np

from neardup.core.text.normalize import Located
from neardup.core.verify.passages import Passage
from neardup.query.evidence import Evidence, LoadedStory

MAX_EDIT_WORDS = 60  # words between two passages, on each side; a longer gap is other text, not an edit
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
    UNCHANGED = "unchanged"  # words of an edit that are in both stories, too few for a passage
    CHANGED = "changed"  # words of an edit that are on one side only
    COMMON = "common"  # text that many stories share, which does not count as copied
    FOLDED = "folded"  # other text, collapsed because it is long
    ELIDED = "elided"  # the omitted middle of a long passage


@dataclass(frozen=True, slots=True)
class Stretch:
    """Words [first, end) of a story; `passage` is the number of the copied passage, if it is one."""

    first: int
    end: int
    highlight: Highlight
    passage: int | None = None


Sides = tuple[list[Stretch], list[Stretch]]


def stretches(passages: Sequence[Passage], a: Sequence[bytes], b: Sequence[bytes]) -> Sides:
    """Passages in A's order, numbered from 1 -> the stretches to highlight or fold in A and in B, in reading order.

    Words in no stretch are plain text.  An edit is the text between two passages that follow each other in both
    stories, or before the first or after the last passage of both, if it has at most MAX_EDIT_WORDS words and no more
    than the passages beside it.  Its words are compared as in Ratcliff and Metzener, "Pattern Matching", Dr. Dobb's
    Journal, July 1988.
    """
    shown: Sides = ([], [])
    for number, passage in enumerate(passages, 1):
        shown[0].append(Stretch(passage.start_a, passage.start_a + passage.words, Highlight.COPIED, number))
        shown[1].append(Stretch(passage.start_b, passage.start_b + passage.words, Highlight.COPIED, number))
    for _, gap_a, gap_b in _edits(passages, len(a), len(b)):
        matcher = SequenceMatcher(None, a[gap_a.start : gap_a.stop], b[gap_b.start : gap_b.stop], autojunk=False)
        for tag, *bounds in matcher.get_opcodes():
            highlight = Highlight.UNCHANGED if tag == "equal" else Highlight.CHANGED
            for side, gap, (first, end) in zip(shown, (gap_a, gap_b), (bounds[:2], bounds[2:]), strict=True):
                if first < end:
                    side.append(Stretch(gap.start + first, gap.start + end, highlight))
    return with_folds(shown[0], len(a)), with_folds(shown[1], len(b))


def chains(passages: Sequence[Passage], words_a: int, words_b: int) -> list[list[Passage]]:
    """Passages in A's order, grouped into chains whose passages are separated only by edits."""
    after_edit = {n for n, _, _ in _edits(passages, words_a, words_b)}
    grouped: list[list[Passage]] = []
    for n, passage in enumerate(passages):
        if n and n in after_edit:
            grouped[-1].append(passage)
        else:
            grouped.append([passage])
    return grouped


def _edits(passages: Sequence[Passage], words_a: int, words_b: int) -> Iterator[tuple[int, range, range]]:
    """Each edit, as (n, words in A, words in B): it precedes passage n, counted from 0."""
    if not passages:
        return
    bounded = [Passage(0, 0, 0), *passages, Passage(words_a, words_b, 0)]
    order_in_b = sorted(range(len(bounded)), key=lambda n: (bounded[n].start_b, n))
    next_in_b = dict(itertools.pairwise(order_in_b))
    for n in range(len(bounded) - 1):
        if next_in_b.get(n) != n + 1:
            continue
        before, after = bounded[n], bounded[n + 1]
        gaps = (
            range(before.start_a + before.words, after.start_a),
            range(before.start_b + before.words, after.start_b),
        )
        if max(map(len, gaps)) <= min(MAX_EDIT_WORDS, before.words + after.words):
            yield n, *gaps


def with_folds(shown: list[Stretch], words: int) -> list[Stretch]:
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


@dataclass(frozen=True, slots=True)
class Fragment:
    """Part of a story's text with one highlight; `begins` is set on the first fragment of a passage."""

    text: str
    highlight: Highlight = Highlight.PLAIN
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
class ShownSpan:
    """Characters [start, end) of a story and their highlight; `words` is the length of a stretch, 0 between two."""

    start: int
    end: int
    highlight: Highlight = Highlight.PLAIN
    passage: int | None = None
    words: int = 0


def align_stories(facts: Evidence, a: LoadedStory, b: LoadedStory) -> AlignedStories:
    """Highlight the passages of `query.evidence` in both texts.  Passages are numbered from 1, in A's order."""
    shared = [Passage(passage.a.word, passage.b.word, passage.words) for passage in facts.passages]
    shared.sort(key=lambda passage: passage.start_a)
    shown_a, shown_b = stretches(shared, a.text.words, b.text.words)
    text_a, text_b = a.text.located, b.text.located
    spans_a, spans_b = spans_of(text_a, shown_a), spans_of(text_b, shown_b)
    groups = list(_passage_groups(shared, len(a.text.words), len(b.text.words)))
    longest = sorted(sorted(groups, key=lambda group: -group.words)[:MAX_PASSAGE_PAIRS], key=lambda group: group.first)
    return AlignedStories(
        Side(tuple(blocks(text_a.text, spans_a)), _bars(shown_a, len(a.text.words))),
        Side(tuple(blocks(text_b.text, spans_b)), _bars(shown_b, len(b.text.words))),
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


def spans_of(text: Located, shown: Sequence[Stretch]) -> list[ShownSpan]:
    """Convert stretches of words, in reading order, to spans of characters that cover the whole text."""
    spans: list[ShownSpan] = []
    done = 0
    for stretch in shown:
        folded = stretch.highlight is Highlight.FOLDED
        offsets = (
            (_cut_before(text, stretch.first), _cut_before(text, stretch.end))
            if folded
            else text.span(stretch.first, stretch.end)
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


def excerpt(text: Located, spans: Sequence[ShownSpan], words: range) -> tuple[Fragment, ...]:
    """The fragments of these words and a few words around them; the middle of a long range is elided."""
    outer = range(max(words.start - SURROUNDING_WORDS, 0), min(words.stop + SURROUNDING_WORDS, len(text.starts)))
    if len(words) <= 2 * (FIRST_WORDS + LAST_WORDS):
        return tuple(_within(text.text, spans, *text.span(outer.start, outer.stop)))
    return (
        *_within(text.text, spans, *text.span(outer.start, words.start + FIRST_WORDS)),
        Fragment("", Highlight.ELIDED),
        *_within(text.text, spans, *text.span(words.stop - LAST_WORDS, outer.stop)),
    )


def _within(text: str, spans: Sequence[ShownSpan], start: int, end: int) -> Iterator[Fragment]:
    for span in spans:
        if span.start < end and start < span.end:
            highlight = Highlight.PLAIN if span.highlight is Highlight.FOLDED else span.highlight
            yield Fragment(text[max(start, span.start) : min(end, span.end)], highlight, span.passage)


def blocks(text: str, spans: Sequence[ShownSpan]) -> Iterator[Paragraph | Fold]:
    """Cut the text of these spans into paragraphs and folds."""
    shown: list[ShownSpan] = []
    for span in spans:
        if span.highlight is Highlight.FOLDED:
            yield from paragraphs(text, shown)
            yield Fold(span.words, tuple(paragraphs(text, [replace(span, highlight=Highlight.PLAIN)])))
            shown = []
        else:
            shown.append(span)
    yield from paragraphs(text, shown)


def paragraphs(text: str, spans: Sequence[ShownSpan]) -> list[Paragraph]:
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


def _bars(shown: Sequence[Stretch], words: int) -> tuple[Bar, ...]:
    return tuple(
        Bar(
            stretch.passage,
            round(1000 * stretch.first / words, 2),
            round(1000 * (stretch.end - stretch.first) / words, 2),
        )
        for stretch in shown
        if stretch.passage is not None
    )


# The legend of a page.

OF_COPIES = {Highlight.COPIED, Highlight.UNCHANGED}


def legend_of(a: Iterable[Fragment], b: Iterable[Fragment]) -> set[str]:
    """The highlights among the fragments of A and of B: "copied", and "changed_a" and "changed_b" for edited words."""
    in_a, in_b = ({fragment.highlight for fragment in fragments} for fragments in (a, b))
    found = {
        "copied": bool((in_a | in_b) & OF_COPIES),
        "changed_a": Highlight.CHANGED in in_a,
        "changed_b": Highlight.CHANGED in in_b,
    }
    return {name for name, occurs in found.items() if occurs}


def legend_of_stories(aligned: AlignedStories) -> set[str]:
    """The highlights in two whole stories."""
    return legend_of(_fragments(aligned.a), _fragments(aligned.b))


def _fragments(side: Side) -> Iterator[Fragment]:
    for block in side.blocks:
        for paragraph in block.paragraphs if isinstance(block, Fold) else (block,):
            yield from paragraph.fragments
