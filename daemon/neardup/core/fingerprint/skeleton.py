"""The consonant skeleton of a text, which survives transliteration, other vowels and other spaces.

It is the sequence of consonant classes (see `core.text.consonants`), in whatever script each word is written: who
writes Hindi with Latin letters often does so in a part of the words.  Equal classes in a row count once, because
scripts write double letters differently.  Spaces do not count at all.

The skeleton hashes of a story stand among its passage hashes.  They are a bottom-k sketch (Broder, SEQUENCES 1997) of
the GRAM-grams of its skeleton: the least of their hashes, at least LEAST and one in SHARE of all, so that a work
also shares some with each of its parts.
"""

from functools import cached_property

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from neardup.core.fingerprint.word_hashes import Hashes, PassageHashes, make_passage_hashes, mix
from neardup.core.native import comparison as native
from neardup.core.native import in_c
from neardup.core.sets import find_distinct
from neardup.core.text.consonants import CLASS_BITS, NO_CONSONANT, Classes, classify_consonants
from neardup.core.text.normalize import get_codes

GRAM = 14  # consonants, about 5 words; 12 have five times as many candidates by chance
LEAST = 24  # hashes of a story, if it has so many grams
SHARE = 96

# Consonants.  One that differs changes ALIGNED_GRAM grams in a row: fewer than MAX_GAP of `core.verify.alignment`, so a
# block of equal grams goes on across it.
ALIGNED_GRAM = 3

SPACE = 0x20


class Skeleton(Struct, frozen=True, dict=True):
    """The skeleton of a text: `classes` (n,) of its consonants, and the place (n,) of the word that has each."""

    classes: Classes
    words: npt.NDArray[np.int32]

    @cached_property
    def aligned_grams(self) -> Hashes:
        """The hash of the ALIGNED_GRAM classes that begin at each place, by which two skeletons are aligned."""
        return hash_grams(self.classes, ALIGNED_GRAM)


def make_skeleton(normalised: bytes) -> Skeleton:
    """A normalised text in UTF-8 -> its skeleton."""
    return Skeleton(*find_skeleton_parts(normalised))


@in_c(native.find_skeleton_parts)
def find_skeleton_parts(normalised: bytes) -> tuple[Classes, npt.NDArray[np.int32]]:
    """A normalised text in UTF-8 -> the fields of its skeleton."""
    codes = get_codes(normalised.decode(errors="replace"))
    of_codes = classify_consonants().take(codes, mode="clip")
    places = np.flatnonzero(of_codes != NO_CONSONANT)
    classes = of_codes[places]
    first = np.flatnonzero(np.diff(classes, prepend=NO_CONSONANT))  # of each run of equal classes
    return classes[first], np.cumsum(codes == SPACE, dtype=np.int32)[places[first]]


def hash_grams(classes: Classes, size: int) -> Hashes:
    """(n,) classes -> (n - size + 1,) the hash of the `size` classes, 21 at most, that begin at each place."""
    count = max(len(classes) - size + 1, 0)
    packed = np.zeros(count, np.uint64)
    for offset in range(size):
        packed = packed << np.uint64(CLASS_BITS) | classes[offset : offset + count]
    return mix(packed)


def hash_skeleton(classes: Classes) -> PassageHashes:
    """The classes of a skeleton -> the hashes by which its story is found, in no order."""
    grams = hash_grams(classes, GRAM)
    return make_passage_hashes(find_distinct(grams)[: count_sampled(len(grams))])


def count_sampled(grams: int) -> int:
    """The most hashes that a story with so many grams has."""
    return max(LEAST, grams // SHARE)
