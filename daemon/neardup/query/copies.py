"""Finds the copies among texts in memory: those that `neardup scan` finds among the same texts."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from neardup.core.candidates.passage_groups import sharing_pairs
from neardup.core.candidates.top_k import LanguageFingerprints, Shortlist, nominated_pairs
from neardup.core.fingerprint.minhash import signature_rows
from neardup.core.fingerprint.passage_hashes import PassageHashes
from neardup.core.verify.scores import hash_rows
from neardup.languages import SHIPPED
from neardup.query.prepared_texts import (
    DETECTION,
    Copy,
    NotComparable,
    PairVerifier,
    PreparedText,
    by_severity,
    passages_of,
    prepare,
)
from neardup.records import Language

THREADS = 2  # fingerprinting runs without the interpreter lock
PAGE = 10_000  # pairs

Pair = tuple[int, int]  # places of two texts, ascending


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
    prepared, not_compared = _prepared(list(_keyed(texts, keys)), spoken)
    common = _common_passages(prepared)
    verifier = PairVerifier()
    copies = [
        copy
        for left, right in sorted(_nominated(prepared))
        if (copy := verifier.copy_of(prepared[left], prepared[right], common)) is not None
    ]
    return Copies(tuple(sorted(copies, key=by_severity)), not_compared)


def _keyed(texts: Any, keys: Iterable[Hashable] | None) -> Iterator[tuple[Hashable, str]]:
    """The texts with their keys."""
    items = getattr(texts, "items", None)  # of a mapping, or of a column of pandas
    values = texts.to_pylist() if hasattr(texts, "to_pylist") else texts  # Arrow iterates over scalars
    if keys is not None:
        yield from zip(keys, texts.values() if isinstance(texts, Mapping) else values, strict=True)
    elif items is not None:
        yield from items()
    else:
        yield from enumerate(values)


def _prepared(
    texts: Sequence[tuple[Hashable, str]], language: Language | None
) -> tuple[list[PreparedText], dict[Hashable, str]]:
    """The texts that can be compared, and the reasons of the others."""

    def prepare_one(item: tuple[Hashable, str]) -> PreparedText | NotComparable:
        try:
            return prepare(*item, language)
        except NotComparable as error:
            return error

    with ThreadPoolExecutor(THREADS) as executor:
        results = list(executor.map(prepare_one, texts))
    return (
        [one for one in results if isinstance(one, PreparedText)],
        {key: str(one) for (key, _), one in zip(texts, results, strict=True) if isinstance(one, NotComparable)},
    )


def _common_passages(texts: Sequence[PreparedText]) -> PassageHashes:
    """The passage hashes that too many texts have to count as copied, ascending."""
    hashes, holders = np.unique(np.concatenate([np.empty(0, np.uint32), *map(passages_of, texts)]), return_counts=True)
    return hashes[holders > DETECTION.common_passage]


def _nominated(texts: Sequence[PreparedText]) -> set[Pair]:
    """The pairs of texts that may be copies."""
    by_language = defaultdict[Language, list[int]](list)
    for place, text in enumerate(texts):
        by_language[text.language].append(place)
    pairs = set[Pair]()
    for language, places in by_language.items():
        pairs |= _alike(texts, places, language)
    left, right, _ = sharing_pairs([passages_of(text) for text in texts], DETECTION.common_passage)
    return pairs | set(zip(left.tolist(), right.tolist(), strict=True))


def _alike(texts: Sequence[PreparedText], places: Sequence[int], language: Language) -> set[Pair]:
    """The pairs of texts of a language whose SimHashes or signatures are alike."""
    fingerprints = [texts[place].fingerprint for place in places]
    stories = LanguageFingerprints(
        np.array(places, np.int64),
        hash_rows([one.simhash for one in fingerprints]),
        signature_rows([one.signature for one in fingerprints]),
        np.array([one.signature is not None for one in fingerprints], np.bool_),
    )
    shortlist = Shortlist(stories, DETECTION.max_matches)
    for chunk in nominated_pairs(stories, DETECTION.banding(language), DETECTION.agreeing_rows):
        shortlist.add(chunk.left, chunk.right)
    return {(min(pair), max(pair)) for page in shortlist.pages(PAGE) for pair in page}
