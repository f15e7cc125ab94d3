"""Finds the copies among texts in memory: those that `neardup scan` finds among the same texts."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from neardup.languages import SHIPPED
from neardup.query.pairs_in_memory import nominate
from neardup.query.prepared_texts import (
    DETECTION,
    Copy,
    NotComparable,
    PairVerifier,
    PreparedText,
    by_severity,
    prepare,
)
from neardup.records import Language

THREADS = 2  # fingerprinting runs without the interpreter lock


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
    nominated = nominate(prepared, DETECTION)
    common = np.unique(nominated.common.hashes)
    pairs = ((prepared[left], prepared[right]) for left, right in nominated.pairs)
    copies = PairVerifier().copies_of(pairs, common)
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
