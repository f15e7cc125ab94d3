"""Two stories word by word: the passages that they share, what was edited between them, and what is other text."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

from neardup.core.verify.passages import Passage

MAX_EDIT_WORDS = 60  # words between two passages, on either side: more is no edit but other text
CONTEXT_WORDS = 20  # shown of other text beside what is marked, and where a story begins and ends
MIN_FOLDED_WORDS = 25  # fewer words take no less room when they are folded


class Mark(StrEnum):
    """What a stretch of a story is."""

    PLAIN = "plain"
    COPIED = "copied"  # a passage, which stands in both
    UNCHANGED = "unchanged"  # words of an edit that stand in both, fewer than a passage has
    CHANGED = "changed"  # words of an edit that stand on one side only
    FOLDED = "folded"  # other text, too long to be shown at once
    ELIDED = "elided"  # the middle of a passage, where it is shown in short


@dataclass(frozen=True, slots=True)
class Stretch:
    """Words [first, end) of a story; `passage` is the number of the passage that they are."""

    first: int
    end: int
    mark: Mark
    passage: int | None = None


Sides = tuple[list[Stretch], list[Stretch]]


def stretches(passages: Sequence[Passage], a: Sequence[bytes], b: Sequence[bytes]) -> Sides:
    """Passages in A's order, numbered from 1 -> what is to be marked or folded in A and in B, in reading order.

    What no stretch holds is plain text.  An edit is what stands between passages that follow each other
    in both stories (or before the first, or after the last, of both), where the passages beside it are
    longer; its words are compared as in Ratcliff and Metzener, "Pattern Matching", Dr. Dobb's Journal, July 1988.
    """
    marked: Sides = ([], [])
    for number, one in enumerate(passages, 1):
        marked[0].append(Stretch(one.start_a, one.start_a + one.words, Mark.COPIED, number))
        marked[1].append(Stretch(one.start_b, one.start_b + one.words, Mark.COPIED, number))
    for _, gap_a, gap_b in _edits(passages, len(a), len(b)):
        compared = SequenceMatcher(None, a[gap_a.start : gap_a.stop], b[gap_b.start : gap_b.stop], autojunk=False)
        for tag, *places in compared.get_opcodes():
            mark = Mark.UNCHANGED if tag == "equal" else Mark.CHANGED
            for side, gap, (first, end) in zip(marked, (gap_a, gap_b), (places[:2], places[2:]), strict=True):
                if first < end:
                    side.append(Stretch(gap.start + first, gap.start + end, mark))
    return _folded(marked[0], len(a)), _folded(marked[1], len(b))


def chains(passages: Sequence[Passage], words_a: int, words_b: int) -> list[list[Passage]]:
    """Passages in A's order, those together that nothing but an edit parts."""
    joined = {n for n, _, _ in _edits(passages, words_a, words_b)}
    out: list[list[Passage]] = []
    for n, one in enumerate(passages):
        if n and n in joined:
            out[-1].append(one)
        else:
            out.append([one])
    return out


def _edits(passages: Sequence[Passage], words_a: int, words_b: int) -> Iterator[tuple[int, range, range]]:
    """The words before passage n (from 0), on either side, that are few enough to be an edit."""
    if not passages:
        return
    whole = [Passage(0, 0, 0), *passages, Passage(words_a, words_b, 0)]
    in_b = sorted(range(len(whole)), key=lambda n: (whole[n].start_b, n))
    follows = dict(itertools.pairwise(in_b))
    for n in range(len(whole) - 1):
        if follows.get(n) != n + 1:
            continue
        before, after = whole[n], whole[n + 1]
        gaps = (
            range(before.start_a + before.words, after.start_a),
            range(before.start_b + before.words, after.start_b),
        )
        if max(map(len, gaps)) <= min(MAX_EDIT_WORDS, before.words + after.words):
            yield n, *gaps


def _folded(marked: list[Stretch], words: int) -> list[Stretch]:
    """In reading order, with the folds of what lies between; a story of which nothing is marked is left open."""
    if not marked:
        return []
    out: list[Stretch] = []
    at = 0
    for one in [*sorted(marked, key=lambda one: one.first), Stretch(words, words, Mark.PLAIN)]:
        first, end = at + CONTEXT_WORDS, one.first - CONTEXT_WORDS
        if end - first >= MIN_FOLDED_WORDS:
            out.append(Stretch(first, end, Mark.FOLDED))
        if one.mark is not Mark.PLAIN:
            out.append(one)
        at = one.end
    return out
