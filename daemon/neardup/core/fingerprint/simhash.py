"""The 128-bit SimHash of a story.

Charikar, "Similarity estimation techniques from rounding algorithms" (STOC 2002), in the form of
Manku, Jain and Das Sarma, "Detecting near-duplicates for web crawling" (WWW 2007).

Each distinct word votes on each of 128 bits with the bits of its xxh3-128 hash, weighted
1 + ln(term frequency).  With raw frequencies the function words of a language would decide all bits,
and all its stories would be alike.  Weights are multiples of 1/1024, so that sums are exact in any
order of the words and on any machine.

The sums are taken by byte value instead of by bit: a histogram of (byte position, byte value)
is multiplied by the +-1 patterns of the 256 byte values.
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
    """Term frequencies, at least 1 -> the weight of each word's vote in 1024ths, a whole number."""
    return np.asarray(np.rint(SCALE * (1 + np.log(frequencies))))
