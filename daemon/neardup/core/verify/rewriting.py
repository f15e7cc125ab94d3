"""Whether one story is another one rewritten: their rare words, and how many stand in the same order in both.

Each rare word counts once, where it stands first.  So two texts are two sequences without repetitions, whose longest
common subsequence is the longest increasing subsequence of the places that the shared words have in the other text
(Hunt and Szymanski, CACM 1977), which patience sorting finds (Fredman, Discrete Mathematics 1975).  Words that are put
between, left out or moved by a few places hardly change it.  Unrelated stories share few rare words, in any order.

A block is a part of the subsequence whose words stand close together in both texts.  What stands outside of all blocks
does not count.  The words that a block reaches over are a span of either text.

What is in the same order is a share of the rare words that both could have: of those in Latin letters and of the others
apart, the geometric mean of how many each text has.  So a text of which half is written in Latin letters is compared by
the other half, and elsewhere the share is hardly another one.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from neardup.core.fingerprint.common_words import Mask, RareWords, are_rare, list_rare_words
from neardup.core.fingerprint.word_hashes import Hashes, PassageHashes, Places
from neardup.core.sets import count_shared, find_distinct
from neardup.core.verify.alignment import are_own
from neardup.core.verify.text import Text
from neardup.records import NO_SPANS, Spans

MAX_GAP = 50  # words between two of a block, on each side
MIN_BLOCK = 3  # words of the subsequence
NO_PLACES: Places = np.empty(0, np.intp)


class Rewriting(Struct, frozen=True):
    """The rare words in the same order in two stories: how many, and what share they are; the spans of the blocks.

    `share` is a part of the rare words that both could have.  The nth span of a and the nth span of b are the same
    block, and both ascend.
    """

    rare_words: int
    share: float
    spans_a: Spans
    spans_b: Spans


def compare_rare_words(a: Text, b: Text, common: PassageHashes, least: float) -> Rewriting | None:
    """The rare words in the same order in two texts, apart from common passages; None if they are far too few.

    `common` are the hashes of the common passages that both hold, ascending; a share of less than `least` is too few.
    """
    if b.text_hash < a.text_hash:  # so that of several longest subsequences, (a, b) and (b, a) find the same one
        found = compare_rare_words(b, a, common, least)
        return found and Rewriting(found.rare_words, found.share, found.spans_b, found.spans_a)
    rare, hashes, common_places = [a.rare, b.rare], [a.rare_hashes, b.rare_hashes], [NO_PLACES, NO_PLACES]
    if len(common):
        owns = [are_own(text.word_hashes, common) for text in (a, b)]
        rare = [text.rare & own for text, own in zip((a, b), owns, strict=True)]
        hashes = [find_distinct(text.word_hashes[own]) for text, own in zip((a, b), rare, strict=True)]
        common_places = [np.flatnonzero(~own) for own in owns]
    counts_a, counts_b = map(count_by_script, (a, b), rare, hashes)
    most = float(np.sqrt(counts_a * counts_b).sum())
    if count_shared(*hashes) < least * most:
        return None
    in_a, in_b = list_rare_words(a.word_hashes, rare[0]), list_rare_words(b.word_hashes, rare[1])
    return _compare(in_a, in_b, common_places, most)


def count_by_script(text: Text, rare: Mask, hashes: Hashes) -> npt.NDArray[np.int64]:
    """(2,) how many of some rare words begin with a Latin letter or a digit, and how many do not.

    They are given as which words of the text they are, and as their distinct hashes.
    """
    ascii_words = len(find_distinct(text.word_hashes[rare & text.is_ascii]))
    return np.array([ascii_words, len(hashes) - ascii_words])


def _compare(a: RareWords, b: RareWords, common_places: Sequence[Places], most: float) -> Rewriting:
    """As `compare_rare_words`.

    `common_places` are the places of common passages in either text, over which no block goes; `most` is how many rare
    words both could have.
    """
    both = find_common_order(a, b)
    if not len(both[0]):
        return Rewriting(0, 0.0, NO_SPANS, NO_SPANS)
    is_near = np.ones(len(both[0]) - 1, np.bool_)
    for at, common in zip(both, common_places, strict=True):
        is_near &= (np.diff(at) <= MAX_GAP + 1) & (np.diff(np.searchsorted(common, at)) == 0)
    starts = np.flatnonzero(np.append(True, ~is_near))
    ends = np.append(starts[1:], len(both[0]))
    is_block = ends - starts >= MIN_BLOCK
    count = int((ends - starts)[is_block].sum())
    spans = (np.stack((at[starts], at[ends - 1] + 1), axis=1)[is_block].astype(np.int32) for at in both)
    return Rewriting(count, count / most, next(spans), next(spans))


def find_common_order(a: RareWords, b: RareWords) -> tuple[Places, Places]:
    """The places in a and in b of a longest common subsequence of their rare words, both ascending."""
    _, in_a, in_b = np.intersect1d(a.hashes, b.hashes, assume_unique=True, return_indices=True)
    by_place = np.argsort(a.places[in_a])
    at_a, at_b = a.places[in_a][by_place], b.places[in_b][by_place]
    kept = find_longest_increasing(at_b.tolist())
    return at_a[kept], at_b[kept]


def find_longest_increasing(numbers: Sequence[int]) -> list[int]:
    """The positions of a longest increasing subsequence of distinct numbers."""
    # The least last number of a subsequence of each length, and its position; of each position, the one before it.
    least, ends, before = list[int](), list[int](), list[int]()
    for position, number in enumerate(numbers):
        length = bisect_left(least, number)
        before.append(ends[length - 1] if length else -1)
        least[length : length + 1] = [number]
        ends[length : length + 1] = [position]
    found, at = list[int](), ends[-1] if ends else -1
    while at >= 0:
        found.append(at)
        at = before[at]
    return found[::-1]


def list_equal_words(a: Text, b: Text, spans_a: Spans, spans_b: Spans) -> tuple[Places, Places]:
    """The place in a and the place in b of each equal word of the blocks, in order.

    They are the rare words that stand in the same order in a block, and those that are equal between two of these.
    """
    if b.text_hash < a.text_hash:
        at_b, at_a = list_equal_words(b, a, spans_b, spans_a)
        return at_a, at_b
    pairs = list[tuple[int, int]]()
    for (start_a, end_a), (start_b, end_b) in zip(spans_a.tolist(), spans_b.tolist(), strict=True):
        in_a, in_b = a.word_hashes[start_a:end_a], b.word_hashes[start_b:end_b]
        pairs += ((start_a + at_a, start_b + at_b) for at_a, at_b in _list_equal_in_block(in_a, in_b))
    places = np.array(pairs, np.intp).reshape(-1, 2)
    return places[:, 0], places[:, 1]


def _list_equal_in_block(a: Hashes, b: Hashes) -> Iterator[tuple[int, int]]:
    at_a, at_b = find_common_order(*(list_rare_words(words, are_rare(words)) for words in (a, b)))
    done_a = done_b = 0
    for next_a, next_b in zip([*at_a.tolist(), len(a)], [*at_b.tolist(), len(b)], strict=True):
        between = SequenceMatcher(None, a[done_a:next_a].tolist(), b[done_b:next_b].tolist(), autojunk=False)
        for run in between.get_matching_blocks():
            yield from ((done_a + run.a + n, done_b + run.b + n) for n in range(run.size))
        if next_a < len(a):
            yield next_a, next_b
        done_a, done_b = next_a + 1, next_b + 1
