"""The 128-bit SimHash of a story.

Charikar, "Similarity estimation techniques from rounding algorithms" (STOC 2002); in the form of
Manku, Jain and Das Sarma, "Detecting near-duplicates for web crawling" (WWW 2007).

Each distinct word votes on each of 128 bits with the bits of its xxh3-128 hash, weighted
1 + ln(term frequency): with the raw frequency the function words of a language decide all bits, and
its stories come out alike.  Weights are whole 1024ths, so that the sums are exact whatever the
order of the words, and two machines agree.

The sums are taken by byte value instead of by bit: a histogram of (byte position, byte value)
times the +-1 patterns of the 256 byte values.
"""

import numpy as np
import numpy.typing as npt

from neardup.core.fingerprint.word_hashes import DIGEST_BYTES as BYTES
from neardup.core.fingerprint.word_hashes import Words

SCALE = 1024
OFFSETS = np.arange(BYTES) * 256
SIGNS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float64) * 2 - 1


def simhash(words: Words) -> bytes:
    """A story's words, in any order -> 16 bytes."""
    frequencies = np.bincount(words.order)
    histogram = np.bincount((words.digests + OFFSETS).ravel(), np.repeat(weights(frequencies), BYTES), BYTES * 256)
    votes = histogram.reshape(BYTES, 256) @ SIGNS
    return np.packbits(votes > 0).tobytes()


def weights(frequencies: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
    """How often words stand in a story, at least once -> the weight of each one's vote, a whole number."""
    return np.asarray(np.rint(SCALE * (1 + np.log(frequencies))))
