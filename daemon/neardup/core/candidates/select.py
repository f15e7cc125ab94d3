"""From what the bands brought up, the pairs worth a verifier's time."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import Numbers
from neardup.core.candidates.fingerprint_arrays import FingerprintArrays
from neardup.core.candidates.screen import alike, alike_across, alike_inside
from neardup.core.fingerprint.minhash import ROWS
from neardup.records import Banded, Language

T = TypeVar("T", bound=np.generic)
Places = npt.NDArray[np.int64]
NOBODY: Numbers = np.empty(0, np.uint32)
NO_STORIES = FingerprintArrays.of((), {})
MOST_UNSEEN = 10_000  # to compare so many with each of a batch takes ten milliseconds or so


class Limits(Protocol):
    """What a pair must show to be nominated, and how many matches of a story are kept."""

    @property
    def hamming(self) -> int: ...
    @property
    def bands(self) -> int: ...
    @property
    def shared_bands(self) -> int: ...
    @property
    def agreeing_rows(self) -> int: ...
    @property
    def max_matches(self) -> int: ...


class Met(Protocol):
    """The stories that the bands brought up for one, by id or by number."""

    @property
    def ids(self) -> Collection[int]: ...
    @property
    def numbers(self) -> Numbers: ...


@dataclass(frozen=True, slots=True)
class Nominee:
    """One story of a batch with its matches, best first; `capped` were left out."""

    story_id: int
    matches: tuple[int, ...]
    capped: int


Alike = tuple[Sequence[int], Banded]  # the ids of stories that share their fingerprints


def nominate(
    batch: Sequence[Alike],
    met: Sequence[Met],
    held: FingerprintArrays,
    limits: Mapping[Language, Limits],
    unseen: FingerprintArrays = NO_STORIES,
) -> list[Nominee]:
    """For each story of a batch, those it met, in `held` or in the batch, that are worth comparing with it.

    They are within the Hamming distance, or share enough bands and agree in enough rows.  `met` goes with
    `batch`; `held` has, in order of their numbers, those of them that are still there.  `unseen` are stories
    that no lookup could bring up yet, so they are compared with each of the batch; their languages have the
    numbers that they have in `held`.  An older version of a story of the batch counts for nothing.  Best is who
    agrees in the most rows, then who is nearest, then who has the lowest id.
    """
    mine = columns_of([banded for _, banded in batch], held.names)
    members = np.array([story_id for ids, _ in batch for story_id in ids], np.int64)
    sizes = np.array([len(ids) for ids, _ in batch], np.int64)
    table = _table(limits, held.names)
    unseen = unseen.where(~np.isin(unseen.ids, members))
    others = held.where(~np.isin(held.ids, np.concatenate((members, unseen.ids))))
    left, right = _met(met, others)
    worth, rows, bits = alike(mine, others, left, right, table)
    pairs = [np.stack((left, -rows, bits, others.ids[right]))[:, worth]]
    left, right, rows, bits = alike_across(mine, unseen, table)
    pairs.append(np.stack((left, -rows, bits, unseen.ids[right])))
    left, right, rows, bits = alike_inside(mine, table)
    twins = np.flatnonzero(sizes > 1)
    left, right = np.concatenate((left, right, twins)), np.concatenate((right, left, twins))
    rows = np.concatenate((rows, rows, ROWS * mine.signed[twins]))
    bits = np.concatenate((bits, bits, np.zeros_like(twins)))
    each = _spread((np.cumsum(sizes) - sizes)[right], sizes[right])
    pairs.append(np.stack((*(np.repeat(column, sizes[right]) for column in (left, -rows, bits)), members[each])))
    ranked = np.concatenate(pairs, axis=1)
    ranked = ranked[:, np.lexsort(ranked[::-1])]
    ends = np.searchsorted(ranked[0], np.arange(len(batch) + 1)).tolist()
    nominees = []
    for (ids, banded), begin, end in zip(batch, ends, ends[1:], strict=False):
        best, most = ranked[3, begin:end].tolist(), limits[banded.language].max_matches
        for story_id in ids:
            matches = [other for other in best[: most + 1] if other != story_id][:most]
            nominees.append(Nominee(story_id, tuple(matches), len(best) - (len(ids) > 1) - len(matches)))
    return nominees


def together(met: Sequence[Met]) -> tuple[set[int], list[int]]:
    """All ids and all numbers that were met, each once."""
    return set[int]().union(*(one.ids for one in met)), np.unique(
        np.concatenate([NOBODY, *(one.numbers for one in met)])
    ).tolist()


def columns_of(bandeds: Sequence[Banded], names: Mapping[int, Language]) -> FingerprintArrays:
    """Fingerprints that no ledger has numbered; `names` are the languages by number."""
    number_of = {name: number for number, name in names.items()}
    rows = ((0, 0, number_of[one.language], one.simhash, one.signature) for one in bandeds)
    return FingerprintArrays.of(rows, names)


def worth_comparing(one: Banded, other: Banded, limits: Limits) -> bool:
    """Whether these two would nominate each other, had their bands met."""
    names = dict(enumerate({one.language, other.language}))
    return len(alike_inside(columns_of([one, other], names), _table({one.language: limits}, names))[0]) > 0


def _table(limits: Mapping[Language, Limits], names: Mapping[int, Language]) -> Places:
    """By language's number: hamming, bands, shared_bands, agreeing_rows; zeros for a language without limits."""
    table = np.zeros((max(names, default=0) + 1, 4), np.int64)
    for number, language in names.items():
        if (own := limits.get(language)) is not None:
            table[number] = own.hamming, own.bands, own.shared_bands, own.agreeing_rows
    return table


def _met(met: Sequence[Met], held: FingerprintArrays) -> tuple[Places, Places]:
    """Who met whom: places in `met` and in `held`, each pair once."""
    by_id = np.argsort(held.ids)
    ids = [np.fromiter(one.ids, np.int64, len(one.ids)) for one in met]
    left, place = _places(ids, held.ids[by_id])
    pairs = [left * len(held) + by_id[place]]
    left, place = _places([one.numbers for one in met], held.numbers)
    pairs.append(left * len(held) + place)
    pairs_once = np.unique(np.concatenate(pairs))
    return np.divmod(pairs_once, max(len(held), 1))


def _places(wanted: Sequence[npt.NDArray[T]], ascending: npt.NDArray[T]) -> tuple[Places, Places]:
    """Of the values that each wants, those that are there: who wants it, and its place."""
    values = np.concatenate([*wanted, ascending[:0]])
    who = np.repeat(np.arange(len(wanted)), [len(one) for one in wanted])
    places = np.searchsorted(ascending, values)
    there = np.append(ascending, ascending[:1])[places] == values if len(ascending) else np.zeros(len(values), np.bool_)
    there &= places < len(ascending)
    return who[there], places[there]


def _spread(starts: Places, counts: Places) -> Places:
    """The numbers of each range, one range after the other."""
    ends = np.cumsum(counts)
    return np.arange(counts.sum()) + np.repeat(starts - ends + counts, counts)
