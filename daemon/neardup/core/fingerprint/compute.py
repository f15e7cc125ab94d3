"""A story's fingerprint: what is kept of its text to find it again.

There are two roads to it.  `fingerprint(tokens(text))` is the algorithm read plainly, with numpy;
`fingerprint_text` gives the same, bit for bit, by a compiled function that holds no GIL.
"""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import xxhash

from neardup.core.fingerprint.minhash import MIN_SHINGLES, shingles, signature
from neardup.core.fingerprint.permutations import ADDENDS, MULTIPLIERS
from neardup.core.fingerprint.simhash import simhash, weights
from neardup.core.fingerprint.word_hashes import hashed
from neardup.core.text.codepoints import entries, joining
from neardup.core.text.normalize import codes_of, tokens
from neardup.records import Fingerprint

Bytes = npt.NDArray[np.uint8]

PERMUTATIONS = (MULTIPLIERS, ADDENDS)
WEIGHTS = weights(np.maximum(np.arange(4096), 1)).astype(np.int64)  # of words told 0 (none is), 1, 2, ... times


def fingerprint_text(text: str) -> Fingerprint | None:
    """A story's text -> its fingerprint; None where it has no word.  May be called from several threads."""
    read = compiled_kernel()
    if read is None:
        return _read_plainly(text)
    words, pairs, normalised, votes, minima = read(codes_of(text), entries(), joining(), WEIGHTS, PERMUTATIONS)
    if words < 0:
        return _read_plainly(text)
    if not words:
        return None
    return Fingerprint(
        text_hash=xxhash.xxh3_128_digest(normalised.data),
        simhash=votes.tobytes(),
        signature=minima.tobytes() if pairs >= MIN_SHINGLES else None,
        words=words,
        shingles=pairs,
    )


@cache
def compiled_kernel() -> Callable[..., tuple[int, int, Bytes, Bytes, Bytes]] | None:
    """The compiled function, loaded; None where the system forbids a process to make memory executable."""
    try:
        from neardup.core.fingerprint.kernel import read_story  # noqa: PLC0415 - 115 MB, for whoever fingerprints
    except OSError:
        return None
    return read_story


def _read_plainly(text: str) -> Fingerprint | None:
    words = tokens(text)
    return fingerprint(words) if words else None


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
