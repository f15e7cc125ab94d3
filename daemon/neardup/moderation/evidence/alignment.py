"""Two stories aligned word by word: copied passages, the edits between them, and other text."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

from neardup.core.verify.passages import Passage

MAX_EDIT_WORDS = 60  # words between two passages, on each side; a longer gap is other text, not an edit
CONTEXT_WORDS = 20  # words of other text left open beside marked text, and at both ends of a story
MIN_FOLDED_WORDS = 25  # folding fewer words would save no space


class Mark(StrEnum):
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
    mark: Mark
    passage: int | None = None


Sides = tuple[list[Stretch], list[Stretch]]


def stretches(passages: Sequence[Passage], a: Sequence[bytes], b: Sequence[bytes]) -> Sides:
    """Passages in A's order, numbered from 1 -> the stretches to mark or fold in A and in B, in reading order.

    Words in no stretch are plain text.  An edit is the text between two passages that follow each other in both
    stories, or before the first or after the last passage of both, if it has at most MAX_EDIT_WORDS words and no more
    than the passages beside it.  Its words are compared as in Ratcliff and Metzener, "Pattern Matching", Dr. Dobb's
    Journal, July 1988.
    """
    marked: Sides = ([], [])
    for number, passage in enumerate(passages, 1):
        marked[0].append(Stretch(passage.start_a, passage.start_a + passage.words, Mark.COPIED, number))
        marked[1].append(Stretch(passage.start_b, passage.start_b + passage.words, Mark.COPIED, number))
    for _, gap_a, gap_b in _edits(passages, len(a), len(b)):
        matcher = SequenceMatcher(None, a[gap_a.start : gap_a.stop], b[gap_b.start : gap_b.stop], autojunk=False)
        for tag, *bounds in matcher.get_opcodes():
            mark = Mark.UNCHANGED if tag == "equal" else Mark.CHANGED
            for side, gap, (first, end) in zip(marked, (gap_a, gap_b), (bounds[:2], bounds[2:]), strict=True):
                if first < end:
                    side.append(Stretch(gap.start + first, gap.start + end, mark))
    return with_folds(marked[0], len(a)), with_folds(marked[1], len(b))


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


def with_folds(marked: list[Stretch], words: int) -> list[Stretch]:
    """Sort the stretches and add folds between them; a story without marks gets no folds."""
    if not marked:
        return []
    folded: list[Stretch] = []
    previous_end = 0
    for stretch in [*sorted(marked, key=lambda stretch: stretch.first), Stretch(words, words, Mark.PLAIN)]:
        first, end = previous_end + CONTEXT_WORDS, stretch.first - CONTEXT_WORDS
        if end - first >= MIN_FOLDED_WORDS:
            folded.append(Stretch(first, end, Mark.FOLDED))
        if stretch.mark is not Mark.PLAIN:
            folded.append(stretch)
        previous_end = stretch.end
    return folded
