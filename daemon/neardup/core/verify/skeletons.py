"""What two texts share when their consonant skeletons are compared, which other scripts and other spaces do not change.

Both measures work on runs of consonants, not on words, because a copy may divide its words differently.
"""

from collections.abc import Sequence

import numpy as np

from neardup.core.fingerprint.skeleton import ALIGNED_GRAM, Skeleton, make_skeleton
from neardup.core.native import comparison as native
from neardup.core.native import in_c
from neardup.core.sets import Numbers, Pairs, count_uncommon_of_pairs, find_distinct
from neardup.core.text.consonants import CLASS_BITS
from neardup.core.verify.alignment import (
    NO_HASHES,
    Mask,
    PairedSpans,
    align,
    cut_out_common,
    expand_runs,
    find_copied,
    pair_places,
)
from neardup.records import NO_SPANS, Copied, Signals, Spans

GRAM = 8  # consonants, about 3 words: stories in other languages share .15 of them at most
LONG_SPAN = 20  # words: unrelated texts have hardly one aligned span of so many
MIN_SHARED = 50  # grams, of about 20 words; less is a name, a title or a formula

Grams = Numbers


def measure_overlaps(grams: Sequence[Grams], pairs: Pairs, bits: Sequence[int]) -> list[Signals]:
    """The distinct grams of skeletons -> Jaccard similarity and containment of each pair (m,); 0 below MIN_SHARED.

    `bits` has the bits in which the SimHashes of each pair differ.
    """
    counts = count_uncommon_of_pairs(grams, pairs, NO_HASHES).tolist()
    sizes = np.array([len(grams_of_text) for grams_of_text in grams], np.int64)[pairs[:, :2]].tolist()
    return [
        measure_overlap(a, b, shared if shared >= MIN_SHARED else 0, differing)
        for (a, b), shared, differing in zip(sizes, counts, bits, strict=True)
    ]


def measure_overlap(size_a: int, size_b: int, shared: int, bits: int) -> Signals:
    """The signals of two sets of these sizes that share so many members."""
    jaccard = shared / max(size_a + size_b - shared, 1)
    return Signals(bits, jaccard=jaccard, containment_a=shared / max(size_a, 1), containment_b=shared / max(size_b, 1))


def list_grams(normalised: bytes) -> Grams:
    """A normalised text in UTF-8 -> the distinct grams of its skeleton, ascending."""
    return find_distinct(pack_grams(normalised, GRAM))


@in_c(native.pack_skeleton_grams)
def pack_grams(normalised: bytes, size: int) -> Grams:
    """A normalised text in UTF-8 -> the grams of `size` classes, 10 at most, at each place of its skeleton."""
    classes = make_skeleton(normalised).classes
    count = max(len(classes) - size + 1, 0)
    packed = np.zeros(count, np.uint32)
    for offset in range(size):
        packed = packed << np.uint32(CLASS_BITS) | classes[offset : offset + count]
    return packed


def list_own_grams(normalised: bytes, is_common: Mask) -> Grams:
    """A normalised text in UTF-8 -> the distinct grams that have no consonant of a common word, ascending."""
    grams, places = pack_grams(normalised, GRAM), make_skeleton(normalised).words
    before = np.cumsum(np.append(False, is_common[places]))
    return find_distinct(grams[before[GRAM:] == before[:-GRAM]]) if len(grams) else grams


def find_copied_words(a: Skeleton, b: Skeleton) -> Copied:
    """What `find_copied` finds in the skeletons, as words of either text; `words` counts those of the lesser."""
    found = find_copied(a.aligned_grams, b.aligned_grams)
    return _make_copied(_convert_to_words(found.spans_a, a), _convert_to_words(found.spans_b, b))


def remove_common(a: Skeleton, b: Skeleton, found: Copied, common: tuple[Mask, Mask]) -> Copied:
    """What `find_copied_words(a, b)` found without the words of either text that stand in common passages.

    A span whose counterpart is in a common passage goes as well.
    """
    spans_a, spans_b = (
        cut_out_common(*side, ~side[1]) for side in zip((found.spans_a, found.spans_b), common, strict=True)
    )
    pairs = pair_spans(a, b, spans_a, spans_b)
    return _make_copied(spans_a[np.isin(spans_a[:, 0], pairs[:, 0])], spans_b[np.isin(spans_b[:, 0], pairs[:, 2])])


def _make_copied(spans_a: Spans, spans_b: Spans) -> Copied:
    return Copied(min(int(np.diff(spans).sum()) for spans in (spans_a, spans_b)), 0, spans_a, spans_b, None)


def count_words_in_long_spans(spans: Spans, left_out: Mask | None = None) -> int:
    """How many words, apart from some, the (n, 2) spans of a text have that are LONG_SPAN words or more."""
    long = spans[np.diff(spans, axis=1)[:, 0] >= LONG_SPAN]
    words = int(np.diff(long).sum())
    return words if left_out is None else words - sum(int(left_out[start:end].sum()) for start, end in long.tolist())


def pair_spans(a: Skeleton, b: Skeleton, spans_a: Spans, spans_b: Spans) -> PairedSpans:
    """The spans that `find_copied_words(a, b)` found -> which of them are copies of each other, in the order of a."""
    runs = align(a.aligned_grams, b.aligned_grams)
    at_a, at_b, _ = expand_runs(runs)
    return pair_places(a.words[at_a].astype(np.intp), b.words[at_b].astype(np.intp), spans_a, spans_b)


def _convert_to_words(spans: Spans, skeleton: Skeleton) -> Spans:
    """Spans of grams -> the words that they touch, ascending and disjoint."""
    if not len(spans):
        return NO_SPANS
    first, last = skeleton.words[spans[:, 0]], skeleton.words[spans[:, 1] - 1 + ALIGNED_GRAM - 1]
    apart = first[1:] > last[:-1]
    starts, ends = first[np.append(True, apart)], last[np.append(apart, True)] + 1
    return np.stack((starts, ends), axis=1).astype(np.int32)
