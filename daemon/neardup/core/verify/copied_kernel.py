"""What the blocks of an alignment copy, as compiled functions: words, without repetitions and common passages."""

import numpy as np
import numpy.typing as npt

from neardup.core.fingerprint import winnowing_kernel
from neardup.core.fingerprint.passage_hashes import GRAM, WINDOW, PassageHashes
from neardup.core.fingerprint.word_hashes import Hashes
from neardup.core.jit import compiled_where_possible
from neardup.core.verify.alignment_kernel import Blocks, Mask, Texts, grams_of, mixed

Spans = npt.NDArray[np.int32]  # (n, 2): words [start, end) of a text

places_of_samples = compiled_where_possible(winnowing_kernel.places_of_samples)


@compiled_where_possible
def count_copied(texts: Texts, runs: Blocks, common: PassageHashes) -> tuple[int, int, Spans, Spans]:
    """The runs of blocks in the order of a, one or more -> copied words, common words, spans of a, spans of b.

    These are as in `alignment.Copied`; the hashes of common passages ascend.
    """
    a, b = texts
    in_a, in_b = _spans_of_blocks(runs, 0), _spans_of_blocks(runs, 1)
    common_a, common_b = words_in_common(a, in_a, common), words_in_common(b, in_b, common)
    is_first = _first_occurrences(a, runs)
    nth, copied, commons = 0, 0, 0
    for run in runs:
        for offset in range(run[2]):
            at_a, at_b = run[0] + offset, run[1] + offset
            common_a[at_a] = common_b[at_b] = common_a[at_a] or common_b[at_b]
            commons += int(common_a[at_a])
            copied += int(is_first[nth] and not common_a[at_a])
            nth += 1
    return copied, commons, _without(in_a, common_a), _without(in_b, common_b)


@compiled_where_possible
def _spans_of_blocks(runs: Blocks, side: int) -> Spans:
    """The words of a text that each block reaches over, ascending."""
    spans, blocks = np.empty((len(runs), 2), np.int32), 0
    for n in range(len(runs)):
        if n == 0 or runs[n, 3] != runs[n - 1, 3]:
            spans[blocks, 0] = runs[n, side]
            blocks += 1
        spans[blocks - 1, 1] = runs[n, side] + runs[n, 2]
    return spans[:blocks][np.argsort(spans[:blocks, 0])]


@compiled_where_possible
def _first_occurrences(a: Hashes, runs: Blocks) -> Mask:
    """Which words of the runs stand in a gram of their block that did not occur before."""
    words, blocks, n = np.empty(runs[:, 2].sum(), np.uint64), np.empty(runs[:, 2].sum(), np.int32), 0
    for run in runs:
        words[n : n + run[2]], blocks[n : n + run[2]] = a[run[0] : run[0] + run[2]], run[3]
        n += run[2]
    grams, size = grams_of(words), 16
    while size < 2 * len(grams):
        size *= 2
    slots, mask = np.zeros(size, np.int32), np.uint64(size - 1)  # a hash table of places of grams, plus 1
    found = np.zeros(n, np.bool_)
    for place in range(len(grams)):
        if blocks[place] != blocks[place + GRAM - 1]:
            continue
        slot = np.int64(grams[place] & mask)
        while slots[slot] and grams[slots[slot] - 1] != grams[place]:
            slot = (slot + 1) & (size - 1)
        if not slots[slot]:
            slots[slot] = place + 1
            found[place : place + GRAM] = True
    return found


@compiled_where_possible
def _without(spans: Spans, mask: Mask) -> Spans:
    """The spans, ascending, without the words of the mask."""
    kept, n = np.empty((64, 2), np.int32), 0
    for span in spans:
        was_kept = False
        for place in range(span[0], span[1]):
            if not mask[place] and not was_kept:
                if n == len(kept):
                    kept = np.concatenate((kept, np.empty_like(kept)))
                kept[n, 0] = place
                n += 1
            was_kept = not mask[place]
            if was_kept:
                kept[n - 1, 1] = place + 1
    return kept[:n].copy()


@compiled_where_possible
def words_in_common(words: Hashes, spans: Spans, common: PassageHashes) -> Mask:
    """Which words (n,) of a text stand within the spans and in common passages, whose hashes ascend.

    Samples are some words apart, so a common passage reaches from one of its samples to the next, and from the first
    and the last sample of a span to the span's ends.
    """
    found = np.zeros(len(words), np.bool_)
    for span in spans:
        if span[1] - span[0] >= GRAM:
            _mark_common(grams_of(words[span[0] : span[1]]), common, found[span[0] : span[1]])
    return found


@compiled_where_possible
def _mark_common(grams: Hashes, common: PassageHashes, found: Mask) -> None:
    """Set what is common in the words of one span."""
    places = places_of_samples(grams, WINDOW)
    hashes = (mixed(grams[places]) >> np.uint64(32)).astype(np.uint32)
    first, last = -1, -1  # the places of the first and the last of a stretch of common samples
    for n in range(len(places)):
        nth = np.searchsorted(common, hashes[n])
        if nth < len(common) and common[nth] == hashes[n]:
            last = places[n]
            if first < 0:
                first = places[n] if n else 0
        elif first >= 0:
            found[first : last + GRAM] = True
            first = -1
    if first >= 0:
        found[first:] = True
