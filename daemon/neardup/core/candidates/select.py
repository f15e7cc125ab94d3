"""Nomination: from the stories that lookups found, selects the pairs of similar fingerprints.

Two stories are alike if they are of one language and either their SimHashes are within its Hamming distance, or their
signatures share enough of its bands and agree in enough rows.  A missing signature agrees with none.  Scoring the pairs
is the inner loop of nomination; ranking them gives each story its best matches.

A few stories are compared with all others without the limits of nomination (`compare`).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from neardup.core.candidates.banding import ROWS_A_BAND, FingerprintArrays, Flags, Indices, Numbers
from neardup.core.fingerprint.minhash import ROWS, SignatureRows
from neardup.core.fingerprint.word_hashes import HashRows, measure_hamming
from neardup.core.native import candidates as native
from neardup.core.native import in_c
from neardup.core.sets import concatenate_ranges, find_distinct
from neardup.records import BandedFingerprint, Language

Thresholds = npt.NDArray[np.int64]  # (languages, 4): hamming, bands, shared_bands, agreeing_rows
Scores = tuple[Flags, Indices, Indices]  # of each pair: alike, rows that agree, bits that differ
Arrays = tuple[npt.NDArray[np.uint8], HashRows, SignatureRows, Flags]  # languages, SimHashes, signatures, signed

T = TypeVar("T", bound=np.generic)
NO_NUMBERS: Numbers = np.empty(0, np.uint32)
NO_STORIES = FingerprintArrays.of((), {})
MAX_UNINDEXED = 10_000  # stories; comparing them with each story of a batch takes about ten milliseconds
LEAST_ROWS = 6  # that the signatures of a pair agree in; those of unrelated stories do once in 4 million pairs
SCORED_AT_ONCE = 1 << 20  # pairs, or those of one lookup if it found more stories


def make_columns(stories: FingerprintArrays) -> Arrays:
    """The arrays of n stories that a comparison needs."""
    return stories.languages, stories.simhashes, stories.signatures, stories.signed


@in_c(native.score_pairs)
def score_pairs(stories: Arrays, others: Arrays, left: Indices, right: Indices, thresholds: Thresholds) -> Scores:
    """Score the pairs (m,) of `stories` and `others` by the thresholds of the first one's language."""
    languages, simhashes, signatures, signed = stories
    other_languages, other_simhashes, other_signatures, other_signed = others
    most_bits, bands, shared_bands, agreeing_rows = thresholds[languages[left]].T
    bits = measure_hamming(simhashes[left], other_simhashes[right])
    equal = (signatures[left] == other_signatures[right]) & (signed[left] & other_signed[right])[:, None]
    rows = equal.sum(axis=1)
    equal_bands = equal[:, ::ROWS_A_BAND] & equal[:, 1::ROWS_A_BAND]
    shared = (equal_bands & (np.arange(equal_bands.shape[1]) < bands[:, None])).sum(axis=1)
    shared[rows < agreeing_rows] = 0
    is_alike = ((bits <= most_bits) | (shared >= shared_bands)) & (languages[left] == other_languages[right])
    return is_alike, rows, bits


@in_c(native.find_alike_pairs)
def find_alike_pairs(
    stories: Arrays, others: Arrays, thresholds: Thresholds, inside: bool
) -> tuple[Indices, Indices, Indices, Indices]:
    """The pairs of `stories` and `others` that are alike and share a band or are near; left < right if `inside`.

    Gives left, right, rows that agree, and bits that differ.
    """
    found = [np.zeros((4, 0), np.int64)]
    for nth, hamming_limit in enumerate(thresholds[stories[0], 0].tolist()):
        right = np.arange(nth + 1 if inside else 0, len(others[0]))
        left = np.full(len(right), nth)
        is_alike, rows, bits = score_pairs.reference(stories, others, left, right, thresholds)
        equal = stories[2][nth] == others[2][right]
        shares_band = (equal[:, ::ROWS_A_BAND] & equal[:, 1::ROWS_A_BAND]).any(axis=1)
        is_found = is_alike & (shares_band | (bits <= hamming_limit))
        found.append(np.stack((left, right, rows, bits))[:, is_found])
    left, right, rows, bits = np.concatenate(found, axis=1)
    return left, right, rows, bits


class Alike(NamedTuple):
    """Pairs of a story and one of the others: the positions of both, and the signature rows in which they agree."""

    stories: Indices
    others: Indices
    rows: Indices


def compare(stories: FingerprintArrays, others: FingerprintArrays, most_bits: int) -> Alike:
    """The pairs within the Hamming distance `most_bits`, or whose signatures agree in LEAST_ROWS rows.

    All stories are of one language.
    """
    return Alike(*close_pairs(make_columns(stories), make_columns(others), most_bits, LEAST_ROWS))


@in_c(native.close_pairs)
def close_pairs(stories: Arrays, others: Arrays, most_bits: int, least_rows: int) -> tuple[Indices, Indices, Indices]:
    """The pairs of `compare` in the order of the others: positions of stories, of others, and the rows that agree."""
    _, simhashes, signatures, signed = stories
    found = [np.zeros((3, 0), np.int64)]
    for nth, (_, simhash, signature, is_signed) in enumerate(zip(*others, strict=True)):
        rows = (signatures == signature).sum(axis=1) * (signed & is_signed)
        near = np.flatnonzero((rows >= least_rows) | (measure_hamming(simhashes, simhash) <= most_bits))
        found.append(np.stack((near, np.full(len(near), nth), rows[near])))
    left, right, rows = np.concatenate(found, axis=1)
    return left, right, rows


class NominationThresholds(Protocol):
    """The thresholds of nomination for a language, and the maximum of matches per story."""

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


class Found(Protocol):
    """The stories that one lookup found, by id or by number."""

    @property
    def ids(self) -> Collection[int]: ...
    @property
    def numbers(self) -> Numbers: ...


class Nominee(Struct, frozen=True):
    """A story of a batch with the ids of its matches: those with lower ids, best first, and then the others outside it.

    A pair counts as a match of the story with the higher id.  `capped` is how many matches of this one were left out.
    """

    story_id: int
    matches: tuple[int, ...]
    capped: int


# The ids of stories with equal fingerprints, and these fingerprints.
StoryGroup = tuple[Sequence[int], BandedFingerprint]


def select_matches(
    batch: Sequence[StoryGroup],
    found: Sequence[Found],
    held: FingerprintArrays,
    thresholds: Mapping[Language, NominationThresholds],
    unindexed: FingerprintArrays = NO_STORIES,
) -> list[Nominee]:
    """For each story of a batch, its matches among the stories its lookup found, the batch, and `unindexed`.

    A match is within the Hamming distance, or shares enough bands and agrees in enough rows.  `found` are the results
    of the lookups of `batch`; `held` has, in order of their numbers, the found stories that still exist.  `unindexed`
    are stories that no lookup could find yet, so they are compared with each of the batch; both number their languages
    as `held.names` does.  Older versions of the batch's own stories are ignored.  The best match agrees in the most
    rows, then has the smallest Hamming distance, then the lowest id.  Of the matches with lower ids than its own, a
    story has the best `max_matches`; of those with higher ids, all that are not in the batch.
    """
    batch_arrays = make_arrays([banded for _, banded in batch], held.names)
    members = np.array([story_id for ids, _ in batch for story_id in ids], np.int64)
    sizes = np.array([len(ids) for ids, _ in batch], np.int64)
    table = _make_threshold_table(thresholds, held.names)
    unindexed = unindexed.where(~np.isin(unindexed.ids, members))
    others = held.where(~np.isin(held.ids, np.concatenate((members, unindexed.ids))))
    columns, columns_held = make_columns(batch_arrays), make_columns(others)
    left, right, rows, bits = find_alike_pairs(columns, make_columns(unindexed), table, False)
    of_unindexed = np.stack((left, -rows, bits, unindexed.ids[right]))
    left, right, rows, bits = find_alike_pairs(columns, columns, table, True)
    # Within the batch: both directions of each pair, and stories with equal fingerprints, each paired with its group.
    shared = np.flatnonzero(sizes > 1)
    left, right = np.concatenate((left, right, shared)), np.concatenate((right, left, shared))
    rows = np.concatenate((rows, rows, ROWS * batch_arrays.signed[shared]))
    bits = np.concatenate((bits, bits, np.zeros_like(shared)))
    each_member = concatenate_ranges((np.cumsum(sizes) - sizes)[right], sizes[right])
    scores = (np.repeat(column, sizes[right]) for column in (left, -rows, bits))
    unfound = np.concatenate((of_unindexed, np.stack((*scores, members[each_member]))), axis=1)
    nominees = []
    for start, stop in _cut_by_size(found):
        left, right = _list_found_pairs(found[start:stop], others)
        is_alike, rows, bits = score_pairs(columns, columns_held, left + start, right, table)
        of_found = np.stack((left + start, -rows, bits, others.ids[right]))[:, is_alike]
        ranked = np.concatenate((of_found, unfound[:, (unfound[0] >= start) & (unfound[0] < stop)]), axis=1)
        ranked = ranked[:, np.lexsort(ranked[::-1])]
        ends = np.searchsorted(ranked[0], np.arange(start, stop + 1)).tolist()
        for (ids, banded), begin, end in zip(batch[start:stop], ends, ends[1:], strict=False):
            best, most = ranked[3, begin:end], thresholds[banded.language].max_matches
            outside = best[~np.isin(best, members)] if len(best) else best
            for story_id in ids:
                earlier = best[best < story_id]
                matches = np.concatenate((earlier[:most], outside[outside > story_id]))
                nominees.append(Nominee(story_id, tuple(matches.tolist()), max(0, len(earlier) - most)))
    return nominees


def _cut_by_size(found: Sequence[Found]) -> Iterator[tuple[int, int]]:
    """The lookups (start, stop) whose stories are scored at once: the memory is that of one batch, or one lookup."""
    start, size = 0, 0
    for nth, lookup in enumerate(found):
        own = len(lookup.ids) + len(lookup.numbers)
        if size + own > SCORED_AT_ONCE and nth > start:
            yield start, nth
            start, size = nth, 0
        size += own
    yield start, len(found)


def merge_found(found: Sequence[Found]) -> tuple[set[int], list[int]]:
    """All ids and all numbers that the lookups found, without duplicates."""
    return set[int]().union(*(lookup.ids for lookup in found)), find_distinct(
        np.concatenate([NO_NUMBERS, *(lookup.numbers for lookup in found)])
    ).tolist()


def make_arrays(bandeds: Sequence[BandedFingerprint], names: Mapping[int, Language]) -> FingerprintArrays:
    """Arrays of fingerprints without story numbers and ids; `names` maps numbers to languages."""
    number_of = {name: number for number, name in names.items()}
    rows = ((0, 0, number_of[banded.language], banded.simhash, banded.signature) for banded in bandeds)
    return FingerprintArrays.of(rows, names)


def is_worth_comparing(a: BandedFingerprint, b: BandedFingerprint, thresholds: NominationThresholds) -> bool:
    """Whether two stories would nominate each other if a lookup found them, whatever bands they share."""
    names = dict(enumerate({a.language, b.language}))
    columns = make_columns(make_arrays([a, b], names))
    return len(find_alike_pairs(columns, columns, _make_threshold_table({a.language: thresholds}, names), True)[0]) > 0


def _make_threshold_table(
    thresholds: Mapping[Language, NominationThresholds], names: Mapping[int, Language]
) -> Indices:
    """(languages, 4), by number: hamming, bands, shared_bands, agreeing_rows; zeros for a language without them."""
    table = np.zeros((max(names, default=0) + 1, 4), np.int64)
    for number, language in names.items():
        if (own := thresholds.get(language)) is not None:
            table[number] = own.hamming, own.bands, own.shared_bands, own.agreeing_rows
    return table


def _list_found_pairs(found: Sequence[Found], held: FingerprintArrays) -> tuple[Indices, Indices]:
    """The pairs of a lookup and a story it found: indices into `found` and into `held`, without duplicates."""
    by_id = np.argsort(held.ids)
    ids = [np.fromiter(lookup.ids, np.int64, len(lookup.ids)) for lookup in found]
    left, place = _locate(ids, held.ids[by_id])
    pairs = [left * len(held) + by_id[place]]
    left, place = _locate([lookup.numbers for lookup in found], held.numbers)
    pairs.append(left * len(held) + place)
    pairs_once = find_distinct(np.concatenate(pairs))
    return np.divmod(pairs_once, max(len(held), 1))


def _locate(wanted: Sequence[npt.NDArray[T]], ascending: npt.NDArray[T]) -> tuple[Indices, Indices]:
    """The wanted values that are in an ascending array: for each, the number of its sequence and its index there."""
    values = np.concatenate([*wanted, ascending[:0]])
    owners = np.repeat(np.arange(len(wanted)), [len(values) for values in wanted])
    indices = np.searchsorted(ascending, values)
    exists = (
        np.append(ascending, ascending[:1])[indices] == values if len(ascending) else np.zeros(len(values), np.bool_)
    )
    exists &= indices < len(ascending)
    return owners[exists], indices[exists]
