"""Computes a story's fingerprint: text hash, SimHash, MinHash signature and passage hashes.

There are two implementations with identical results.  `fingerprint(tokens(text))` is the plain one, with
numpy.  `fingerprint_text` uses the compiled kernel, which releases the GIL.  It gives the kernel the words of `tokens`
for the texts that the kernel cannot normalise, and falls back to the plain implementation for the few others.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xxhash

from neardup.core.fingerprint.kernel import fingerprint_story, hash_words
from neardup.core.fingerprint.minhash import MIN_SHINGLES, shingles, signature
from neardup.core.fingerprint.passage_hashes import WINDOW, PassageHashes, passage_hashes
from neardup.core.fingerprint.permutations import ADDENDS, MULTIPLIERS
from neardup.core.fingerprint.simhash import simhash, weights
from neardup.core.fingerprint.skeleton import GRAM, skeleton_hashes, skeleton_of
from neardup.core.fingerprint.skeleton_kernel import with_skeleton
from neardup.core.fingerprint.word_hashes import Hashes, Words, hashed
from neardup.core.jit import can_compile
from neardup.core.text.consonants import consonants
from neardup.core.text.normalize import codes_of, tokens
from neardup.core.text.tables import tables, tables_of_normalised
from neardup.records import Fingerprint

PERMUTATIONS = (MULTIPLIERS, ADDENDS)
# By term frequency, up to that of the most frequent word of a long novel; 0 does not occur.
WEIGHTS = weights(np.maximum(np.arange(1 << 16), 1)).astype(np.int64)


def fingerprint_text(text: str) -> Fingerprint | None:
    """A story's text -> its fingerprint; None for a text without words.  Thread-safe."""
    if not can_compile():
        return _plain_fingerprint(text)
    words, shingle_count, normalised, simhash_bytes, minima, passages = _by_kernel(
        fingerprint_story, text, WEIGHTS, PERMUTATIONS, WINDOW
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
        passages=with_skeleton(passages, normalised, consonants(), GRAM).tobytes(),
    )


def hashed_text(text: str) -> tuple[bytes, Hashes] | None:
    """A story's text -> its normalised text in UTF-8, and (words,) the hash of each word; None without words.

    Takes a quarter of the time of `hashed(tokens(text))`.  Thread-safe.
    """
    if can_compile():
        words, normalised, hashes = _by_kernel(hash_words, text)
        if words >= 0:
            return (normalised.tobytes(), hashes) if words else None
    split = tokens(text)
    return (b" ".join(split), hashed(split).hashes) if split else None


def _by_kernel(kernel: Callable[..., Any], text: str, *constants: object) -> Any:
    """What a kernel returns for a text, which is normalised first if the kernel cannot do it."""
    made = kernel(codes_of(text), tables(), *constants)
    if made[0] < 0:
        normalised = b" ".join(tokens(text)).decode()
        made = kernel(codes_of(normalised), tables_of_normalised(), *constants)
    return made


def skeleton_hashes_of(normalised: bytes) -> PassageHashes:
    """A normalised text in UTF-8 -> the hashes of its skeleton, ascending.  Thread-safe."""
    if not can_compile():
        return np.unique(skeleton_hashes(skeleton_of(normalised).classes))
    text = np.frombuffer(bytearray(normalised), np.uint8)  # the kernel is compiled for arrays that can be written
    return with_skeleton(np.empty(0, np.uint32), text, consonants(), GRAM)


def _plain_fingerprint(text: str) -> Fingerprint | None:
    words = tokens(text)
    return fingerprint(words) if words else None


def fingerprint(words: Sequence[bytes]) -> Fingerprint:
    """Normalised UTF-8 words -> the story's fingerprint.  Raises ValueError for no words."""
    if not words:
        raise ValueError("a story without words has no fingerprint")
    hashes = hashed(words)
    normalised = b" ".join(words)
    skeleton = skeleton_hashes(skeleton_of(normalised).classes)
    return fingerprint_of(normalised, hashes, shingles(hashes.hashes), skeleton)


def fingerprint_of(normalised: bytes, hashes: Words, pairs: Hashes, skeleton: PassageHashes) -> Fingerprint:
    """As `fingerprint`, of a normalised text whose word hashes, shingles and skeleton hashes are known."""
    return Fingerprint(
        text_hash=text_hash(normalised),
        simhash=simhash(hashes),
        signature=signature(pairs),
        words=len(hashes.hashes),
        shingles=len(pairs),
        passages=np.union1d(passage_hashes(hashes.hashes), skeleton).tobytes(),
    )


def text_hash(normalised: bytes) -> bytes:
    """The xxh3-128 of the normalised text: 16 bytes, equal for stories with the same words in the same order."""
    return xxhash.xxh3_128_digest(normalised)
