"""A text as pairs are compared: by its words, its shingles, its skeleton and its passage hashes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neardup.core.fingerprint.compute import fingerprint_of, fingerprint_text, hash_text, hash_text_of_words
from neardup.core.fingerprint.minhash import shingles
from neardup.core.fingerprint.skeleton import Skeleton, skeleton_of
from neardup.core.fingerprint.word_hashes import Hashes, PassageHashes, hash_words
from neardup.core.native.fingerprint import HashedText
from neardup.core.text.scripts import script_of_most
from neardup.core.verify.sets import Pairs
from neardup.core.verify.skeletons import Grams, distinct_grams
from neardup.records import Fingerprint


@dataclass(frozen=True, slots=True)
class Shingled:
    """A text to compare: the hashes of its words in order, those of its distinct shingles, ascending, and itself.

    `normalised` is the normalised text in UTF-8, and `skeleton_hashes` are those by which its skeleton is found.
    """

    words: Hashes
    shingles: Hashes
    normalised: bytes
    skeleton_hashes: PassageHashes

    @property
    def skeleton(self) -> Skeleton:
        """The consonant skeleton, made at each call, because few pairs are compared by it."""
        return skeleton_of(self.normalised)

    @property
    def skeleton_grams(self) -> Grams:
        """The distinct grams of the skeleton, ascending; likewise."""
        return distinct_grams(self.normalised)

    @property
    def script(self) -> str | None:
        """The script of most letters, as `core.text.scripts` finds it."""
        return script_of_most(self.normalised.decode(errors="replace"))

    @property
    def nbytes(self) -> int:
        """The size in memory."""
        return self.words.nbytes + self.shingles.nbytes + len(self.normalised) + self.skeleton_hashes.nbytes


def shingle_words(words: Sequence[bytes]) -> Shingled:
    """Normalised UTF-8 words, at least one -> the hashes by which texts are compared."""
    return _shingle(hash_text_of_words(words))


def shingle_text(text: str | bytes) -> Shingled | None:
    """A text -> the hashes by which it is compared; None for a text without words.  Bytes are UTF-8."""
    found = hash_text(text)
    return None if found is None else _shingle(found)


def fingerprint_and_shingle(words: Sequence[bytes]) -> tuple[Fingerprint, Shingled]:
    """Normalised UTF-8 words, at least one -> the fingerprint of the text, and what it is compared by."""
    text = shingle_words(words)
    return fingerprint_of(text.normalised, hash_words(words), text.shingles, text.skeleton_hashes), text


def fingerprint_and_shingle_text(text: str) -> tuple[Fingerprint, Shingled] | None:
    """As `fingerprint_and_shingle`, of a text, in half the time and without the GIL; None for a text without words."""
    fingerprint, compared = fingerprint_text(text), shingle_text(text)
    return None if fingerprint is None or compared is None else (fingerprint, compared)


def _shingle(text: HashedText) -> Shingled:
    return Shingled(text.words, shingles(text.words), text.normalised, text.skeleton_hashes)


def distinct_texts(pairs: Sequence[tuple[Shingled, Shingled]]) -> tuple[list[Shingled], Pairs]:
    """The texts of pairs, each once, and the pairs as their places among these."""
    texts = {id(text): text for pair in pairs for text in pair}
    place_of = {key: n for n, key in enumerate(texts)}
    rows = [(place_of[id(a)], place_of[id(b)], 0) for a, b in pairs]
    return list(texts.values()), np.array(rows, np.int32).reshape(-1, 3)
