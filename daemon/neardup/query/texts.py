"""Fingerprint and compare texts without a ledger, a store or a configuration."""

from dataclasses import dataclass

from neardup.core.fingerprint.compute import fingerprint as fingerprint_words
from neardup.core.text.normalize import located, tokens
from neardup.core.text.scripts import detect_language, most_frequent_script
from neardup.core.verify.scores import examine, hamming, hash_rows
from neardup.core.verify.shingled import shingled
from neardup.core.verify.tiers import COPIED_WORDS
from neardup.languages import SHIPPED
from neardup.query.prepared_texts import DETECTION, CharacterSpans, character_spans
from neardup.records import Fingerprint, Kind, Language


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two texts have in common; `kind` is by the default thresholds, None if neither is a copy.

    `jaccard` and the containments, 0 to 1, compare their sets of word 2-shingles, or of consonant 8-grams for the
    kind `transliterated`; `containment_a` is the share of a's
    shingles that occur in b.  `hamming` is the Hamming distance of their SimHashes, 0 to 128.  `copied_words` are the
    words of passages that stand in both, edits and repetitions not counted.  `spans_a` and `spans_b` are these passages
    with their edits: characters [start, end) of each text in NFC, the Unicode form of most texts.
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
    shingled_a, shingled_b = shingled(words_a), shingled(words_b)
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
        spans_a=character_spans(located(text_a), spans_a),
        spans_b=character_spans(located(text_b), spans_b),
    )


def _words(text: str, name: str) -> list[bytes]:
    words = tokens(text)
    if not words:
        raise ValueError(f"{name} has no words")
    return words
