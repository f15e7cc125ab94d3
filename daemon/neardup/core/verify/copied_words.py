"""What the blocks of an alignment copy: words, without repetitions and without common passages."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from neardup.core.fingerprint.passage_hashes import GRAM, PassageHashes, sampled
from neardup.core.fingerprint.word_hashes import Hashes
from neardup.core.verify.sets import among_ascending
from neardup.records import NO_SPANS, Spans

Blocks = npt.NDArray[np.int32]  # (n, 4): place in a, place in b, number of words and number of the block of each run
Mask = npt.NDArray[np.bool_]  # (words,)


def count_copied(a: Hashes, b: Hashes, runs: Blocks, common: PassageHashes) -> tuple[int, int, Spans, Spans]:
    """The runs of blocks in the order of a, one or more -> copied words, common words, spans of a, spans of b.

    These are as in `Copied`; the hashes of common passages ascend.
    """
    at_a, at_b, blocks = each_word(runs)
    in_a, in_b = _spans_of_blocks(runs, 0), _spans_of_blocks(runs, 1)
    common_a, common_b = _common_in(a, in_a, common), _common_in(b, in_b, common)
    is_common = common_a[at_a] | common_b[at_b]
    common_a[at_a] = common_b[at_b] = is_common
    copied = np.count_nonzero(_first_occurrences(a[at_a], blocks) & ~is_common)
    return int(copied), int(np.count_nonzero(is_common)), _without(in_a, common_a), _without(in_b, common_b)


def each_word(runs: Blocks) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The place in a, the place in b and the block of each equal word, in the order of the runs."""
    words = runs[:, 2]
    nth = np.arange(words.sum()) - np.repeat(np.cumsum(words) - words, words)
    return np.repeat(runs[:, 0], words) + nth, np.repeat(runs[:, 1], words) + nth, np.repeat(runs[:, 3], words)


def packed_grams(words: Hashes) -> Iterator[bytes]:
    """(n,) word hashes -> the GRAM words that begin at each place, as bytes."""
    packed, size = words.tobytes(), words.itemsize
    return (packed[at : at + GRAM * size] for at in range(0, len(packed) - (GRAM - 1) * size, size))


def words_in_common(words: Hashes, common: PassageHashes) -> Mask:
    """Which words (n,) of a text stand in common passages, whose hashes ascend.

    Samples are some words apart, so a common passage reaches from one of its samples to the next, and from the first
    and the last sample of the text to the text's ends.
    """
    found = np.zeros(len(words), bool)
    if len(words) < GRAM:
        return found
    hashes, places = sampled(words)
    stretches = np.flatnonzero(np.diff(among_ascending(hashes, common), prepend=False, append=False))
    for first, end in stretches.reshape(-1, 2).tolist():
        start = places[first] if first else 0
        found[start : places[end - 1] + GRAM if end < len(places) else len(words)] = True
    return found


def _common_in(words: Hashes, spans: Spans, common: PassageHashes) -> Mask:
    """Which words (n,) of a text stand within the spans, each as if it were a text, and in common passages."""
    found = np.zeros(len(words), bool)
    for start, end in spans.tolist():
        found[start:end] = words_in_common(words[start:end], common)
    return found


def _spans_of_blocks(runs: Blocks, side: int) -> Spans:
    """The words of a text that each block reaches over, ascending."""
    first = np.flatnonzero(np.diff(runs[:, 3], prepend=-1))
    last = np.append(first[1:], len(runs)) - 1
    spans = np.stack((runs[first, side], runs[last, side] + runs[last, 2]), axis=1)
    return spans[np.argsort(spans[:, 0])]


def _first_occurrences(words: Hashes, blocks: npt.NDArray[np.intp]) -> Mask:
    """Which of the equal words, of these blocks, stand in a gram of their block that did not occur before."""
    found, before = np.zeros(len(words), bool), set[bytes]()
    in_one_block = blocks[GRAM - 1 :] == blocks[: 1 - GRAM]
    for place, gram in enumerate(packed_grams(words)):
        if in_one_block[place] and gram not in before:
            before.add(gram)
            found[place : place + GRAM] = True
    return found


def _without(spans: Spans, mask: Mask) -> Spans:
    """The spans, ascending, without the words of the mask."""
    kept = [NO_SPANS]
    for start, end in spans.tolist():
        edges = np.flatnonzero(np.diff(mask[start:end], prepend=True, append=True))
        kept.append((start + edges.reshape(-1, 2)).astype(np.int32))
    return np.concatenate(kept)
