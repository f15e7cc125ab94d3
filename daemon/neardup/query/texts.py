"""Texts at hand, without a ledger, a store or a configuration: the fingerprint of one, and what two have in common.

`fingerprint` and `compare` are the library's functions for texts.  A `PreparedText` is one of many that are compared
with each other: `PairVerifier` finds the copies among pairs of these.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from neardup.config import Detection
from neardup.core.fingerprint.compute import fingerprint as fingerprint_words
from neardup.core.fingerprint.compute import fingerprint_text
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.page import MIN_WORDS, is_too_short
from neardup.core.text.normalize import Located, locate_words, tokens
from neardup.core.text.scripts import UnknownScript, detect_language, most_frequent_script
from neardup.core.verify.scores import ComparedPair, assess_all, examine, hamming, hash_rows
from neardup.core.verify.shingled import Shingled, shingle_words
from neardup.core.verify.tiers import COPIED_WORDS, tier_of
from neardup.languages import SHIPPED
from neardup.records import Assessment, Candidate, Fingerprint, Kind, Language, PairedStory, Spans

DETECTION = Detection()
CACHED_TEXTS = 1_000
PAIRS_AT_A_TIME = 250  # that are verified
CharacterSpans = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two texts have in common; `kind` is by the default thresholds, None if neither is a copy.

    `jaccard` and the containments, 0 to 1, compare their sets of word 2-shingles, or of consonant 8-grams for the
    kind `transliterated`; `containment_a` is the share of a's shingles that occur in b.  `hamming` is the Hamming
    distance of their SimHashes, 0 to 128.  `copied_words` are the words of passages that stand in both, edits and
    repetitions not counted.  `spans_a` and `spans_b` are these passages with their edits: characters [start, end) of
    each text in NFC, the Unicode form of most texts.
    """

    language: Language
    kind: Kind | None
    jaccard: float
    containment_a: float
    containment_b: float
    hamming: int
    longest_run_words: int
    copied_words: int
    spans_a: CharacterSpans = ()
    spans_b: CharacterSpans = ()

    def __str__(self) -> str:
        return (
            f"{self.kind or 'no copy'}: Jaccard {self.jaccard:.2f}, containment {self.containment_a:.2f} of a in b and "
            f"{self.containment_b:.2f} of b in a, {self.hamming} of 128 bits differ, {self.copied_words} words copied, "
            f"longest common run of words {self.longest_run_words}"
        )


def fingerprint(text: str, language: str | None = None) -> Fingerprint:
    """Fingerprint a text; it has the same fingerprint in every language.

    Raises ValueError for a text without words, and for a language that is given, as a name or an ISO 639-1 code, and is
    not known.
    """
    if language is not None:
        SHIPPED.find(language)
    return fingerprint_words(_words(text, "the text"))


def compare(text_a: str, text_b: str, language: str | None = None) -> Comparison:
    """Compare two texts in a language, given as a name or an ISO 639-1 code; without one, that of text_a is detected.

    Raises ValueError for an unknown language, or a text without words.
    """
    spoken = detect_language(text_a) if language is None else SHIPPED.find(language)
    words_a, words_b = _words(text_a, "text_a"), _words(text_b, "text_b")
    a, b = fingerprint_words(words_a), fingerprint_words(words_b)
    shingled_a, shingled_b = shingle_words(words_a), shingle_words(words_b)
    [distance] = hamming(hash_rows([a.simhash]), hash_rows([b.simhash])).tolist()
    assessment = examine(
        shingled_a,
        shingled_b,
        distance,
        DETECTION,
        same_text=a.text_hash == b.text_hash,
        is_of_one_language=language is not None or most_frequent_script(text_a) == most_frequent_script(text_b),
    )
    signals, spans_a, spans_b = assessment.signals, assessment.spans_a, assessment.spans_b
    return Comparison(
        language=spoken,
        kind=assessment.kind,
        jaccard=signals.jaccard or 0.0,
        containment_a=signals.containment_a or 0.0,
        containment_b=signals.containment_b or 0.0,
        hamming=distance,
        longest_run_words=signals.longest_run_words or 0,
        copied_words=int(signals.extra.get(COPIED_WORDS, 0)),
        spans_a=character_spans(locate_words(text_a), spans_a),
        spans_b=character_spans(locate_words(text_b), spans_b),
    )


def _words(text: str, name: str) -> list[bytes]:
    words = tokens(text)
    if not words:
        raise ValueError(f"{name} has no words")
    return words


@dataclass(frozen=True, slots=True)
class Copy:
    """Two texts of which one is a copy of the other; `a` and `b` are their keys.

    `jaccard` and the containments, 0 to 1, compare their sets of word 2-shingles; `containment_a` is the share of a's
    shingles that occur in b.  `hamming` is the Hamming distance of their SimHashes, 0 to 128.  `spans_a` and `spans_b`
    are the copied passages: characters [start, end) of each text in NFC, the Unicode form of most texts.
    """

    a: Hashable
    b: Hashable
    kind: Kind
    language: Language
    jaccard: float
    containment_a: float
    containment_b: float
    hamming: int
    copied_words: int
    spans_a: CharacterSpans
    spans_b: CharacterSpans


@dataclass(frozen=True, slots=True)
class PreparedText:
    """A text that is long enough to be compared, with its fingerprint."""

    key: Hashable
    text: str
    language: Language
    fingerprint: Fingerprint


class NotComparable(ValueError):
    """A text cannot be compared, for the reason in the message."""


def prepare(key: Hashable, text: str, language: Language | None) -> PreparedText:
    """Fingerprint a text, in a language or in the one that it is detected to have.  Raises NotComparable."""
    if not isinstance(text, str):
        raise NotComparable(f"a text is a str, not {type(text).__name__}")
    fingerprint = fingerprint_text(text)
    if fingerprint is None or is_too_short(fingerprint.words, text):
        raise NotComparable(f"fewer than {MIN_WORDS} words")
    try:
        return PreparedText(key, text, language or detect_language(text), fingerprint)
    except UnknownScript as error:
        raise NotComparable(f"{error}; the argument language compares it all the same") from None


class PairVerifier:
    """Verifies pairs; it caches the texts that it has split into words."""

    def __init__(self) -> None:
        self._shingled: Callable[[str], Shingled] = lru_cache(CACHED_TEXTS)(lambda text: shingle_words(tokens(text)))
        self._located: Callable[[str], Located] = lru_cache(CACHED_TEXTS)(locate_words)

    def copies_of(self, pairs: Iterable[tuple[PreparedText, PreparedText]], common: PassageHashes) -> list[Copy]:
        """Those of pairs of texts that are copies, with what they have in common.

        `common` are the hashes of common passages, ascending.
        """
        copies, left = list[Copy](), iter(pairs)
        while some := list(islice(left, PAIRS_AT_A_TIME)):
            compared = [
                ComparedPair(
                    Candidate(_paired_story(1, a), _paired_story(2, b)), self._shingled(a.text), self._shingled(b.text)
                )
                for a, b in some
            ]
            assessed = assess_all(compared, lambda _: DETECTION, lambda _: common)
            for (a, b), found in zip(some, assessed, strict=True):
                if found is not None and found.kind is not None:
                    copies.append(self._copy(a, b, found.kind, found))
        return copies

    def _copy(self, a: PreparedText, b: PreparedText, kind: Kind, found: Assessment) -> Copy:
        signals = found.signals
        return Copy(
            a=a.key,
            b=b.key,
            kind=kind,
            language=a.language,
            jaccard=signals.jaccard or 0.0,
            containment_a=signals.containment_a or 0.0,
            containment_b=signals.containment_b or 0.0,
            hamming=signals.hamming,
            copied_words=int(signals.extra[COPIED_WORDS]),
            spans_a=character_spans(self._located(a.text), found.spans_a),
            spans_b=character_spans(self._located(b.text), found.spans_b),
        )


def character_spans(text: Located, spans: Spans) -> CharacterSpans:
    """Spans of words -> spans of characters."""
    return tuple(text.span(first, end) for first, end in spans.tolist())


def by_severity(copy: Copy) -> tuple[int, float]:
    """The sort key of copies: the most severe kind first, and of a kind the copy with the largest containment."""
    return tier_of(copy.kind).severity, -max(copy.containment_a, copy.containment_b)


def _paired_story(number: int, text: PreparedText) -> PairedStory:
    fingerprint = text.fingerprint
    return PairedStory(
        number,
        text.language,
        None,
        fingerprint.text_hash,
        fingerprint.simhash,
        fingerprint.signature,
        fingerprint.words,
        fingerprint.shingles,
    )
