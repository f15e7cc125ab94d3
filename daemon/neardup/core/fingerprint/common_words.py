"""Which words are rare: those that are not among the common words of a language, which `common_words.npy` holds.

These are the words of each of ten languages that stand in the most documents, as many as make three quarters of its
words, but at most 6,000.  The file is a Bloom filter with one hash (Bloom, CACM 1970) and no part of a ledger, so which
words of a story are rare depends on its text alone, and never on the stories that came before it.  One word in 22 is
taken to be common by chance.  `tests.bench.common_words` makes the file.
"""

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.core.fingerprint.word_hashes import Hashes, Places

FILE = Path(__file__).with_name("common_words.npy")
CHUNK = 64  # bits, 2^6
LEAST_COMMON = 22  # percent of the words, of which no language has few; of the distinct ones a long work has few

Filter = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]


@cache
def load_common_words() -> Filter:
    """The filter: a power of two of bits, CHUNK in a number, the first of them in its lowest place."""
    loaded: Filter = np.load(FILE)
    return loaded


def filter_bits(words: Filter) -> int:
    """The binary logarithm of the number of bits of a filter."""
    return (len(words) * CHUNK).bit_length() - 1


def find_places(words: Hashes, bits: int) -> Hashes:
    """Word hashes (n,) -> the place of each in a filter of 2^bits bits: the top bits of its hash."""
    return words >> np.uint64(64 - bits)


def are_rare(words: Hashes) -> Mask:
    """Which words (n,) are rare, by their hashes."""
    places = find_places(words, filter_bits(load_common_words()))
    chunks = load_common_words().take((places >> np.uint64(6)).astype(np.intp))
    return np.asarray(chunks >> (places & np.uint64(CHUNK - 1)) & np.uint64(1) == 0)


def find_rare(words: Hashes) -> Mask:
    """Which words (n,) of a text are rare; none if too few are common, as where no list has those of its language."""
    rare = are_rare(words)
    is_listed = (len(words) - np.count_nonzero(rare)) * 100 >= len(words) * LEAST_COMMON
    return rare if is_listed else np.zeros(len(words), np.bool_)


class RareWords(NamedTuple):
    """The distinct rare words of a text: their hashes (n,), ascending, and the first place (n,) of each."""

    hashes: Hashes
    places: Places


def list_rare_words(words: Hashes, rare: Mask) -> RareWords:
    """Word hashes (n,), in reading order, and which of them are rare (n,) -> the distinct ones."""
    places = np.flatnonzero(rare)
    hashes, first = np.unique(words[places], return_index=True)
    return RareWords(hashes, places[first])
