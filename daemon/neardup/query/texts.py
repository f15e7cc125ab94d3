"""Texts at hand, without a ledger, a store or a configuration: the fingerprint of one, and what two have in common.

`fingerprint` and `compare` are the library's functions for texts.  A `KeyedText` is one of many that are compared
with each other: `PairVerifier` finds the copies among pairs of these.
"""

from collections.abc import Callable, Hashable, Iterable
from functools import lru_cache
from itertools import islice

from msgspec import Struct

from neardup.config import Detection
from neardup.core.fingerprint.compute import fingerprint_text
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.languages import SHIPPED
from neardup.core.page import MIN_WORDS, is_too_short
from neardup.core.text.scripts import UnknownScript, detect_language, find_most_frequent_script
from neardup.core.verify.scores import ComparedPair, assess_all, compare_texts
from neardup.core.verify.spans import measure_similarity
from neardup.core.verify.text import Text
from neardup.core.verify.tiers import COPIED_WORDS, find_tier
from neardup.records import Assessment, Candidate, Fingerprint, Kind, Language, PairedStory, Spans

DETECTION = Detection()
CACHED_TEXTS = 1_000
PAIRS_AT_A_TIME = 250  # that are verified
CharacterSpans = tuple[tuple[int, int], ...]


class Comparison(Struct, frozen=True):
    """What two texts have in common; `kind` is by the default thresholds, None if neither is a copy.

    `similarity`, 0 to 1, is the larger share of either text's words that is copied, with edits within passages.
    `jaccard` and the containments, 0 to 1, compare their sets of word 2-shingles, or of consonant 8-grams for the
    kind `transliterated`; `containment_a` is the share of a's shingles that occur in b.  `hamming` is the Hamming
    distance of their SimHashes, 0 to 128.  `copied_words` are the words of passages that stand in both, edits and
    repetitions not counted.  `spans_a` and `spans_b` are these passages with their edits: characters [start, end) of
    each text in NFC, the Unicode form of most texts.
    """

    language: Language
    kind: Kind | None
    similarity: float
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
            f"{self.kind or 'no copy'}: similarity {self.similarity:.2f}, Jaccard {self.jaccard:.2f}, containment "
            f"{self.containment_a:.2f} of a in b and {self.containment_b:.2f} of b in a, "
            f"{self.hamming} of 128 bits differ, {self.copied_words} words copied, "
            f"longest common run of words {self.longest_run_words}"
        )


def fingerprint(text: str, language: str | None = None) -> Fingerprint:
    """Fingerprint a text; it has the same fingerprint in every language.

    Raises ValueError for a text without words, and for a language that is given, as a name or an ISO 639-1 code, and is
    not known.
    """
    if language is not None:
        SHIPPED.find(language)
    return _make_text(text, "the text").fingerprint


def compare(text_a: str, text_b: str, language: str | None = None) -> Comparison:
    """Compare two texts in a language, given as a name or an ISO 639-1 code; without one, that of text_a is detected.

    Raises ValueError for an unknown language, or a text without words.
    """
    spoken = detect_language(text_a) if language is None else SHIPPED.find(language)
    a, b = _make_text(text_a, "text_a"), _make_text(text_b, "text_b")
    is_of_one_language = language is not None or find_most_frequent_script(text_a) == find_most_frequent_script(text_b)
    assessment = compare_texts(a, b, DETECTION, is_of_one_language=is_of_one_language)
    signals, spans_a, spans_b = assessment.signals, assessment.spans_a, assessment.spans_b
    return Comparison(
        language=spoken,
        kind=assessment.kind,
        similarity=measure_similarity(assessment, len(a.word_hashes), len(b.word_hashes)),
        jaccard=signals.jaccard or 0.0,
        containment_a=signals.containment_a or 0.0,
        containment_b=signals.containment_b or 0.0,
        hamming=signals.hamming,
        longest_run_words=signals.longest_run_words or 0,
        copied_words=int(signals.extra.get(COPIED_WORDS, 0)),
        spans_a=convert_spans(a, spans_a),
        spans_b=convert_spans(b, spans_b),
    )


def _make_text(written: str, name: str) -> Text:
    text = Text(written)
    if not len(text.word_hashes):
        raise ValueError(f"{name} has no words")
    return text


class Copy(Struct, frozen=True):
    """Two texts of which one is a copy of the other; `a` and `b` are their keys.

    `similarity`, 0 to 1, is the larger share of either text's words that is copied, with edits within passages.
    `jaccard` and the containments, 0 to 1, compare their sets of word 2-shingles; `containment_a` is the share of a's
    shingles that occur in b.  `hamming` is the Hamming distance of their SimHashes, 0 to 128.  `spans_a` and `spans_b`
    are the copied passages: characters [start, end) of each text in NFC, the Unicode form of most texts.
    """

    a: Hashable
    b: Hashable
    kind: Kind
    language: Language
    similarity: float
    jaccard: float
    containment_a: float
    containment_b: float
    hamming: int
    copied_words: int
    spans_a: CharacterSpans
    spans_b: CharacterSpans


class KeyedText(Struct, frozen=True):
    """A text that is long enough to be compared.  What it is compared by is not kept here, but by `PairVerifier`."""

    key: Hashable
    text: Text
    language: Language

    @property
    def fingerprint(self) -> Fingerprint:
        return self.text.fingerprint


class NotComparable(ValueError):
    """A text cannot be compared, for the reason in the message."""


def prepare(key: Hashable, written: str, language: Language | None) -> KeyedText:
    """Fingerprint a text, in a language or in the one that it is detected to have.  Raises NotComparable."""
    if not isinstance(written, str):
        raise NotComparable(f"a text is a str, not {type(written).__name__}")
    text, fingerprint = Text(written), fingerprint_text(written)
    if fingerprint is None or is_too_short(fingerprint.words, text):
        raise NotComparable(f"fewer than {MIN_WORDS} words")
    text.fingerprint = fingerprint
    try:
        return KeyedText(key, text, language or detect_language(written))
    except UnknownScript as error:
        raise NotComparable(f"{error}; the argument language compares it all the same") from None


class PairVerifier:
    """Verifies pairs; it caches what texts are compared by."""

    def __init__(self) -> None:
        self._make_text: Callable[[str], Text] = lru_cache(CACHED_TEXTS)(Text)

    def find_copies(self, pairs: Iterable[tuple[KeyedText, KeyedText]], common: PassageHashes) -> list[Copy]:
        """Those of pairs of texts that are copies, with what they have in common.

        `common` are the hashes of common passages, ascending.
        """
        copies, left = list[Copy](), iter(pairs)
        while batch := list(islice(left, PAIRS_AT_A_TIME)):
            compared = [
                ComparedPair(Candidate(_make_side(1, a), _make_side(2, b)), self._get_text(a), self._get_text(b))
                for a, b in batch
            ]
            assessed = assess_all(compared, lambda _: DETECTION, lambda _: common)
            for (a, b), found in zip(batch, assessed, strict=True):
                if found is not None and found.kind is not None:
                    copies.append(self._describe_copy(a, b, found.kind, found))
        return copies

    def _get_text(self, keyed: KeyedText) -> Text:
        return self._make_text(keyed.text.written)

    def _describe_copy(self, a: KeyedText, b: KeyedText, kind: Kind, found: Assessment) -> Copy:
        signals = found.signals
        return Copy(
            a=a.key,
            b=b.key,
            kind=kind,
            language=a.language,
            similarity=measure_similarity(found, a.fingerprint.words, b.fingerprint.words),
            jaccard=signals.jaccard or 0.0,
            containment_a=signals.containment_a or 0.0,
            containment_b=signals.containment_b or 0.0,
            hamming=signals.hamming,
            copied_words=int(signals.extra[COPIED_WORDS]),
            spans_a=convert_spans(self._get_text(a), found.spans_a),
            spans_b=convert_spans(self._get_text(b), found.spans_b),
        )


def convert_spans(text: Text, spans: Spans) -> CharacterSpans:
    """Spans of words -> spans of characters."""
    return tuple(text.located.find_span(first, end) for first, end in spans.tolist())


def rank_severity(copy: Copy) -> tuple[int, float]:
    """The sort key of copies: the most severe kind first, and of a kind the copy with the largest containment."""
    return find_tier(copy.kind).severity, -max(copy.containment_a, copy.containment_b)


def _make_side(number: int, text: KeyedText) -> PairedStory:
    return PairedStory.of(number, text.language, text.fingerprint)
