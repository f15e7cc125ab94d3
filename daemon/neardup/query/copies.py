"""Finds copies among texts in memory, all of them at once or those of one text.

`find_copies` finds the copies that `neardup scan` finds among the same texts.  `Index` is an index in memory: texts are
added to it, and a text is looked up in it.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass  # noqa: TID251 - a Struct cannot be a Sequence
from typing import Any

from neardup.core.languages import SHIPPED
from neardup.core.sets import find_distinct
from neardup.nomination.in_memory import HeldTexts, nominate_pairs
from neardup.query.texts import DETECTION, Copy, KeyedText, NotComparable, PairVerifier, prepare, rank_severity
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
        """The texts of which a text has copies, the most severe first; `b` is the text, whose key is None.

        Raises ValueError for a text that cannot be compared.
        """
        prepared = prepare(None, text, self._language)
        numbers, common = self._held.nominate(prepared)
        pairs = ((self._texts[number - 1], prepared) for number in numbers)
        return sorted(self._verifier.find_copies(pairs, common), key=rank_severity)
