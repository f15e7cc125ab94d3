"""The passage hashes of a story: sampled hashes of word 4-grams, by which a passage inside a longer work is found.

Winnowing: Schleimer, Wilkerson and Aiken, "Winnowing: local algorithms for document fingerprinting" (SIGMOD 2003).
Of every WINDOW adjacent grams the one with the least hash is sampled, of equal ones the last.  So two texts that share
a run of GRAM + WINDOW - 1 words share at least one sampled gram, and a text has about 78 samples per 1,000 words.

The hash of a sampled gram is mixed once more before it is cut to 32 bits, because a minimum is not evenly distributed.
"""

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from neardup.core.fingerprint.word_hashes import Hashes, mixed

GRAM = 4  # words
WINDOW = 24  # grams
MIN_SHARED = 2  # passage hashes that a candidate must have in common: one is often shared by chance

PassageHashes = npt.NDArray[np.uint32]
Places = npt.NDArray[np.intp]


def passage_hashes(words: Hashes) -> PassageHashes:
    """Word hashes (n,), in reading order -> the distinct passage hashes, ascending.  None for fewer than GRAM words."""
    return np.unique(sampled(words)[0])


def sampled(words: Hashes) -> tuple[PassageHashes, Places]:
    """Word hashes (n,), in reading order -> their passage hashes in that order, and the place of each one's first."""
    grams = grams_of(words)
    places = _winnowed(grams)
    return hashes_of(grams[places]), places


def grams_of(words: Hashes) -> Hashes:
    """(n,) word hashes -> (n - GRAM + 1,) the hash of the GRAM words that begin at each place."""
    pairs = mixed(mixed(words[:-1]) + words[1:])
    return mixed(mixed(pairs[:-2]) + pairs[2:])


def hashes_of(grams: Hashes) -> PassageHashes:
    """(n,) hashes of grams -> (n,) the passage hashes that they have where they are sampled."""
    return (mixed(grams) >> np.uint64(32)).astype(np.uint32)


def _winnowed(grams: Hashes) -> Places:
    """The ascending places of the sampled grams."""
    if not len(grams):
        return np.empty(0, np.intp)
    window = min(WINDOW, len(grams))
    last_first = sliding_window_view(grams[::-1], window)
    ends = np.arange(len(grams) - 1, window - 2, -1)
    return np.unique(ends - last_first.argmin(axis=1))
