"""The library's functions for texts at hand, without a ledger, a store or a configuration.

`fingerprint` is of one text, and `compare` says what two have in common.  `find_copies` finds the copies among many,
those that `neardup scan` finds among the same texts; `Index` is an index in memory: texts are added to it, and a text
is looked up in it.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass  # noqa: TID251 - a Struct cannot be a Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

from msgspec import Struct

from neardup.config import Detection
from neardup.core.fingerprint.compute import fingerprint_text
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.languages import SHIPPED
from neardup.core.page import MIN_WORDS, is_too_short
from neardup.core.sets import find_distinct
from neardup.core.text.scripts import UnknownScript, detect_language, find_most_frequent_script
from neardup.core.verify.scores import ComparedPair, assess_all, compare_texts
from neardup.core.verify.spans import measure_similarity
from neardup.core.verify.text import Text
from neardup.core.verify.tiers import COPIED_WORDS, find_tier
from neardup.nomination.in_memory import HeldTexts, nominate_pairs
from neardup.records import Assessment, Candidate, Fingerprint, Kind, Language, PairedStory, Spans

DETECTION = Detection()
CACHED_TEXTS = 1_000
PAIRS_AT_A_TIME = 250  # that are verified
THREADS = 2  # fingerprinting runs without the interpreter lock
CharacterSpans = tuple[tuple[int, int], ...]


class Comparison(Struct, frozen=True):
    """What two texts have in common; `kind` is by the default thresholds, None if neither is a copy.

    `similarity`, 0 to 1, is the larger share of either text's words that is copied, with edits within passages.
    `jaccard` and the containments, 0 to 1, compare their sets of word 2-shingles, or of consonant 8-grams for
    texts in two scripts and the kind `transliterated`; `containment_a` is the share of a's shingles that occur in b.
    `hamming` is the Hamming distance of their SimHashes, 0 to 128.  `copied_words` are the words of passages that
    stand in both, edits and repetitions not counted.  `spans_a` and `spans_b` are these passages with their edits:
    characters [start, end) of each text in NFC, the Unicode form of most texts.
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
    """Fingerprint a text; it has the same fingerprint in every language, so that `language` is only checked.

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
    # a detected language is too uncertain: related languages in one script are compared as one
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
    The other numbers, and the spans of copied characters, are as in `Comparison`.
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


# Copies among many texts.


@dataclass(frozen=True, slots=True)
class Copies(Sequence[Copy]):
    """The copies that were found, the most severe first; `not_compared` maps the keys of other texts to the reason."""

    pairs: tuple[Copy, ...]
    not_compared: Mapping[Hashable, str]

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, place: Any) -> Any:
        return self.pairs[place]


def find_copies(texts: Any, *, keys: Iterable[Hashable] | None = None, language: str | None = None) -> Copies:
    """Find the copies among texts.

    `texts` is a list of str, a mapping of keys to str, or a column of pandas, polars or Arrow; the keys of a list are
    its places, those of a pandas column its index, unless `keys` are given.  Each text's language is detected unless
    `language` is given, as a name or an ISO 639-1 code.  Raises ValueError for an unknown language, and for keys that
    are not as many as the texts; TypeError for a whole table and for a single text.
    """
    if hasattr(texts, "columns"):
        raise TypeError('texts is a table: give its column of texts, such as table["text"], and its ids as keys')
    if isinstance(texts, str):
        raise TypeError("texts is a single text: give a list of texts, or use compare for two of them")
    spoken = None if language is None else SHIPPED.find(language)
    prepared, not_compared = _prepare_all(list(_add_keys(texts, keys)), spoken)
    nominated = nominate_pairs(prepared, DETECTION)
    common = find_distinct(nominated.common.hashes)
    pairs = ((prepared[left], prepared[right]) for left, right in nominated.pairs)
    copies = PairVerifier().find_copies(pairs, common)
    return Copies(tuple(sorted(copies, key=rank_severity)), not_compared)


def _add_keys(texts: Any, keys: Iterable[Hashable] | None) -> Iterator[tuple[Hashable, str]]:
    """The texts with their keys."""
    items = getattr(texts, "items", None)  # of a mapping, or of a column of pandas
    values = texts.to_pylist() if hasattr(texts, "to_pylist") else texts  # Arrow iterates over scalars
    if keys is not None:
        yield from zip(keys, texts.values() if isinstance(texts, Mapping) else values, strict=True)
    elif items is not None:
        yield from items()
    else:
        yield from enumerate(values)


def _prepare_all(
    texts: Sequence[tuple[Hashable, str]], language: Language | None
) -> tuple[list[KeyedText], dict[Hashable, str]]:
    """The texts that can be compared, and the reasons of the others."""

    def prepare_or_refuse(item: tuple[Hashable, str]) -> KeyedText | NotComparable:
        try:
            return prepare(*item, language)
        except NotComparable as error:
            return error

    with ThreadPoolExecutor(THREADS) as executor:
        results = list(executor.map(prepare_or_refuse, texts))
    return (
        [result for result in results if isinstance(result, KeyedText)],
        {
            key: str(result)
            for (key, _), result in zip(texts, results, strict=True)
            if isinstance(result, NotComparable)
        },
    )


class Index:
    """Texts in memory, and the copies among them of a text that is looked up; not thread-safe.

    A text takes about 2 KB beside itself, and a look-up compares fingerprints with all texts of the language.  Each
    text's language is detected unless `language` is given, as a name or an ISO 639-1 code.  Raises ValueError for an
    unknown language.
    """

    def __init__(self, language: str | None = None) -> None:
        self._language = None if language is None else SHIPPED.find(language)
        self._texts: list[KeyedText] = []
        self._keys: set[Hashable] = set()
        self._held = HeldTexts(DETECTION)
        self._verifier = PairVerifier()

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, key: Hashable, text: str) -> None:
        """Add a text.  Raises ValueError for a text that cannot be compared, and for a key that was added before."""
        if key in self._keys:
            raise ValueError(f"the key {key!r} was added before")
        prepared = prepare(key, text, self._language)
        self._keys.add(key)
        self._texts.append(prepared)
        self._held.add(prepared)

    def look_up(self, text: str) -> list[Copy]:
        """The copies among a text and those held, the most severe first; `b` is the text, whose key is None.

        Raises ValueError for a text that cannot be compared.
        """
        prepared = prepare(None, text, self._language)
        numbers, common = self._held.nominate(prepared)
        pairs = ((self._texts[number - 1], prepared) for number in numbers)
        return sorted(self._verifier.find_copies(pairs, common), key=rank_severity)
