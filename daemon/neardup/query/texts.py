"""Fingerprint and compare texts without a ledger, a store or a configuration."""

from dataclasses import dataclass, replace

from neardup.config import Thresholds
from neardup.core.fingerprint.compute import fingerprint as fingerprint_words
from neardup.core.text.normalize import tokens
from neardup.core.verify.scores import hamming, hash_rows, measure, shingled
from neardup.core.verify.tiers import COPIED_WORDS, kind_of
from neardup.languages import SHIPPED
from neardup.records import Fingerprint, Kind, Language


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two texts have in common; `kind` is by the default thresholds, None if neither is a copy.

    `jaccard` and the containments, 0 to 1, compare their sets of word 2-shingles; `containment_a` is the share of a's
    shingles that occur in b.  `hamming` is the Hamming distance of their SimHashes, 0 to 128.  `copied_words` are the
    words of passages that stand in both, edits and repetitions not counted.
    """

    language: Language
    kind: Kind | None
    jaccard: float
    containment_a: float
    containment_b: float
    hamming: int
    longest_run_words: int
    copied_words: int

    def __str__(self) -> str:
        return (
            f"{self.kind or 'no copy'}: Jaccard {self.jaccard:.2f}, containment {self.containment_a:.2f} of a in b and "
            f"{self.containment_b:.2f} of b in a, {self.hamming} of 128 bits differ, {self.copied_words} words copied, "
            f"longest common run of words {self.longest_run_words}"
        )


def fingerprint(text: str, language: str) -> Fingerprint:
    """Fingerprint a text in a language, given as a name or an ISO 639-1 code.

    Raises ValueError for an unknown language, or a text without words.
    """
    _language(language)
    return fingerprint_words(_words(text, "the text"))


def compare(text_a: str, text_b: str, language: str) -> Comparison:
    """Compare two texts in a language, given as a name or an ISO 639-1 code.

    Raises ValueError for an unknown language, or a text without words.
    """
    known_language = _language(language)
    words_a, words_b = _words(text_a, "text_a"), _words(text_b, "text_b")
    a, b = fingerprint_words(words_a), fingerprint_words(words_b)
    [distance] = hamming(hash_rows([a.simhash]), hash_rows([b.simhash])).tolist()
    same_text = a.text_hash == b.text_hash
    signals = replace(measure(shingled(words_a), shingled(words_b), distance), same_text=same_text)
    return Comparison(
        language=known_language,
        kind=kind_of(signals, Thresholds()),
        jaccard=signals.jaccard or 0.0,
        containment_a=signals.containment_a or 0.0,
        containment_b=signals.containment_b or 0.0,
        hamming=distance,
        longest_run_words=signals.longest_run_words or 0,
        copied_words=int(signals.extra[COPIED_WORDS]),
    )


def _language(name: str) -> Language:
    try:
        return SHIPPED.find(name)
    except ValueError:
        known = ", ".join(f"{language.title()} ({code})" for language, code in SHIPPED.codes.items())
        raise ValueError(f"unknown language {name!r}; known are {known}") from None


def _words(text: str, name: str) -> list[bytes]:
    words = tokens(text)
    if not words:
        raise ValueError(f"{name} has no words")
    return words
