"""All candidate pairs among the fingerprints of one language, without a lookup for each story: the work of a sweep.

Keys and buckets.  A key is two bands (first, second) in ascending order, or one band.  The stories with equal values
in the bands of a key form a bucket, and every two members of a bucket are a candidate pair.  For each key, stories are
sorted by its first band, and the members of each run of equal values are joined.  These are the sorted tables of Manku,
Jain and Das Sarma (WWW 2007), made one at a time.

Each pair once.  A pair that shares k bands shares k(k - 1) / 2 buckets.  It is found in the first of its keys, in
lexicographic order.  So a pair's key follows from the values alone, and found pairs need not be remembered.

No bucket is truncated, however large: which pairs are found is a function of the set of stories.  Of the pairs a
`Shortlist` keeps the best matches of each story, in bounded memory.

Lookups join too: a number that occurs in several of the buckets of a lookup is found (`find_shared`).
"""

from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import replace

from neardup.core.candidates.banding import BANDS, Banding, Indices, Numbers, divide_bands
from neardup.core.fingerprint.minhash import ROWS, SignatureRows, count_agreeing_rows
from neardup.core.fingerprint.word_hashes import HashRows, measure_hamming
from neardup.core.native import candidates as native
from neardup.core.native import in_c
from neardup.core.sets import find_edges, rank_in_groups

Positions = npt.NDArray[np.int64]  # the indices of stories in the arrays of fingerprints
BandValues = npt.NDArray[np.unsignedinteger]  # (n, bands): the value of each story in each band
FingerprintBytes = npt.NDArray[np.uint8]  # (n, width)
Ids = npt.NDArray[np.int64]
RankedPairs = npt.NDArray[np.uint64]

HASH_BYTES = 16
BAND_BYTES = HASH_BYTES // BANDS
MAX_KEY_BANDS = 2
CHUNK_PAIRS = 1 << 18  # the most in a chunk, unless more stories share a band
COMPARED_AT_ONCE = 1 << 16  # pairs
NO_POSITIONS = np.empty(0, np.int64)
POSITION_BITS = 24
HAMMING_BITS = 8
ROWS_BITS = 7
MAX_STORIES = 1 << POSITION_BITS
MIN_UNSORTED = 1 << 22  # pairs collected before they are merged into the sorted ones


class LanguageFingerprints(Struct, frozen=True):
    """The fingerprints of the n stories of a language, in order of the stories' ids; n is at most MAX_STORIES.

    `ids` (n,), `simhashes` (n, 2), `signatures` (n, 64); `signed` (n,) marks the stories that have a signature.
    """

    ids: Ids
    simhashes: HashRows
    signatures: SignatureRows
    signed: npt.NDArray[np.bool_]

    @classmethod
    def zeros(cls, size: int) -> Self:
        """Arrays of zeros for so many stories."""
        return cls(
            np.zeros(size, np.int64),
            np.zeros((size, 2), np.uint64),
            np.zeros((size, ROWS), np.uint8),
            np.zeros(size, np.bool_),
        )


class PairChunk(Struct, frozen=True):
    """Some of the pairs, as positions (m,) of stories, left < right.

    `done` is the share of the keys that are done, 0 to 1.
    """

    left: Positions = field(default_factory=lambda: NO_POSITIONS)
    right: Positions = field(default_factory=lambda: NO_POSITIONS)
    done: float = 0.0

    def where(self, kept: npt.NDArray[np.bool_]) -> "PairChunk":
        """The same chunk with only the pairs for which `kept` (m,) is true."""
        return replace(self, left=self.left[kept], right=self.right[kept])


def find_nominated_pairs(
    stories: LanguageFingerprints, banding: Banding, agreeing_rows: int, first_new: int | None = None
) -> Iterator[PairChunk]:
    """The pairs within the Hamming distance, then those of similar signatures; `done` counts the latter's keys only.

    Given `first_new`, only the pairs of a story with an id from `first_new` on and a story before it.
    """
    for chunk in _find_all_pairs(stories, banding, agreeing_rows):
        if first_new is None:
            yield chunk
        else:
            yield chunk.where(is_new_and_old(stories.ids[chunk.left], stories.ids[chunk.right], first_new))


def is_new_and_old(left: Ids, right: Ids, first_new: int) -> npt.NDArray[np.bool_]:
    """Which pairs of ids (n,) consist of one from `first_new` on and one before it."""
    return np.not_equal(left >= first_new, right >= first_new)


def _find_all_pairs(stories: LanguageFingerprints, banding: Banding, agreeing_rows: int) -> Iterator[PairChunk]:
    for chunk in find_near_pairs(stories.simhashes, banding.hamming):
        yield replace(chunk, done=0.0)
    for chunk in find_signature_pairs(
        stories.signatures,
        np.flatnonzero(stories.signed),
        bands=banding.bands,
        shared=banding.shared,
        agreeing_rows=agreeing_rows,
    ):
        # near pairs were yielded above
        yield chunk.where(_compute_distances(stories, chunk.left, chunk.right) > banding.hamming)


def find_near_pairs(simhashes: HashRows, distance: int) -> Iterator[PairChunk]:
    """Every pair of (n, 2) SimHashes within the Hamming distance, 0 to 7, once.

    A key is a group of bands.  Raises ValueError as `divide_bands` does.
    """
    simhash_bytes = np.ascontiguousarray(simhashes).view(np.uint8)
    spans = [
        slice(BAND_BYTES * group.start, BAND_BYTES * group[:MAX_KEY_BANDS].stop) for group in divide_bands(distance)
    ]
    band_values = np.empty((len(simhash_bytes), len(spans)), np.uint32)
    for n, span in enumerate(spans):
        band_values[:, n] = np.ascontiguousarray(simhash_bytes[:, span]).view(f"u{span.stop - span.start}")[:, 0]
    # Hashes that differ in d bits differ in at most d bytes; comparing bytes first saves counting most pairs' bits.
    rules = JoinRules(min_bands=1, min_bytes=HASH_BYTES - distance)
    positions = np.arange(len(simhash_bytes))
    for chunk in _join_keys(Stories(band_values, simhash_bytes), positions, rules):
        bits = measure_hamming(simhashes.take(chunk.left, axis=0), simhashes.take(chunk.right, axis=0))
        yield chunk.where(bits <= distance)


def find_signature_pairs(
    signatures: SignatureRows, signed: Positions, *, bands: int, shared: int, agreeing_rows: int
) -> Iterator[PairChunk]:
    """Every pair of (n, 64) signatures that shares enough bands and agrees in enough rows, once.

    A pair must share at least `shared` of the first `bands` bands, and agree in at least `agreeing_rows` rows.
    `signed` are the positions of the stories that have a signature, ascending.  A key is two bands, or one band if
    `shared` is 1.
    """
    rows = np.ascontiguousarray(signatures)
    band_values = np.ascontiguousarray(rows.view(np.uint16)[:, :bands])
    yield from _join_keys(Stories(band_values, rows), signed, JoinRules(shared, agreeing_rows))


class Stories(NamedTuple):
    """Fingerprints of n stories, as band values and as bytes; both arrays are C-contiguous."""

    band_values: BandValues
    fingerprints: FingerprintBytes


class Runs(NamedTuple):
    """Stories grouped by their value in a band; the positions of run r are members[edges[r]:edges[r + 1]].

    They are sorted by the first band other than this one, and then by position.
    """

    members: Positions
    edges: Positions


class JoinRules(NamedTuple):
    """A pair must share at least `min_bands` bands and agree in at least `min_bytes` bytes of the fingerprints."""

    min_bands: int
    min_bytes: int


class Keys(NamedTuple):
    """The keys (first_band, second) for each second band in range(start, stop).

    The second bands follow the first band; or there is only one, the first band itself: then a key is a single band.
    """

    first_band: int
    start: int
    stop: int
    rules: JoinRules


def _join_keys(stories: Stories, positions: Positions, rules: JoinRules) -> Iterator[PairChunk]:
    """The pairs of all keys among the stories at `positions`."""
    band_values, key_bands = stories.band_values, min(rules.min_bands, MAX_KEY_BANDS)
    order = positions
    for band in reversed(range(key_bands)):
        order = _sort_by(order, band_values[:, band])
    bands = band_values.shape[1]
    all_keys = [Keys(n, n + key_bands - 1, bands if key_bands > 1 else n + 1, rules) for n in range(bands)]
    total, done = sum(keys.stop - keys.start for keys in all_keys), 0
    for keys in all_keys:
        if keys.start == keys.stop:
            continue
        first_values = band_values[:, keys.first_band]
        members = _sort_by(order, first_values)
        runs = Runs(members, find_edges(first_values[members]))
        for left, right, done_here in join_runs(stories, runs, keys, CHUNK_PAIRS):
            yield PairChunk(left, right, done=(done + (keys.stop - keys.start) * done_here) / total)
        done += keys.stop - keys.start
    yield PairChunk(done=1.0)


def _sort_by(order: Positions, values: BandValues) -> Positions:
    """Positions in ascending order of their values (n,), stable: a radix sort, 16 bits at a time."""
    for shift in range(0, 8 * values.itemsize, 16):
        digits = (values >> shift).astype(np.uint16)
        order = order[np.argsort(digits[order], kind="stable")]
    return order


@in_c(native.join_runs)
def join_runs(stories: Stories, runs: Runs, keys: Keys, room: int) -> Iterator[tuple[Positions, Positions, float]]:
    """The pairs of the keys, and the share of work done.

    At most `room` pairs at a time, or as many as the longest run has members if these are more.
    """
    run_of, done = np.repeat(np.arange(len(runs.edges) - 1), np.diff(runs.edges)), 0.0
    for second in range(keys.start, keys.stop):
        values = stories.band_values[runs.members, second].astype(np.int64)
        order = np.lexsort((runs.members, values, run_of))
        members = runs.members[order]
        others = rank_in_groups(find_edges(run_of[order], values[order]))  # of its bucket that each is compared with
        ends = np.cumsum(others)
        for begin in range(0, int(others.sum()), COMPARED_AT_ONCE):
            pairs = np.arange(begin, min(begin + COMPARED_AT_ONCE, ends[-1]))
            later = np.searchsorted(ends, pairs, "right")
            left, right = members[later + pairs - ends[later]], members[later]
            kept = _belong_here(stories, left, right, keys, second)
            left, right = left[kept], right[kept]
            for start in range(0, len(left), room):
                yield left[start : start + room], right[start : start + room], done
        done = (second - keys.start + 1) / (keys.stop - keys.start)
        yield members[:0], members[:0], done


def _belong_here(stories: Stories, left: Positions, right: Positions, keys: Keys, second: int) -> Positions:
    """Which pairs (m,) of members of a bucket, left < right, meet the rules and belong to its key, as indices."""
    equal_bytes = (stories.fingerprints[left] == stories.fingerprints[right]).sum(axis=1)
    shared = stories.band_values[left] == stories.band_values[right]
    shares_earlier = np.delete(shared[:, :second], [band for band in [keys.first_band] if band < second], axis=1)
    meets_rules = (equal_bytes >= keys.rules.min_bytes) & (shared.sum(axis=1) >= keys.rules.min_bands)
    return np.flatnonzero(meets_rules & ~shares_earlier.any(axis=1))


class Shortlist:
    """For each story its best `most` matches among those with lower ids; `left_out` counts the other matches.

    The best match agrees in the most signature rows, then has the smallest Hamming distance, then the lowest id.  Each
    pair is packed into one number of 64 bits that sorts in this order: the story's position, the rows that differ, the
    Hamming distance, and the match's position.  At most 2 * most * n pairs are held, or MIN_UNSORTED if more.
    """

    def __init__(self, stories: LanguageFingerprints, most: int) -> None:
        self._stories = stories
        self._most = most
        self._best: RankedPairs = np.empty(0, np.uint64)
        self._unsorted: list[RankedPairs] = []
        self._unsorted_size = 0
        self._is_cut = np.zeros(len(stories.ids), np.bool_)
        self.left_out = 0

    @property
    def cut(self) -> frozenset[int]:
        """The ids of the stories that had more matches."""
        self._merge()
        return frozenset(self._stories.ids[self._is_cut].tolist())

    def add(self, left: Positions, right: Positions) -> None:
        """Add pairs, left < right; adding a pair again changes nothing."""
        if not len(left):
            return
        self._unsorted.append(self._pack_pairs(left, right))
        self._unsorted_size += len(left)
        if self._unsorted_size > max(MIN_UNSORTED, len(self._best)):
            self._merge()

    def __len__(self) -> int:
        self._merge()
        return len(self._best)

    def pages(self, size: int) -> Iterator[list[tuple[int, int]]]:
        """The pairs as ids (story, match), at most `size` at a time, by story; the matches of a story best first."""
        self._merge()
        for start in range(0, len(self._best), size):
            page = self._best[start : start + size]
            story = self._stories.ids[(page >> np.uint64(POSITION_BITS + HAMMING_BITS + ROWS_BITS)).astype(np.int64)]
            match = self._stories.ids[(page & np.uint64(MAX_STORIES - 1)).astype(np.int64)]
            yield list(zip(story.tolist(), match.tolist(), strict=True))

    def _pack_pairs(self, left: Positions, right: Positions) -> RankedPairs:
        stories = self._stories
        bits = _compute_distances(stories, left, right)
        rows = count_agreeing_rows(stories.signatures.take(left, axis=0), stories.signatures.take(right, axis=0))
        rows[~(stories.signed[left] & stories.signed[right])] = 0
        packed = right
        for value, width in ((ROWS - rows, ROWS_BITS), (bits, HAMMING_BITS), (left, POSITION_BITS)):
            packed = packed << width | value
        return packed.astype(np.uint64)

    def _merge(self) -> None:
        """Merge the unsorted pairs into the best ones, without duplicates, and drop what exceeds `most`."""
        if not self._unsorted:
            return
        ranked = np.concatenate((self._best, *self._unsorted))
        self._unsorted, self._unsorted_size = [], 0
        ranked.sort()
        ranked = ranked[np.diff(ranked, prepend=~ranked[:1]) != 0]
        stories = ranked >> np.uint64(POSITION_BITS + HAMMING_BITS + ROWS_BITS)
        ranks = rank_in_groups(find_edges(stories))
        self._best = ranked[ranks < self._most]
        self._is_cut[stories[ranks >= self._most].astype(np.int64)] = True
        self.left_out += len(ranked) - len(self._best)


def _compute_distances(stories: LanguageFingerprints, left: Positions, right: Positions) -> npt.NDArray[np.int64]:
    """The Hamming distance of each pair."""
    return measure_hamming(stories.simhashes.take(left, axis=0), stories.simhashes.take(right, axis=0))


@in_c(native.find_shared)
def find_shared(members: Numbers, edges: Indices, lookups: Indices, least: int) -> tuple[Numbers, Indices]:
    """For each of n lookups, the numbers that occur in at least `least` of its buckets.

    Bucket b is members[edges[b]:edges[b + 1]]; `lookups` (n, k) are the buckets of each lookup.  The numbers found by
    lookup i are found[ends[i]:ends[i + 1]], ascending, for the returned `found` and `ends` (n + 1,).
    """
    found, ends = [np.empty(0, np.uint32)], np.zeros(len(lookups) + 1, np.int64)
    for lookup, buckets in enumerate(lookups.tolist()):
        gathered = [members[edges[bucket] : edges[bucket + 1]] for bucket in buckets]
        numbers, counts = np.unique(np.concatenate([*gathered, members[:0]]), return_counts=True)
        found.append(numbers[counts >= least])
        ends[lookup + 1] = ends[lookup] + len(found[-1])
    return np.concatenate(found), ends
