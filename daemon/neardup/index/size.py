"""Optional projection of the bytes that an index takes, before it exists; each backend has its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from neardup.core.candidates.banding import Banding
from neardup.records import Language


@dataclass(frozen=True, slots=True)
class LanguageShape:
    """What decides the bytes of a language in an index.

    Of `stories` stories the share `signed` has a signature; `highest_id` is the highest of their ids.  The skews say
    how often two unrelated stories share a band, in times of the uniform 2 ** -16 (see neardup.index.spread).
    `value_bits` is the width of the values of packed buckets.
    """

    language: Language
    stories: float
    signed: float
    highest_id: int
    signature_skew: float
    simhash_skew: float
    banding: Banding
    value_bits: int


@dataclass(frozen=True, slots=True)
class TierSize:
    """The bytes of the buckets of a language that nominate one kind of match, and their number of keys.

    The bytes do not include what all keys share, such as Redis's table of keys.
    """

    bytes: float
    keys: float


@dataclass(frozen=True, slots=True)
class IndexSize:
    """The projected size of an index: of each language by tier, `near` and `similar`, and the `total` in bytes."""

    tiers: Mapping[Language, Mapping[str, TierSize]]
    total: float


class SizeProjection(Protocol):
    """Projects the size of an index of these languages.

    `grown` is an index that grew story by story; without it, one that was rebuilt from the ledger.
    """

    def __call__(self, shapes: Sequence[LanguageShape], *, grown: bool) -> IndexSize: ...
