"""Computes a story's fingerprint: text hash, SimHash, MinHash signature and passage hashes.

`fingerprint(tokens(text))` is the reference.  The native core does the same for a text in UTF-8, in a tenth of the time
and without the GIL.  One text in two hundred has something that it cannot normalise (ß, two Arabic vowel signs on one
letter, an accent written as a combining mark): it is given the words of `tokens` then.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import xxhash

from neardup.core.fingerprint.minhash import shingles, signature
from neardup.core.fingerprint.skeleton import skeleton_hashes, skeleton_of
from neardup.core.fingerprint.word_hashes import Hashes, PassageHashes, Words, hash_words, passage_hashes, simhash
from neardup.core.native import in_c
from neardup.core.native.fingerprint import HashedText, fingerprint_of_utf8, hashed_text_of_utf8
from neardup.core.text.normalize import tokens
from neardup.records import Fingerprint

Made = TypeVar("Made")


def _native_fingerprint(text: str | bytes) -> Fingerprint | None:
    return _by_native_core(fingerprint_of_utf8, fingerprint_text.reference, text)


@in_c(_native_fingerprint)
def fingerprint_text(text: str | bytes) -> Fingerprint | None:
    """A story's text -> its fingerprint; None for a text without words.  Bytes are UTF-8.  Thread-safe."""
    words = tokens(text if isinstance(text, str) else text.decode())
    return fingerprint(words) if words else None


def _native_hashed_text(text: str | bytes) -> HashedText | None:
    return _by_native_core(hashed_text_of_utf8, hash_text.reference, text)


@in_c(_native_hashed_text)
def hash_text(text: str | bytes) -> HashedText | None:
    """A story's text -> what it is compared by; None for a text without words.  Bytes are UTF-8.  Thread-safe."""
    words = tokens(text if isinstance(text, str) else text.decode())
    return hash_text_of_words(words) if words else None


def _native_hashed_words(words: Sequence[bytes]) -> HashedText:
    made = hashed_text_of_utf8(b" ".join(words), is_normalised=True)
    return hash_text_of_words.reference(words) if isinstance(made, int) else made


@in_c(_native_hashed_words)
def hash_text_of_words(words: Sequence[bytes]) -> HashedText:
    """As `hash_text`, of normalised UTF-8 words, at least one."""
    normalised = b" ".join(words)
    return HashedText(normalised, hash_words(words).hashes, skeleton_hashes_of(normalised))


def skeleton_hashes_of(normalised: bytes) -> PassageHashes:
    """A normalised text in UTF-8 -> the hashes of its skeleton, ascending."""
    return np.unique(skeleton_hashes(skeleton_of(normalised).classes))


def _by_native_core(
    make: Callable[..., Made | int], reference: Callable[[str], Made | None], text: str | bytes
) -> Made | None:
    """What the native core makes of a text, which is normalised first, or left to the reference, if that must be."""
    try:
        made = make(text if isinstance(text, bytes) else text.encode())
    except UnicodeEncodeError:  # half a surrogate pair
        made = None
    if made is not None and not isinstance(made, int):
        return made
    decoded = text if isinstance(text, str) else text.decode()
    if made is not None and made < 0:
        made = make(b" ".join(tokens(decoded)), is_normalised=True)
    if made is None or isinstance(made, int):
        return None if made == 0 else reference(decoded)
    return made


def fingerprint(words: Sequence[bytes]) -> Fingerprint:
    """Normalised UTF-8 words -> the story's fingerprint.  Raises ValueError for no words."""
    if not words:
        raise ValueError("a story without words has no fingerprint")
    hashes = hash_words(words)
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
