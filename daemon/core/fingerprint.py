"""A story's fingerprint: what is kept of its text to find it again."""

from collections.abc import Sequence

import xxhash

from daemon.core.minhash import shingles, signature
from daemon.core.simhash import simhash
from daemon.core.words import hashed
from daemon.records import Fingerprint


def fingerprint(words: Sequence[bytes]) -> Fingerprint:
    """Normalised UTF-8 words -> the story's fingerprint.  Raises ValueError for no words."""
    if not words:
        raise ValueError("a story without words has no fingerprint")
    numbers = hashed(words)
    pairs = shingles(numbers)
    return Fingerprint(
        text_hash=text_hash(words),
        simhash=simhash(numbers),
        signature=signature(pairs),
        words=len(words),
        shingles=len(pairs),
    )


def text_hash(words: Sequence[bytes]) -> bytes:
    """The xxh3-128 of the normalised text: 16 bytes, equal for stories of the same words in the same order."""
    return xxhash.xxh3_128_digest(b" ".join(words))
