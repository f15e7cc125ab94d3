"""Nominates among texts in memory, without index and ledger: all pairs, or the texts that one may be a copy of."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from neardup.config import Detection
from neardup.core.candidates.all_pairs import LanguageFingerprints, Shortlist, find_nominated_pairs, is_new_and_old
from neardup.core.candidates.banding import ARRAYS, FingerprintArrays, Numbers, copy_keys
from neardup.core.candidates.passage_groups import (
    NO_COMMON_HASHES,
    CommonHashes,
    SharedHashes,
    count_surplus,
    join_stories,
    select_best,
)
from neardup.core.candidates.select import NO_NUMBERS, select_matches
from neardup.core.fingerprint.minhash import stack_signatures
from neardup.core.fingerprint.word_hashes import MIN_SHARED, PassageHashes, hash_rows
from neardup.index.passages.postings import Tail
from neardup.index.protocol import LookupResult
from neardup.records import BandedFingerprint, Fingerprint, Language

PAGE = 10_000  # pairs
NOTHING_FOUND = LookupResult(set(), NO_NUMBERS, {})  # as without a lookup: every text is compared instead
LOOKED_UP = 2**62  # the number of the text that is looked up, behind all that are held

Pair = tuple[int, int]  # places of two texts, ascending
StoryRow = tuple[int, int, int, bytes, bytes | None]  # as `FingerprintArrays.of` takes it


class Compared(Protocol):
    """A text to compare with others."""

    @property
    def language(self) -> Language: ...

    @property
    def fingerprint(self) -> Fingerprint: ...


class NominatedPairs(Struct):
    """The pairs that may be copies, and the hashes of common passages with their holders' places as examples.

    `by_passages` are the pairs that passages alone nominate, and `alike` the others.  `left_out` counts the matches
    that `max_matches` excluded, and `cut` has the places of their texts.
    """

    alike: set[Pair] = field(default_factory=set)
    by_passages: set[Pair] = field(default_factory=set)
    cut: set[int] = field(default_factory=set)
    common: CommonHashes = NO_COMMON_HASHES
    left_out: Counter[Language] = field(default_factory=Counter)

    @property
    def pairs(self) -> list[Pair]:
        """All pairs, in order."""
        return sorted(self.alike | self.by_passages)


def nominate_pairs(texts: Sequence[Compared], detection: Detection, first_new: int | None = None) -> NominatedPairs:
    """The pairs of texts that may be copies.

    Given `first_new`, only the pairs of a text from this place on and a text before it.
    """
    found = NominatedPairs()
    places_of = defaultdict[Language, list[int]](list)
    for place, text in enumerate(texts):
        places_of[text.language].append(place)
    for language, places in places_of.items():
        _nominate_alike(found, language, places, texts, detection, first_new)
    _nominate_by_passages(found, list(places_of), texts, detection, first_new)
    return found


def sample_passages(text: Compared) -> PassageHashes:
    """The passage hashes of a text, ascending."""
    return np.frombuffer(text.fingerprint.passages, np.uint32)


def compute_copy_key(text: Compared) -> int:
    """The copy key of a text."""
    return int(copy_keys([text.fingerprint.simhash], [text.fingerprint.signature])[0])


def _nominate_alike(  # noqa: PLR0917 - what `nominate_pairs` has at hand
    found: NominatedPairs,
    language: Language,
    places: Sequence[int],
    texts: Sequence[Compared],
    detection: Detection,
    first_new: int | None,
) -> None:
    """The pairs of texts of a language whose SimHashes or signatures are alike."""
    thresholds, fingerprints = detection.of(language), [texts[place].fingerprint for place in places]
    stories = LanguageFingerprints(
        np.array(places, np.int64),
        hash_rows([fingerprint.simhash for fingerprint in fingerprints]),
        stack_signatures([fingerprint.signature for fingerprint in fingerprints]),
        np.array([fingerprint.signature is not None for fingerprint in fingerprints], np.bool_),
    )
    shortlist = Shortlist(stories, thresholds.max_matches)
    for chunk in find_nominated_pairs(stories, detection.banding(language), thresholds.agreeing_rows, first_new):
        shortlist.add(chunk.left, chunk.right)
    found.alike.update((match, text) for page in shortlist.pages(PAGE) for text, match in page)
    found.cut |= shortlist.cut
    found.left_out[language] += shortlist.left_out


def _nominate_by_passages(
    found: NominatedPairs,
    languages: Sequence[Language],
    texts: Sequence[Compared],
    detection: Detection,
    first_new: int | None,
) -> None:
    """The pairs of texts that share passages, in any two languages, and the passages that too many texts share."""
    number_of = {language: number for number, language in enumerate(languages)}
    language_of = np.array([number_of[text.language] for text in texts], np.uint8)
    fingerprints = [text.fingerprint for text in texts]
    keys = copy_keys([own.simhash for own in fingerprints], [own.signature for own in fingerprints])
    hashes = [sample_passages(text) for text in texts]
    pairs, found.common = join_stories(hashes, language_of, keys, detection.common_passage)
    if first_new is not None:
        wanted = is_new_and_old(pairs.left.astype(np.int64), pairs.right.astype(np.int64), first_new)
        pairs = SharedHashes(pairs.left[wanted], pairs.right[wanted], pairs.shared[wanted])
    limits = np.array([detection.of(language).max_matches for language in languages], np.int64)
    best, others = select_best(pairs, language_of, limits)
    found.cut.update(pairs.right[others].tolist())
    found.left_out.update(texts[place].language for place in pairs.right[others].tolist())
    found.by_passages = set(zip(pairs.left[best].tolist(), pairs.right[best].tolist(), strict=True)) - found.alike


class HeldTexts:
    """Fingerprints of texts in memory, and which of them a text may be a copy of; not thread-safe.

    A look-up compares fingerprints with all texts of the language.  Texts are numbered from 1.
    """

    def __init__(self, detection: Detection) -> None:
        self._detection = detection
        self._size = 0
        self._arrays: dict[Language, FingerprintArrays] = {}
        self._added: defaultdict[Language, list[StoryRow]] = defaultdict(list)  # that the arrays lack
        self._copy_keys = array("I", [0])  # by number
        self._passages = Tail()

    def add(self, text: Compared) -> None:
        """Add a text under the next number."""
        self._size += 1
        fingerprint = text.fingerprint
        self._added[text.language].append((self._size, self._size, 0, fingerprint.simhash, fingerprint.signature))
        self._copy_keys.append(compute_copy_key(text))
        self._passages.add([(self._size, sample_passages(text))], ())

    def nominate(self, text: Compared) -> tuple[list[int], PassageHashes]:
        """The numbers of the texts that a text may be a copy of, ascending, and its common passage hashes."""
        sharing, common = self._find_sharing(text)
        return sorted({*self.find_alike(text), *sharing.tolist()}), common

    def find_alike(self, text: Compared) -> tuple[int, ...]:
        """The numbers of the texts whose SimHashes or signatures are alike, the best `max_matches`."""
        language, fingerprint = text.language, text.fingerprint
        arrays, banded = (
            self._bring_up_arrays(language),
            BandedFingerprint(language, fingerprint.simhash, fingerprint.signature),
        )
        none = arrays.where(np.zeros(len(arrays), np.bool_))
        group = [LOOKED_UP], banded
        [found] = select_matches([group], [NOTHING_FOUND], none, {language: self._detection.of(language)}, arrays)
        return found.matches

    def _bring_up_arrays(self, language: Language) -> FingerprintArrays:
        added = FingerprintArrays.of(self._added.pop(language, []), {0: language})
        held = self._arrays.get(language, added.where(np.zeros(len(added), np.bool_)))
        if len(added):
            both = {name: np.concatenate((getattr(held, name), getattr(added, name))) for name in ARRAYS}
            held = self._arrays[language] = replace(held, names=held.names, **both)
        return held

    def _find_sharing(self, text: Compared) -> tuple[Numbers, PassageHashes]:
        """The numbers of the texts that share passages with a text, and its common passage hashes."""
        hashes, common = sample_passages(text), self._detection.common_passage
        found = [(run, *run.find(hashes)) for run in self._passages.runs]
        holders = sum((counts for _, _, counts in found), np.ones(len(hashes), np.int64))
        is_common = np.zeros(len(hashes), np.bool_)
        for n in np.flatnonzero(holders > common).tolist():
            of_hash = [run.numbers(places[n : n + 1], counts[n : n + 1]).tolist() for run, places, counts in found]
            keys = {compute_copy_key(text), *(self._copy_keys[number] for numbers in of_hash for number in numbers)}
            is_common[n] = count_surplus(int(holders[n]), len(keys), common) > 0
        numbers = [run.numbers(places, np.where(is_common, 0, counts)) for run, places, counts in found]
        sharing, shared = np.unique(np.concatenate([NO_NUMBERS, *numbers]), return_counts=True)
        return sharing[shared >= MIN_SHARED], hashes[is_common]
