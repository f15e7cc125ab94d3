"""A story's text on its way to an answer: one record, of which each part is made when it is first asked for.

A page is read into a `Text`, which is looked up by its fingerprint, compared by the hashes of its words and shingles or
by its skeleton, and shown by the places of its words.  A part that was made is kept, and goes along to another process.
Columns of many stories (`core.columns`) hold fingerprints alone, and no texts.
"""

from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from typing import Self

import numpy as np

from neardup.core.fingerprint.common_words import Mask, find_rare
from neardup.core.fingerprint.compute import compute_text_hash as hash_of
from neardup.core.fingerprint.compute import fingerprint_text, hash_rare_pairs, hash_text
from neardup.core.fingerprint.minhash import hash_shingles
from neardup.core.fingerprint.skeleton import Skeleton, make_skeleton
from neardup.core.fingerprint.word_hashes import Hashes, PassageHashes
from neardup.core.native.fingerprint import HashedText
from neardup.core.sets import Pairs, find_distinct
from neardup.core.text.disguise import mark_text
from neardup.core.text.normalize import Located, locate_words
from neardup.core.text.scripts import Characters, count_characters, find_script_of_most
from neardup.core.verify.alignment import sample_passages
from neardup.core.verify.skeletons import Grams, list_grams
from neardup.records import Fingerprint, Marks

ASCII_END = 0x80
RARE_WORD_BYTES = 10  # a hash and two masks
GRAM_BYTES = 2  # a byte of text, at most: half of the letters of Latin are consonants, and a gram has 4 bytes


class Text:
    """A story's text as it was given, str or UTF-8, and what is made of it; `page_marks` are those of its page.

    `is_normalised` says that it was given in normal form, as words of UTF-8 with a space between them.
    """

    def __init__(self, given: str | bytes, page_marks: Marks = (), *, is_normalised: bool = False) -> None:
        self.given = given
        self.page_marks = page_marks
        self._is_normalised = is_normalised

    @property
    def written(self) -> str:
        """The text as it was given."""
        return self.given if isinstance(self.given, str) else self.given.decode()

    @property
    def utf8(self) -> bytes:
        """The text as it was given, in UTF-8.  Raises UnicodeEncodeError for half a surrogate pair."""
        return self.given if isinstance(self.given, bytes) else self.given.encode()

    @property
    def sha256(self) -> bytes:
        """The SHA-256 of the text as it was given, in UTF-8, without white space around it; raises as `utf8`."""
        return sha256(self.utf8.strip()).digest()

    # What the page is marked with.

    @cached_property
    def counts(self) -> Characters:
        """The counts of its characters."""
        return count_characters(self.given)

    @cached_property
    def marks(self) -> Marks:
        """What is unusual about the page and about the text."""
        return self.page_marks + mark_text(self.given, self.counts)

    # What a text is looked up by.

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """Its fingerprint.  Raises ValueError for a text without words."""
        made = fingerprint_text(self.given, is_normalised=self._is_normalised)
        if made is None:
            raise ValueError("a text without words has no fingerprint")
        return made

    @cached_property
    def text_hash(self) -> bytes:
        """The text hash of its fingerprint."""
        return hash_of(self.normalised)

    @cached_property
    def passages(self) -> PassageHashes:
        """The passage hashes of its fingerprint, ascending."""
        sampled = sample_passages(self.word_hashes), self.skeleton_hashes, hash_rare_pairs(self.word_hashes)
        return find_distinct(np.concatenate(sampled))

    # What pairs are compared by.

    @cached_property
    def hashed(self) -> HashedText:
        """The normalised text, the hash of each word, and those of the skeleton: they are made together."""
        return hash_text(self.given, is_normalised=self._is_normalised)

    @property
    def normalised(self) -> bytes:
        """The normalised text in UTF-8."""
        return self.hashed.normalised

    @property
    def word_hashes(self) -> Hashes:
        """(words,) the hash of each word, in reading order."""
        return self.hashed.words

    @property
    def skeleton_hashes(self) -> PassageHashes:
        """The hashes by which its skeleton is found, ascending."""
        return self.hashed.skeleton_hashes

    @cached_property
    def shingles(self) -> Hashes:
        """The hashes of its distinct shingles, ascending."""
        return hash_shingles(self.word_hashes)

    @cached_property
    def rare(self) -> Mask:
        """(words,) which words are rare; none where no list has the common words of its language."""
        return find_rare(self.word_hashes)

    @cached_property
    def is_ascii(self) -> Mask:
        """(words,) which words begin with an ASCII character, as those of the Latin script mostly do."""
        utf8 = np.frombuffer(self.normalised, np.uint8)
        starts = np.append(0, np.flatnonzero(utf8 == ord(" ")) + 1)[: len(self.word_hashes)]
        return np.asarray(utf8[starts] < ASCII_END)

    @cached_property
    def rare_hashes(self) -> Hashes:
        """The hashes of its distinct rare words, ascending."""
        return find_distinct(self.word_hashes[self.rare])

    @property
    def skeleton(self) -> Skeleton:
        """The consonant skeleton, made at each call: few pairs are copies by it, and it is several times the text."""
        return make_skeleton(self.normalised)

    @cached_property
    def skeleton_grams(self) -> Grams:
        """The distinct grams of the skeleton, ascending."""
        return list_grams(self.normalised)

    @cached_property
    def script(self) -> str | None:
        """The script of most letters of the normalised text, as `core.text.scripts` finds it."""
        return find_script_of_most(self.normalised.decode(errors="replace"))

    def prepare(self) -> Self:
        """The text itself, with all that a check needs made, by the native core, which holds up no other thread."""
        _ = self.fingerprint, self.hashed, self.shingles, self.marks
        return self

    def keep_compared(self) -> Self:
        """What pairs are compared by alone, for a cache or another process: the text as if given in normal form."""
        text = type(self)(self.normalised, is_normalised=True)
        text.hashed, text.shingles, text.text_hash = self.hashed, self.shingles, self.text_hash
        return text

    @property
    def nbytes(self) -> int:
        """The size of what pairs are compared by in memory, at most: grams and rare words, too, which few need."""
        rare_words = RARE_WORD_BYTES * len(self.word_hashes)
        arrays = self.word_hashes.nbytes + self.shingles.nbytes + self.skeleton_hashes.nbytes + rare_words
        return arrays + (1 + GRAM_BYTES) * len(self.normalised)

    # What is shown.

    @cached_property
    def words(self) -> list[bytes]:
        """Its normalised words in UTF-8, in reading order."""
        return self.normalised.split()

    @cached_property
    def located(self) -> Located:
        """The places of its words, which take several milliseconds for a long text."""
        return locate_words(self.written)


TextPair = tuple[Text, Text, *tuple[object, ...]]  # whatever else is said of them


def list_distinct_texts(pairs: Sequence[TextPair]) -> tuple[list[Text], Pairs]:
    """The texts of pairs, each once, and the pairs as their places among these."""
    texts = {id(text): text for pair in pairs for text in pair[:2]}
    place_of = {key: n for n, key in enumerate(texts)}
    rows = [(place_of[id(a)], place_of[id(b)], 0) for a, b, *_ in pairs]
    return list(texts.values()), np.array(rows, np.int32).reshape(-1, 3)
