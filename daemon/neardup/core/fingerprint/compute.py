"""Computes a story's fingerprint: text hash, SimHash, MinHash signature and passage hashes.

`fingerprint(tokens(text))` is the reference.  The native core does the same for a text in UTF-8, in a tenth of the time
and without the GIL.  One text in two hundred has something that it cannot normalise (ß, two Arabic vowel signs on one
letter, an accent written as a combining mark): it is given the words of `tokenize` then.

Among the passage hashes are those of pairs of rare words that stand close together, which find rewritten stories.  Who
rewrites a story keeps many of its rarer words: names, things and places.  A single one of them stands in too many
stories to nominate any; two of them within NEARBY words seldom do.  The order of the two does not count.  The hashes
are a bottom-k sketch (Broder, SEQUENCES 1997) of a story's pairs, so they take 46 bytes at most.
"""

from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

import numpy as np
import xxhash

from neardup.core.fingerprint.common_words import find_rare
from neardup.core.fingerprint.minhash import compute_signature, hash_shingles
from neardup.core.fingerprint.skeleton import hash_skeleton, make_skeleton
from neardup.core.fingerprint.word_hashes import (
    Hashes,
    PassageHashes,
    compute_simhash,
    hash_passages,
    hash_words,
    make_passage_hashes,
    mix,
)
from neardup.core.native import fingerprint as native
from neardup.core.native import in_c
from neardup.core.native.fingerprint import HashedText, fingerprint_utf8, hash_utf8
from neardup.core.sets import find_distinct
from neardup.core.text.normalize import tokenize
from neardup.records import Fingerprint

Made = TypeVar("Made")
PAIRS = 14  # hashes of pairs of rare words of a story, if it has so many
NEARBY = 4  # words from one of a pair to the other
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


@in_c(native.hash_rare_pairs)
def hash_rare_pairs(words: Hashes) -> PassageHashes:
    """Word hashes (n,), in reading order -> the hashes of the least rare pairs, in no order.

    A text whose language has no list of common words has none: its most frequent words would make the pairs.
    """
    places = np.flatnonzero(find_rare(words))
    rare, found = words[places], [words[:0]]
    for ahead in range(1, NEARBY + 1):
        is_pair = (places[ahead:] - places[:-ahead] <= NEARBY) & (rare[ahead:] != rare[:-ahead])
        found.append(mix(rare[:-ahead][is_pair] + rare[ahead:][is_pair]))
    return make_passage_hashes(find_distinct(np.concatenate(found))[:PAIRS])
