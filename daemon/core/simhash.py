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

from collections import Counter
from collections.abc import Sequence

import numpy as np
import xxhash

from daemon.records import Fingerprint

BYTES = 16
SCALE = 1024
OFFSETS = np.arange(BYTES) * 256
SIGNS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float64) * 2 - 1


def fingerprint(words: Sequence[bytes]) -> Fingerprint:
    """Normalised UTF-8 words -> the story's fingerprint.  Raises ValueError for no words."""
    if not words:
        raise ValueError("a story without words has no fingerprint")
    return Fingerprint(xxhash.xxh3_128_digest(b" ".join(words)), simhash(words), len(words))


def simhash(words: Sequence[bytes]) -> bytes:
    """Normalised UTF-8 words, in any order -> 16 bytes."""
    counts = Counter(words)
    digests = np.frombuffer(b"".join(map(xxhash.xxh3_128_digest, counts)), np.uint8).reshape(-1, BYTES)
    frequencies = np.fromiter(counts.values(), np.float64, len(counts))
    weights = np.rint(SCALE * (1 + np.log(frequencies)))
    histogram = np.bincount((digests + OFFSETS).ravel(), np.repeat(weights, BYTES), BYTES * 256)
    votes = histogram.reshape(BYTES, 256) @ SIGNS
    return np.packbits(votes > 0).tobytes()
