"""The pairs of texts in memory that may be copies: what a backfill and a sweep nominate, without index and ledger."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Protocol

import numpy as np

from neardup.config import Detection
from neardup.core.candidates.passage_groups import (
    NO_COMMON_HASHES,
    CommonHashes,
    SharedHashes,
    join_stories,
    select_best,
)
from neardup.core.candidates.top_k import LanguageFingerprints, Shortlist, nominated_pairs, of_new_and_old
from neardup.core.fingerprint.minhash import signature_rows
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.verify.scores import hash_rows
from neardup.records import Fingerprint, Language

PAGE = 10_000  # pairs

Pair = tuple[int, int]  # places of two texts, ascending


class Compared(Protocol):
    """A text to compare with others."""

    @property
    def language(self) -> Language: ...

    @property
    def fingerprint(self) -> Fingerprint: ...


@dataclass(slots=True)
class Nominated:
    """The pairs that may be copies, and the hashes of common passages with their holders' places as examples.

    `by_passages` are the pairs that passages alone nominate, and `alike` the others.  `left_out` counts the matches
    that `max_matches` excluded, and `capped` has the buckets over `max_bucket` with their sizes.
    """

    alike: set[Pair] = field(default_factory=set)
    by_passages: set[Pair] = field(default_factory=set)
    common: CommonHashes = NO_COMMON_HASHES
    left_out: Counter[Language] = field(default_factory=Counter)
    capped: defaultdict[Language, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))

    @property
    def pairs(self) -> list[Pair]:
        """All pairs, in order."""
        return sorted(self.alike | self.by_passages)


def nominate_pairs(texts: Sequence[Compared], detection: Detection, first_new: int | None = None) -> Nominated:
    """The pairs of texts that may be copies.

    Given `first_new`, only the pairs of a text from this place on and a text before it.
    """
    found = Nominated()
    places_of = defaultdict[Language, list[int]](list)
    for place, text in enumerate(texts):
        places_of[text.language].append(place)
    for language, places in places_of.items():
        _nominate_alike(found, language, places, texts, detection, first_new)
    _nominate_by_passages(found, list(places_of), texts, detection, first_new)
    return found


def passages_of(text: Compared) -> PassageHashes:
    """The passage hashes of a text, ascending."""
    return np.frombuffer(text.fingerprint.passages, np.uint32)


def _nominate_alike(  # noqa: PLR0917 - what `nominate` has at hand
    found: Nominated,
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
        signature_rows([fingerprint.signature for fingerprint in fingerprints]),
        np.array([fingerprint.signature is not None for fingerprint in fingerprints], np.bool_),
    )
    shortlist = Shortlist(stories, thresholds.max_matches)
    for chunk in nominated_pairs(stories, detection.banding(language), thresholds.agreeing_rows, first_new):
        shortlist.add(chunk.left, chunk.right)
        found.capped[language].update(chunk.capped)
    pairs = (pair for page in shortlist.pages(PAGE) for pair in page)
    kept, full = _not_full(pairs, thresholds.max_matches)
    found.alike |= kept
    found.left_out[language] += shortlist.left_out + full


def _not_full(pairs: Iterable[Pair], most: int) -> tuple[set[Pair], int]:
    """Pairs of a text and its match, the best first -> those that `ledger.candidates.nominate` would record.

    A match that has `most` is full; a text all of whose matches are full keeps the best.  Returns how many were left
    out, too.
    """
    kept, taken, full = set[Pair](), Counter[int](), 0
    for text, matches in groupby(pairs, itemgetter(0)):
        places = [match for _, match in matches]
        chosen = [match for match in places if taken[match] < most] or places[:1]
        taken.update([*chosen, *[text] * len(chosen)])
        kept.update((match, text) for match in chosen)
        full += len(places) - len(chosen)
    return kept, full


def _nominate_by_passages(
    found: Nominated,
    languages: Sequence[Language],
    texts: Sequence[Compared],
    detection: Detection,
    first_new: int | None,
) -> None:
    """The pairs of texts that share passages, in any two languages, and the passages that too many texts share."""
    number_of = {language: number for number, language in enumerate(languages)}
    language_of = np.array([number_of[text.language] for text in texts], np.uint8)
    pairs, found.common = join_stories([passages_of(text) for text in texts], language_of, detection.common_passage)
    if first_new is not None:
        wanted = of_new_and_old(pairs.left.astype(np.int64), pairs.right.astype(np.int64), first_new)
        pairs = SharedHashes(pairs.left[wanted], pairs.right[wanted], pairs.shared[wanted])
    limits = np.array([detection.of(language).max_matches for language in languages], np.int64)
    best, excess = select_best(pairs, np.arange(len(texts)), language_of, limits)
    found.left_out.update(dict(zip(languages, excess.tolist(), strict=True)))
    found.by_passages = set(zip(pairs.left[best].tolist(), pairs.right[best].tolist(), strict=True)) - found.alike
