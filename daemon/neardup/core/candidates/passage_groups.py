"""Pairs of stories that share passage hashes, without a lookup for each story: of files, or of stories in memory.

Postings, sorted by hash, are cut into groups: the stories that hold a hash.  A group makes every two of its stories a
pair that shares one hash.  Pairs are then counted by their later story, a range of stories at a time:
each group copies its earlier members to the list of each of its members in the range, and what a list contains
twice shares two hashes.  So no pair is ever written to a file, and no pair is sorted but within the list of one story.

A hash that too many stories hold is common, and makes no group.  Copies of one story count once, or nearly so: what is
counted are the different copy keys of the holders (see `banding.copy_keys`).  As n copies make n^2 / 2 pairs, a hash of
more than MOST_COPIES stories is common all the same.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import Numbers
from neardup.core.fingerprint.word_hashes import MIN_SHARED, PassageHashes
from neardup.core.native import candidates as native
from neardup.core.native import in_c, make_record
from neardup.core.sets import find_distinct, find_edges, rank_in_groups

PAIRS_AT_A_TIME = 1 << 24  # that are counted at a time: 4 bytes each
MOST_COPIES = 1_000  # stories
DEAD = 255  # in place of a language, for a number that is no story's

Positions = npt.NDArray[np.intp]
LanguageOf = npt.NDArray[np.uint8]
Counts = npt.NDArray[np.int64]
PairCounts = npt.NDArray[np.uint32]
Postings = npt.NDArray[np.uint64]  # a passage hash in the upper half, the number of a story that has it in the lower
HASH_SHIFT = np.uint64(32)


class CommonHashes(NamedTuple):
    """Hashes (n,) that too many stories hold, how many do, and one of them; once for each language among them.

    `surplus` has how many are too many, see `count_surplus`.
    """

    hashes: PassageHashes
    holders: Counts
    surplus: Counts
    examples: Numbers


class SharedHashes(NamedTuple):
    """Pairs (n,) of story numbers, `left` < `right`, by `right` and then `left`, and how many hashes they share."""

    left: Numbers
    right: Numbers
    shared: Counts


NO_COMMON_HASHES = CommonHashes(
    np.empty(0, np.uint32), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint32)
)
NO_SHARED_HASHES = SharedHashes(np.empty(0, np.uint32), np.empty(0, np.uint32), np.empty(0, np.int64))


def count_surplus(holders: int, copy_keys: int, common: int) -> int:
    """How many too many stories hold a hash, or fewer; a hash is common if there are any.

    `copy_keys` is how many different copy keys the holders have.  A story less makes it at most one less.
    """
    most = max(common, MOST_COPIES)
    return holders - most if holders > most else copy_keys - common


def count_copy_keys(groups: npt.NDArray[np.integer], keys: Numbers, size: int) -> Counts:
    """The groups (n,) of some stories, below `size`, and their copy keys (n,) -> (size,) how many each group has."""
    different = find_distinct(groups.astype(np.uint64) << HASH_SHIFT | keys)
    return np.bincount((different >> HASH_SHIFT).astype(np.intp), minlength=size)


def cut_into_groups(
    postings: Postings, language_of: LanguageOf, copy_keys: Numbers, common: int, pairs_of: PairCounts
) -> tuple[Numbers, CommonHashes]:
    """Sorted postings (n,) -> their groups, and the common hashes.

    A group is its size, 2 or more, followed by its members, ascending.  `language_of` maps each number to a
    language, and `copy_keys` to a copy key; postings of DEAD numbers and repeated ones are ignored.  Adds to `pairs_of`
    each story's earlier members.
    """
    groups, hashes, holders, surplus, examples = find_groups(
        postings, language_of, copy_keys, common, max(common, MOST_COPIES), pairs_of
    )
    return groups, CommonHashes(hashes, holders, surplus, examples)


@in_c(native.find_groups)
def find_groups(  # noqa: PLR0917 - the parameters of the function in C
    postings: Postings, language_of: LanguageOf, copy_keys: Numbers, common: int, most: int, pairs_of: PairCounts
) -> tuple[Numbers, PassageHashes, Counts, Counts, Numbers]:
    """The groups of `cut_into_groups`, and the columns of the common hashes."""
    live = postings[language_of[postings.astype(np.uint32)] != DEAD]
    live = live[find_edges(live)[:-1]]
    numbers, hashes = live.astype(np.uint32), (live >> HASH_SHIFT).astype(np.uint32)
    edges = find_edges(hashes)
    sizes = np.diff(edges)
    size_of, rank = np.repeat(sizes, sizes), rank_in_groups(edges)
    different = count_copy_keys(np.repeat(np.arange(len(sizes)), sizes), copy_keys[numbers], len(sizes))
    surplus = np.where(sizes > most, sizes - most, different - common)
    is_group = (sizes > 1) & (surplus <= 0)
    in_group, surplus_at = np.repeat(is_group, sizes), np.repeat(surplus, sizes)
    np.add.at(pairs_of, numbers[in_group], rank[in_group].astype(np.uint32))
    group_starts = np.cumsum(sizes[is_group]) - sizes[is_group]
    groups = np.insert(numbers[in_group], group_starts, sizes[is_group].astype(np.uint32))
    held = np.flatnonzero(surplus_at > 0)
    of_language = hashes[held].astype(np.uint64) << np.uint64(8) | language_of[numbers[held]]
    examples = held[np.sort(np.unique(of_language, return_index=True)[1])]
    return groups, hashes[examples], size_of[examples], surplus_at[examples], numbers[examples]


@in_c(native.list_earlier)
def list_earlier(groups: Numbers, first: int, earlier: Numbers, ends: Counts) -> None:
    """Append to the list of each story in [first, first + len(ends)) the members before it of each of its groups.

    The lists are parts of `earlier`, and `ends` (n,) is where each ends; both are updated.
    """
    at = 0
    while at < len(groups):
        members = groups[at + 1 : at + 1 + int(groups[at])]
        for nth in np.flatnonzero((members >= first) & (members < first + len(ends))).tolist():
            story = int(members[nth]) - first
            earlier[ends[story] : ends[story] + nth] = members[:nth]
            ends[story] += nth
        at += 1 + len(members)


@in_c(make_record(SharedHashes, native.list_shared_counts))
def count_shared(earlier: Numbers, ends: Counts, first: int, min_shared: int = MIN_SHARED) -> SharedHashes:
    """The pairs that share `min_shared` hashes or more, of the n stories from `first` on.

    `ends` (n + 1,) is where the list of the story before `first` ends, 0 for none, and then where each one's ends.
    Sorts the lists.
    """
    left, right, shared = [earlier[:0]], [earlier[:0]], [ends[:0]]
    for story, (start, end) in enumerate(pairwise(ends.tolist()), first):
        earlier[start:end].sort()
        members, counts = np.unique(earlier[start:end], return_counts=True)
        left.append(members[counts >= min_shared])
        right.append(np.full(len(left[-1]), story, np.uint32))
        shared.append(counts[counts >= min_shared])
    return SharedHashes(np.concatenate(left), np.concatenate(right), np.concatenate(shared))


def find_sharing_pairs(stories: Sequence[PassageHashes]) -> SharedHashes:
    """The pairs of stories with at least MIN_SHARED passage hashes in common, by their places.

    Each story has distinct hashes, all of which count.
    """
    size = len(stories)
    return join_stories(stories, np.zeros(size, np.uint8), np.zeros(size, np.uint32), size)[0]


def join_stories(
    stories: Sequence[PassageHashes], language_of: LanguageOf, copy_keys: Numbers, common: int
) -> tuple[SharedHashes, CommonHashes]:
    """As `find_sharing_pairs`, without the common hashes, and these.

    `language_of` (n,) has the languages of the stories, and `copy_keys` (n,) their copy keys.
    """
    owners = np.repeat(np.arange(len(stories), dtype=np.uint64), [len(hashes) for hashes in stories])
    hashes = np.concatenate([*stories, np.empty(0, np.uint32)])
    postings = hashes.astype(np.uint64) << HASH_SHIFT | owners
    postings.sort()
    pairs_of = np.zeros(len(stories), np.uint32)
    groups, common_hashes = cut_into_groups(postings, language_of, copy_keys, common, pairs_of)
    found = [NO_SHARED_HASHES]
    for first, end in _divide(pairs_of):
        ends = np.concatenate(([0], np.cumsum(pairs_of[first:end], dtype=np.int64)))
        earlier = np.empty(ends[-1], np.uint32)
        list_earlier(groups, first, earlier, ends[:-1].copy())
        found.append(count_shared(earlier, ends, first))
    return SharedHashes(*map(np.concatenate, zip(*found, strict=True))), common_hashes


def _divide(pairs_of: PairCounts) -> Iterator[tuple[int, int]]:
    """Ranges [start, end) of stories that have about PAIRS_AT_A_TIME pairs each."""
    nth = np.cumsum(pairs_of, dtype=np.int64) // PAIRS_AT_A_TIME
    bounds = [0, *(np.flatnonzero(np.diff(nth)) + 1).tolist(), len(pairs_of)]
    return pairwise(bounds)


def choose_best_matches(pairs: SharedHashes, most: Counts) -> Positions:
    """The positions (m,) of the best `most` matches of each later story, by story and then best first.

    The best match shares the most hashes, then has the lowest number.  `pairs` (n,) are all pairs of their later
    stories; `most` (n,) is the limit of each pair's story.
    """
    order = np.lexsort((pairs.left, -pairs.shared, pairs.right))
    return order[rank_in_groups(find_edges(pairs.right[order])) < most[order]]


def select_best(pairs: SharedHashes, language_of: LanguageOf, limits: Counts) -> tuple[Positions, Positions]:
    """The best pairs of each story that share passages, and the others, as places in `pairs`.

    Numbers ascend with ids, and `language_of` holds for them; the right one of a pair is the story's.  `limits` are the
    most matches of a story, by the number of its language.
    """
    best = choose_best_matches(pairs, limits[language_of[pairs.right]])
    return best, np.setdiff1d(np.arange(len(pairs.right)), best)
