"""Computes a story's fingerprint: text hash, SimHash, MinHash signature and passage hashes.

There are two implementations with identical results.  `fingerprint(tokens(text))` is the plain one, with
numpy.  `fingerprint_text` uses the compiled kernel, which releases the GIL, and falls back to the plain
implementation for the texts that the kernel does not support.
"""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import xxhash

from neardup.core.fingerprint.minhash import MIN_SHINGLES, shingles, signature
from neardup.core.fingerprint.passage_hashes import WINDOW, PassageHashes, passage_hashes
from neardup.core.fingerprint.permutations import ADDENDS, MULTIPLIERS
from neardup.core.fingerprint.simhash import simhash, weights
from neardup.core.fingerprint.word_hashes import hashed
from neardup.core.text.codepoints import compositions, flagged_table
from neardup.core.text.normalize import codes_of, tokens
from neardup.records import Fingerprint

Bytes = npt.NDArray[np.uint8]

PERMUTATIONS = (MULTIPLIERS, ADDENDS)
WEIGHTS = weights(np.maximum(np.arange(4096), 1)).astype(np.int64)  # by term frequency; 0 does not occur


def fingerprint_text(text: str) -> Fingerprint | None:
    """A story's text -> its fingerprint; None for a text without words.  Thread-safe."""
    kernel = compiled_kernel()
    if kernel is None:
        return _plain_fingerprint(text)
    words, shingle_count, normalised, simhash_bytes, minima, passages = kernel(
        codes_of(text), flagged_table(), compositions(), WEIGHTS, PERMUTATIONS, WINDOW
    )
    if words < 0:
        return _plain_fingerprint(text)
    if not words:
        return None
    return Fingerprint(
        text_hash=xxhash.xxh3_128_digest(normalised.data),
        simhash=simhash_bytes.tobytes(),
        signature=minima.tobytes() if shingle_count >= MIN_SHINGLES else None,
        words=words,
        shingles=shingle_count,
        passages=passages.tobytes(),
    )


@cache
def compiled_kernel() -> Callable[..., tuple[int, int, Bytes, Bytes, Bytes, PassageHashes]] | None:
    """The loaded kernel; None if the operating system forbids executable memory."""
    try:
        from neardup.core.fingerprint.kernel import fingerprint_story  # noqa: PLC0415 - loads numba, 115 MB
    except OSError:
        return None
    return fingerprint_story


def _plain_fingerprint(text: str) -> Fingerprint | None:
    words = tokens(text)
    return fingerprint(words) if words else None


def fingerprint(words: Sequence[bytes]) -> Fingerprint:
    """Normalised UTF-8 words -> the story's fingerprint.  Raises ValueError for no words."""
    if not words:
        raise ValueError("a story without words has no fingerprint")
    hashes = hashed(words)
    pairs = shingles(hashes)
    return Fingerprint(
        text_hash=text_hash(words),
        simhash=simhash(hashes),
        signature=signature(pairs),
        words=len(words),
        shingles=len(pairs),
        passages=passage_hashes(hashes.hashes).tobytes(),
    )


def text_hash(words: Sequence[bytes]) -> bytes:
    """The xxh3-128 of the normalised text: 16 bytes, equal for stories with the same words in the same order."""
    return xxhash.xxh3_128_digest(b" ".join(words))
