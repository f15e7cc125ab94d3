"""The kernels of the passage join: all pairs of stories that share passage hashes, without a lookup for each story.

Postings, sorted by hash, are cut into groups: the stories that hold a hash.  A group makes every two of its stories a
pair that shares one hash.  Pairs are then counted by their later story, a range of stories at a time:
each group copies its earlier members to the list of each of its members in the range, and what a list contains
twice shares two hashes.  So no pair is ever written to a file, and no pair is sorted but within the list of one story.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import Numbers
from neardup.core.fingerprint.passage_hashes import MIN_SHARED, PassageHashes
from neardup.core.jit import compiled

DEAD = 255  # in place of a language, for a number that is no story's

Ids = npt.NDArray[np.int64]
Positions = npt.NDArray[np.intp]
LanguageOf = npt.NDArray[np.uint8]
Counts = npt.NDArray[np.int64]
PairCounts = npt.NDArray[np.uint32]
Postings = npt.NDArray[np.uint64]  # a passage hash in the upper half, the number of a story that has it in the lower
HASH_SHIFT = np.uint64(32)
NUMBER_MASK = np.uint64((1 << 32) - 1)


class CommonHashes(NamedTuple):
    """Hashes (n,) that too many stories hold, how many do, and one of them; once for each language among them."""

    hashes: PassageHashes
    holders: Counts
    examples: Numbers


class SharedHashes(NamedTuple):
    """Pairs (n,) of story numbers, `left` < `right`, by `right` and then `left`, and how many hashes they share."""

    left: Numbers
    right: Numbers
    shared: Counts


class _Output(NamedTuple):
    groups: Numbers
    pairs_of: PairCounts


NO_COMMON_HASHES = CommonHashes(np.empty(0, np.uint32), np.empty(0, np.int64), np.empty(0, np.uint32))
NO_SHARED_HASHES = SharedHashes(np.empty(0, np.uint32), np.empty(0, np.uint32), np.empty(0, np.int64))


@compiled
def cut_into_groups(
    postings: Postings, language_of: LanguageOf, common: int, pairs_of: PairCounts
) -> tuple[Numbers, CommonHashes]:
    """Sorted postings (n,) -> their groups, and the hashes that more than `common` stories hold.

    A group is its size, 2 or more, followed by its members, ascending.  `language_of` maps each number to a
    language; postings of DEAD numbers and repeated ones are ignored.  Adds to `pairs_of` each story's earlier members.
    """
    size, end, commons, n = len(postings), 0, 0, 0
    groups, holders = np.empty(size + size // 2, np.uint32), np.empty(size, np.uint32)
    hashes, holders_of, examples = np.empty(size, np.uint32), np.empty(size, np.int64), np.empty(size, np.uint32)
    while n < size:
        passage, found = postings[n] >> HASH_SHIFT, 0
        while n < size and postings[n] >> HASH_SHIFT == passage:
            number = np.uint32(postings[n] & NUMBER_MASK)
            if language_of[number] != DEAD and (found == 0 or holders[found - 1] != number):
                holders[found] = number
                found += 1
            n += 1
        if found <= common:
            end = _put_group(holders[:found], _Output(groups, pairs_of), end)
            continue
        for holder in range(found):
            if _is_first_of_language(holders, holder, language_of):
                hashes[commons], holders_of[commons], examples[commons] = passage, found, holders[holder]
                commons += 1
    return groups[:end].copy(), CommonHashes(
        hashes[:commons].copy(), holders_of[:commons].copy(), examples[:commons].copy()
    )


@compiled
def _is_first_of_language(holders: Numbers, holder: int, language_of: LanguageOf) -> bool:
    other = 0
    while language_of[holders[other]] != language_of[holders[holder]]:
        other += 1
    return other == holder


@compiled
def _put_group(holders: Numbers, output: _Output, end: int) -> int:
    """Append at `end` a group of these holders, unless it is one alone; returns the new end."""
    if len(holders) < 2:
        return end
    output.groups[end] = len(holders)
    for nth in range(len(holders)):
        output.pairs_of[holders[nth]] += nth
        output.groups[end + nth + 1] = holders[nth]
    return end + len(holders) + 1


@compiled
def list_earlier(groups: Numbers, first: int, earlier: Numbers, ends: Counts) -> None:
    """Append to the list of each story in [first, first + len(ends)) the members before it of each of its groups.

    The lists are parts of `earlier`, and `ends` (n,) is where each ends; both are updated.
    """
    at, stop = 0, first + len(ends)
    while at < len(groups):
        start = at + 1
        at = last = at + groups[at]
        at += 1
        while last > start and groups[last] >= stop:
            last -= 1
        while last > start and groups[last] >= first:
            end = ends[groups[last] - first]
            for n in range(start, last):
                earlier[end] = groups[n]
                end += 1
            ends[groups[last] - first] = end
            last -= 1


@compiled
def count_shared(earlier: Numbers, ends: Counts, first: int) -> SharedHashes:
    """The pairs that share MIN_SHARED hashes or more, of the n stories from `first` on.

    `ends` (n + 1,) is where the list of the story before `first` ends, 0 for none, and then where each one's ends.
    Sorts the lists.
    """
    size = (ends[-1] - ends[0]) // MIN_SHARED
    left, right, shared = np.empty(size, np.uint32), np.empty(size, np.uint32), np.empty(size, np.int64)
    pairs = 0
    for story in range(len(ends) - 1):
        members = earlier[ends[story] : ends[story + 1]]
        members.sort()
        start = 0
        for n in range(1, len(members) + 1):
            if n < len(members) and members[n] == members[start]:
                continue
            if n - start >= MIN_SHARED:
                left[pairs], right[pairs], shared[pairs] = members[start], first + story, n - start
                pairs += 1
            start = n
    return SharedHashes(left[:pairs].copy(), right[:pairs].copy(), shared[:pairs].copy())


def best_matches(pairs: SharedHashes, ids: Ids, most: Counts) -> Positions:
    """The positions (m,) of the best `most` matches of each later story, by story and then best first.

    The best match shares the most hashes, then has the lowest id.  `pairs` (n,) are all pairs of their later stories;
    `ids` maps numbers to ids; `most` (n,) is the limit of each pair's story.
    """
    order = np.lexsort((ids[pairs.left], -pairs.shared, pairs.right))
    stories = pairs.right[order]
    starts = np.flatnonzero(np.append(True, stories[1:] != stories[:-1])[: len(stories)])
    ranks = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    return order[ranks < most[order]]
