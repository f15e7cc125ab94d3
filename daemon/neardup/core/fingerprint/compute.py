"""Computes a story's fingerprint: text hash, SimHash, MinHash signature and passage hashes.

`fingerprint(tokens(text))` is the reference.  The native core does the same for a text in UTF-8, in a tenth of the time
and without the GIL.  One text in two hundred has something that it cannot normalise (ß, two Arabic vowel signs on one
letter, an accent written as a combining mark): it is given the words of `tokenize` then.
"""

from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

import numpy as np
import xxhash

from neardup.core.fingerprint.minhash import compute_signature, hash_shingles
from neardup.core.fingerprint.rare_pairs import hash_rare_pairs
from neardup.core.fingerprint.skeleton import hash_skeleton, make_skeleton
from neardup.core.fingerprint.word_hashes import PassageHashes, compute_simhash, hash_passages, hash_words
from neardup.core.native import in_c
from neardup.core.native.fingerprint import HashedText, fingerprint_utf8, hash_utf8
from neardup.core.sets import find_distinct
from neardup.core.text.normalize import tokenize
from neardup.records import Fingerprint

Made = TypeVar("Made")
NO_WORDS = HashedText(b"", np.empty(0, np.uint64), np.empty(0, np.uint32))


def _fingerprint_natively(text: str | bytes, *, is_normalised: bool = False) -> Fingerprint | None:
    made = _call_native_core(fingerprint_utf8, text, is_normalised)
    if made is None:
        return fingerprint_text.reference(text, is_normalised=is_normalised)
    return made or None


@in_c(_fingerprint_natively)
def fingerprint_text(text: str | bytes, *, is_normalised: bool = False) -> Fingerprint | None:
    """A story's text -> its fingerprint; None for a text without words.  Bytes are UTF-8.  Thread-safe.

    A text that `is_normalised` is words in normal form, with a space between them.
    """
    words = _list_words(text, is_normalised)
    return fingerprint(words) if words else None


def _hash_natively(text: str | bytes, *, is_normalised: bool = False) -> HashedText:
    made = _call_native_core(hash_utf8, text, is_normalised)
    if made is None:
        return hash_text.reference(text, is_normalised=is_normalised)
    return made or NO_WORDS


@in_c(_hash_natively)
def hash_text(text: str | bytes, *, is_normalised: bool = False) -> HashedText:
    """A story's text -> what it is compared by.  Bytes are UTF-8.  Thread-safe.  Otherwise as `fingerprint_text`."""
    words = _list_words(text, is_normalised)
    normalised = b" ".join(words)
    return HashedText(normalised, hash_words(words).hashes, hash_skeleton_of_text(normalised)) if words else NO_WORDS


def _list_words(text: str | bytes, is_normalised: bool) -> list[bytes]:
    if is_normalised:
        return (text.encode() if isinstance(text, str) else text).split()
    return tokenize(text if isinstance(text, str) else text.decode())


def hash_skeleton_of_text(normalised: bytes) -> PassageHashes:
    """A normalised text in UTF-8 -> the hashes of its skeleton, ascending."""
    return find_distinct(hash_skeleton(make_skeleton(normalised).classes))


def _call_native_core(
    make: Callable[..., Made | int], text: str | bytes, is_normalised: bool
) -> Made | Literal[0] | None:
    """What the native core makes of a text, which is normalised first if that must be.

    0 for a text without words, None for one that is left to the reference.
    """
    try:
        made = make(text if isinstance(text, bytes) else text.encode(), is_normalised=is_normalised)
    except UnicodeEncodeError:  # half a surrogate pair
        return None
    if isinstance(made, int) and made < 0 and not is_normalised:
        made = make(b" ".join(_list_words(text, is_normalised)), is_normalised=True)
    if not isinstance(made, int):
        return made
    return None if made else 0


def fingerprint(words: Sequence[bytes]) -> Fingerprint:
    """Normalised UTF-8 words -> the story's fingerprint.  Raises ValueError for no words."""
    if not words:
        raise ValueError("a story without words has no fingerprint")
    hashes, normalised = hash_words(words), b" ".join(words)
    pairs = hash_shingles(hashes.hashes)
    sampled = hash_passages(hashes.hashes), hash_skeleton_of_text(normalised), hash_rare_pairs.reference(hashes.hashes)
    return Fingerprint(
        text_hash=compute_text_hash(normalised),
        simhash=compute_simhash(hashes),
        signature=compute_signature(pairs),
        words=len(words),
        shingles=len(pairs),
        passages=find_distinct(np.concatenate(sampled)).tobytes(),
    )


def compute_text_hash(normalised: bytes) -> bytes:
    """The xxh3-128 of the normalised text: 16 bytes, equal for stories with the same words in the same order."""
    return xxhash.xxh3_128_digest(normalised)
