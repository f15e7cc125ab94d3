"""Binding of `candidates.c`, `key_join.c` and `passage_join.c`: pairs of stories that are worth verifying.

The references say what each function gives.
"""

from collections.abc import Callable, Iterator
from ctypes import POINTER, Structure, byref, c_int64, c_void_p
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neardup.core.fingerprint.word_hashes import MIN_SHARED
from neardup.core.native import BOOL, INT64, UINT8, UINT32, UINT64, address, bind, check_code, list_fields

if TYPE_CHECKING:
    from neardup.core.candidates.all_pairs import Keys, Runs, Stories
    from neardup.core.candidates.key_pairs import Buckets, HashBuckets, KeyTable
    from neardup.core.candidates.select import Arrays, Thresholds


Indices = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.uint32]
Flags = npt.NDArray[np.bool_]

PAIRS_AT_ONCE = 1 << 12
NUMBERS_AT_ONCE = 1 << 20
HASH_SLOTS = 1 << 16


class _Fingerprints(Structure):
    _fields_ = list_fields("size *languages *simhashes *signatures *is_signed")

    def __init__(self, arrays: "Arrays") -> None:
        languages, simhashes, signatures, signed = self.arrays = arrays  # whose addresses it holds
        size = len(languages)
        if [array.shape for array in arrays] != [(size,), (size, 2), (size, 64), (size,)]:
            raise ValueError("the arrays are not of the same stories")
        super().__init__(
            size,
            address(languages, np.uint8),
            address(simhashes, np.uint64),
            address(signatures, np.uint8),
            address(signed, np.bool_),
        )


class _KeyJoin(Structure):
    _fields_ = [
        ("stories", _Fingerprints),
        *list_fields("*ids buckets *edges *keys *splits languages *thresholds *group_edges *max_matches"),
    ]


class _HashJoin(Structure):
    _fields_ = [
        ("stories", _Fingerprints),
        *list_fields("*ids buckets *edges *hashes lists_size *lists *ends languages *thresholds min_shared"),
    ]


class _Pairs(Structure):
    _fields_ = list_fields("room *left *right *rows *bits")


class _CommonHashes(Structure):
    _fields_ = list_fields("size room *hashes *holders *surplus *examples")


class _Join(Structure):
    _fields_ = list_fields(
        "stories bands band_bytes *band_values width *fingerprints members_size *members runs *edges first_band start"
        " stop min_bands min_bytes run second next is_prepared work_size *heads *links *skips *values room *left *right"
    )


_STORIES = POINTER(_Fingerprints)
_COLUMN, _SIZE = c_void_p, c_int64
_score_pairs = bind("nd_score_pairs", _STORIES, _STORIES, INT64, INT64, _SIZE, INT64, _SIZE, BOOL, INT64, INT64)
_alike_pairs = bind("nd_alike_pairs", _STORIES, _STORIES, INT64, _SIZE, c_int64, INT64, *[_COLUMN] * 4, _SIZE)
_compare = bind("nd_compare", _STORIES, _STORIES, c_int64, c_int64, INT64, *[_COLUMN] * 3, _SIZE)
_join_buckets = bind("nd_join_buckets", POINTER(_Join))
_pairs_in_buckets = bind("nd_pairs_in_buckets", POINTER(_KeyJoin), INT64, INT64, _SIZE, POINTER(_Pairs), INT64)
_pairs_in_hash_buckets = bind("nd_pairs_in_hash_buckets", POINTER(_HashJoin), INT64, *[_COLUMN] * 3, _SIZE)
_cut_into_groups = bind(
    "nd_cut_into_groups",
    *(UINT64, _SIZE, UINT8, UINT32, _SIZE, c_int64, c_int64, UINT32, UINT32, _SIZE, POINTER(_CommonHashes)),
)
_list_earlier = bind("nd_list_earlier", UINT32, _SIZE, c_int64, UINT32, _SIZE, INT64, _SIZE)
_count_shared = bind(
    "nd_count_shared", UINT32, _SIZE, INT64, _SIZE, c_int64, c_int64, UINT32, _SIZE, UINT32, UINT32, INT64, _SIZE
)
_shared_by = bind("nd_shared_by", UINT32, _SIZE, INT64, _SIZE, INT64, _SIZE, _SIZE, c_int64, UINT32, _SIZE, INT64)


def score_pairs(
    stories: "Arrays", others: "Arrays", left: Indices, right: Indices, thresholds: "Thresholds"
) -> tuple[Flags, Indices, Indices]:
    size = len(left)
    is_alike, rows, bits = np.empty(size, np.bool_), np.empty(size, np.int64), np.empty(size, np.int64)
    pairs = left, _check_rows(right, left), size
    sides = _Fingerprints(stories), _Fingerprints(others)
    check_code(_score_pairs(*sides, *pairs, thresholds, len(thresholds), is_alike, rows, bits))
    return is_alike, rows, bits


def find_alike_pairs(
    stories: "Arrays", others: "Arrays", thresholds: "Thresholds", inside: bool
) -> tuple[Indices, Indices, Indices, Indices]:
    sides = _Fingerprints(stories), _Fingerprints(others)

    def fill(cursor: Indices, columns: list[int], room: int) -> int:
        return _alike_pairs(*sides, thresholds, len(thresholds), inside, cursor, *columns, room)

    left, right, rows, bits = _collect(fill, len(stories[0]), 4, PAIRS_AT_ONCE)
    return left, right, rows, bits


def close_pairs(
    stories: "Arrays", others: "Arrays", most_bits: int, least_rows: int
) -> tuple[Indices, Indices, Indices]:
    sides = _Fingerprints(stories), _Fingerprints(others)

    def fill(cursor: Indices, columns: list[int], room: int) -> int:
        return _compare(*sides, most_bits, least_rows, cursor, *columns, room)

    left, right, rows = _collect(fill, len(others[0]), 3, PAIRS_AT_ONCE)
    return left, right, rows


def join_runs(stories: "Stories", runs: "Runs", keys: "Keys", room: int) -> Iterator[tuple[Indices, Indices, float]]:
    band_values, members, edges = stories.band_values, runs.members, runs.edges
    longest = int(np.diff(edges).max(initial=0))
    if longest < 2:
        return
    links, skips, values = np.empty(longest, np.int32), np.empty(longest, np.int32), np.empty(longest, np.uint16)
    heads = np.full(HASH_SLOTS, -1, np.int32)
    room = max(room, longest)
    left, right = np.empty(room, np.int64), np.empty(room, np.int64)
    join = _Join(
        stories=len(band_values),
        bands=band_values.shape[1],
        band_bytes=band_values.itemsize,
        band_values=address(band_values, np.uint16 if band_values.itemsize == 2 else np.uint32),
        width=stories.fingerprints.shape[1],
        fingerprints=address(_check_rows(stories.fingerprints, band_values), np.uint8),
        members_size=len(members),
        members=address(members, np.int64),
        runs=len(edges) - 1,
        edges=address(edges, np.int64),
        first_band=keys.first_band,
        start=keys.start,
        stop=keys.stop,
        min_bands=keys.rules.min_bands,
        min_bytes=keys.rules.min_bytes,
        second=keys.start,
        work_size=longest,
        heads=address(heads, np.int32),
        links=address(links, np.int32),
        skips=address(skips, np.int32),
        values=address(values, np.uint16),
        room=room,
        left=address(left, np.int64),
        right=address(right, np.int64),
    )
    while join.run < join.runs:
        found = check_code(_join_buckets(byref(join)))
        yield left[:found].copy(), right[:found].copy(), join.run / join.runs


def rank_pairs(buckets: "Buckets", table: "KeyTable") -> tuple[Indices, Indices, Indices, Indices, Indices]:
    stories, rows, languages = _Fingerprints(buckets.arrays), len(buckets.ids), len(table.max_matches)
    count, largest = len(buckets.keys), int(np.diff(buckets.edges).max(initial=0))
    _check_sizes(buckets.arrays[0], rows, buckets.edges, count + 1, buckets.splits, count)
    _check_sizes(table.group_edges, languages, table.thresholds, languages)
    join = _KeyJoin(
        stories,
        address(buckets.ids, np.int64),
        count,
        address(buckets.edges, np.int64),
        address(buckets.keys, np.uint64),
        address(buckets.splits, np.int64),
        languages,
        address(table.thresholds, np.int64),
        address(table.group_edges, np.int64),
        address(table.max_matches, np.int64),
    )
    most = min(largest, int(table.max_matches.max(initial=0)))
    ranks, left_out = np.empty(most, np.int64), np.zeros(languages, np.int64)

    def fill(cursor: Indices, columns: list[int], room: int) -> int:
        return _pairs_in_buckets(byref(join), cursor, ranks, most, byref(_Pairs(room, *columns)), left_out)

    left, right, agreeing, differing = _collect(fill, count, 4, max(most, PAIRS_AT_ONCE))
    return left, right, agreeing, differing, left_out


def find_hash_sharing_pairs(
    buckets: "HashBuckets", thresholds: "Thresholds", min_shared: int = MIN_SHARED
) -> tuple[Indices, Indices, Indices]:
    stories, rows, count = _Fingerprints(buckets.arrays), len(buckets.ids), len(buckets.hashes)
    _check_sizes(buckets.arrays[0], rows, buckets.ends, rows + 1, buckets.edges, count + 1)
    join = _HashJoin(
        stories,
        address(buckets.ids, np.int64),
        count,
        address(buckets.edges, np.int64),
        address(buckets.hashes, np.int64),
        len(buckets.lists),
        address(buckets.lists, np.int64),
        address(buckets.ends, np.int64),
        len(thresholds),
        address(thresholds, np.int64),
        min_shared,
    )

    def fill(cursor: Indices, columns: list[int], room: int) -> int:
        return _pairs_in_hash_buckets(byref(join), cursor, *columns, room)

    largest = int(np.diff(buckets.edges).max(initial=0))
    left, right, shared = _collect(fill, count, 3, max(largest, PAIRS_AT_ONCE))
    return left, right, shared


def find_groups(  # noqa: PLR0917 - the parameters of the function in C
    postings: npt.NDArray[np.uint64],
    language_of: npt.NDArray[np.uint8],
    copy_keys: Numbers,
    common: int,
    most: int,
    pairs_of: Numbers,
) -> tuple[Numbers, Numbers, Indices, Indices, Numbers]:
    size = len(postings)
    groups = np.empty(size + size // 2 + 2, np.uint32)
    hashes, examples = np.empty(size, np.uint32), np.empty(size, np.uint32)
    holders, surplus = np.empty(size, np.int64), np.empty(size, np.int64)
    counts = address(holders, np.int64), address(surplus, np.int64)
    commons = _CommonHashes(0, size, address(hashes, np.uint32), *counts, address(examples, np.uint32))
    stories = language_of, _check_rows(copy_keys, language_of), len(language_of)
    pair_counts = _check_rows(pairs_of, language_of)
    code = _cut_into_groups(postings, size, *stories, common, most, pair_counts, groups, len(groups), byref(commons))
    end = check_code(code)
    found = commons.size
    counts_found = holders[:found].copy(), surplus[:found].copy()
    return groups[:end].copy(), hashes[:found].copy(), *counts_found, examples[:found].copy()


def list_earlier(groups: Numbers, first: int, earlier: Numbers, ends: Indices) -> None:
    check_code(_list_earlier(groups, len(groups), first, earlier, len(earlier), ends, len(ends)))


def list_shared_counts(
    earlier: Numbers, ends: Indices, first: int, min_shared: int = MIN_SHARED
) -> tuple[Numbers, Numbers, Indices]:
    room = int(ends[-1] - ends[0]) // min_shared
    left, right, shared = np.empty(room, np.uint32), np.empty(room, np.uint32), np.empty(room, np.int64)
    work = np.empty(int(np.diff(ends).max(initial=0)), np.uint32)
    lists = earlier, len(earlier), ends, len(ends) - 1
    found = check_code(_count_shared(*lists, first, min_shared, work, len(work), left, right, shared, room))
    return left[:found].copy(), right[:found].copy(), shared[:found].copy()


def find_shared(members: Numbers, edges: Indices, lookups: Indices, least: int) -> tuple[Numbers, Indices]:
    size, buckets = lookups.shape
    room = min(len(members) + 1, NUMBERS_AT_ONCE)
    found, own_ends = np.empty(room, np.uint32), np.empty(size + 1, np.int64)
    ends, parts, done = np.zeros(size + 1, np.int64), list[Numbers](), 0
    while done < size:
        question = members, len(members), edges, len(edges), lookups[done:], size - done, buckets, least
        made = check_code(_shared_by(*question, found, len(found), own_ends))
        if not made:
            found = np.empty(2 * len(found), np.uint32)
        ends[done + 1 : done + made + 1] = ends[done] + own_ends[1 : made + 1]
        parts.append(found[: own_ends[made]].copy())
        done += made
    return parts[0] if len(parts) == 1 else np.concatenate([*parts, found[:0]]), ends


def _collect(fill: Callable[[Indices, list[int], int], int], whole: int, columns: int, room: int) -> list[Indices]:
    """The columns of all pairs that `fill` writes, given a cursor, the addresses of columns and their room.

    They are complete when the cursor's first element is `whole`.
    """
    cursor, out = np.zeros(2, np.int64), np.empty((columns, room), np.int64)
    at, parts = [address(column, np.int64) for column in out], [out[:, :0]]
    while cursor[0] < whole:
        found = check_code(fill(cursor, at, room))
        parts.append(out[:, :found].copy())
    return list(parts[1] if len(parts) == 2 else np.concatenate(parts, axis=1))


def _check_rows(array: npt.NDArray[Any], other: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array, which must have as many rows as another."""
    _check_sizes(array, len(other))
    return array


def _check_sizes(*arrays_and_sizes: Any) -> None:
    for array, size in zip(arrays_and_sizes[::2], arrays_and_sizes[1::2], strict=True):
        if len(array) != size:
            raise ValueError(f"an array of {len(array)} rows must have {size}")
