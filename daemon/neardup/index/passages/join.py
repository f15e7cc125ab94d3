"""Passes over all postings in bounded memory: the passage join, and the hashes of each story.

**The passage join** yields all pairs of stories that share passage hashes.  One pass over the sorted postings writes
their groups (see neardup.core.candidates.passage_groups) to a scratch file, at most 6 bytes a posting.  Groups know the
stories by their places in an order that the caller chooses, in which the later story of a pair has it.  Then each range
of places with at most MAX_LISTED pairs, counted once for each hash that they share, takes one pass over that
file.

**The hashes of each story**: a segment has the postings by hash.  One pass distributes them to scratch files, 8 bytes a
posting, each for a range of story numbers; then the files are sorted in memory, one after the other.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from msgspec import Struct

from neardup.core.candidates.banding import Numbers
from neardup.core.candidates.passage_groups import (
    HASH_SHIFT,
    NO_COMMON_HASHES,
    NO_SHARED_HASHES,
    CommonHashes,
    Counts,
    LanguageOf,
    PairCounts,
    SharedHashes,
    count_shared,
    cut_into_groups,
    list_earlier,
)
from neardup.core.sets import concatenate_ranges
from neardup.index.passages.postings import PREFIXES, Keys, Offsets, PassageHashes, get_hashes, get_numbers

MAX_LISTED = 1 << 27  # 4 bytes each
MAX_COUNTED = 1 << 21  # at a time: about 50 ms
RANGE = 1 << 18  # story numbers a scratch file by story: at 60 hashes a story, 126 MB of postings
CUT_SHARE = 0.5  # of the join's time that cutting into groups takes, roughly


class JoinStep(Struct, frozen=True):
    """A part of the join: some pairs, all pairs of a story in one step, or some common hashes, or neither.

    `is_read` marks the step after which all common hashes are out; no pairs come before it.  `through` is the last
    place all of whose pairs with earlier stories are out; `done` is the share done, 0 to 1.
    """

    pairs: SharedHashes = NO_SHARED_HASHES
    common: CommonHashes = NO_COMMON_HASHES
    through: int = 0
    done: float = 0.0
    is_read: bool = False


def join_passages(  # noqa: PLR0917 - what a sweep has at hand
    stripes: Iterable[tuple[range, Keys]],
    place_of: Numbers,
    language_of: LanguageOf,
    copy_keys: Numbers,
    common: int,
    scratch: Path,
    after: int,
) -> Iterator[JoinStep]:
    """Join the postings of `stripes`, by steps that take a fraction of a second each.

    `place_of` maps each number to a place, `language_of` each place to a language, or to DEAD, and `copy_keys` to its
    copy key.  Common hashes make no pairs.  Pairs of stories whose later place is `after` or less are left out.  Writes
    a file into the folder `scratch`; raises OSError.
    """
    pairs_of, pieces = np.zeros(len(language_of), np.uint32), list[int]()
    path = scratch / "groups"
    with path.open("wb") as file:
        for prefixes, keys in stripes:
            groups, common_hashes = cut_into_groups(
                _number_by_place(keys, place_of), language_of, copy_keys, common, pairs_of
            )
            file.write(groups.data)
            pieces.append(len(groups))
            yield JoinStep(common=common_hashes, through=after, done=CUT_SHARE * prefixes.stop / PREFIXES)
    del copy_keys, place_of  # 8 bytes a story, while a sweep does other work
    pairs_of[: after + 1] = 0
    yield JoinStep(through=after, done=CUT_SHARE, is_read=True)
    total, out, ranges = max(int(pairs_of.sum()), 1), 0, list(_divide(pairs_of, after + 1))
    earlier = np.empty(max((size for _, _, size in ranges), default=0), np.uint32)
    for first, stop, _ in ranges:
        ends = _sum_ends(pairs_of[first:stop])
        at = ends[:-1].copy()
        for groups in _read_groups(path, pieces):
            list_earlier(groups, first, earlier, at)
            yield JoinStep(through=first - 1, done=CUT_SHARE + (1 - CUT_SHARE) * out / total)
        for start, end in _cut(ends, MAX_COUNTED):
            pairs = count_shared(earlier, ends[start : end + 1], first + start)
            done = CUT_SHARE + (1 - CUT_SHARE) * (out + int(ends[end])) / total
            yield JoinStep(pairs, through=first + end - 1, done=done)
        out += int(ends[-1])
    path.unlink()
    yield JoinStep(through=len(language_of) - 1, done=1.0)


def _number_by_place(keys: Keys, place_of: Numbers) -> Keys:
    """Sorted postings of numbers -> those of places, sorted."""
    by_place = get_hashes(keys).astype(np.uint64) << HASH_SHIFT | place_of[get_numbers(keys)]
    if np.any(by_place[1:] < by_place[:-1]):
        by_place.sort()
    return by_place


def _divide(pairs_of: PairCounts, first: int) -> Iterator[tuple[int, int, int]]:
    """Ranges [first, stop) of numbers, and how many pairs each has: at most MAX_LISTED, or those of one number.

    Numbers without pairs may be in none.
    """
    ends = _sum_ends(pairs_of[first:])
    for start, stop in _cut(ends, MAX_LISTED):
        if size := int(ends[stop] - ends[start]):
            yield first + start, first + stop, size


def _sum_ends(sizes: PairCounts) -> Counts:
    """Sizes (n,) of lists, one after the other -> (n + 1,) where the first begins and each one ends."""
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))


def _cut(ends: Counts, most: int) -> Iterator[tuple[int, int]]:
    """Cut n lists, of which `ends` (n + 1,) are the ends, into ranges [start, stop) of at most `most` members each.

    A list with more is a range of its own.
    """
    start = 0
    while start < len(ends) - 1:
        stop = max(int(np.searchsorted(ends, ends[start] + most, "right")) - 1, start + 1)
        yield start, stop
        start = stop


def _read_groups(path: Path, pieces: Iterable[int]) -> Iterator[Numbers]:
    """The groups in the file at `path`, in pieces of these sizes."""
    with path.open("rb") as file:
        for size in pieces:
            yield np.fromfile(file, np.uint32, size)


class HashesByStory(Struct, frozen=True):
    """The postings of the stories with the numbers [first, last], by number, and by hash for each."""

    first: int
    last: int
    numbers: Numbers
    hashes: PassageHashes

    def of(self, numbers: Numbers) -> tuple[Offsets, PassageHashes]:
        """The hashes of ascending numbers (n,), one number after the other, and where they start (n + 1,)."""
        starts = np.searchsorted(self.numbers, numbers, side="left")
        counts = np.searchsorted(self.numbers, numbers, side="right") - starts
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        return ends.astype(np.uint32), self.hashes[concatenate_ranges(starts, counts)]


def regroup_by_story(stripes: Iterable[tuple[range, Keys]], last: int, scratch: Path) -> Iterator[HashesByStory]:
    """Regroup the postings of `stripes`, whose numbers are at most `last`, a range of numbers at a time, ascending.

    Writes files into the folder `scratch`; raises OSError.
    """
    for _, keys in stripes:
        _distribute(keys, scratch)
    for first in range(0, last + 1, RANGE):
        path = scratch / f"{first // RANGE}"
        keys = np.fromfile(path, np.uint64) if path.exists() else np.empty(0, np.uint64)
        path.unlink(missing_ok=True)
        numbers = get_numbers(keys)
        order = np.argsort(numbers, kind="stable")  # the postings came by hash
        yield HashesByStory(first, min(first + RANGE - 1, last), numbers[order], get_hashes(keys)[order])


def _distribute(keys: Keys, scratch: Path) -> None:
    ranges = get_numbers(keys) // np.uint32(RANGE)
    keys = keys[np.argsort(ranges, kind="stable")]
    counts = np.bincount(ranges)
    ends = np.cumsum(counts)
    for n in np.flatnonzero(counts).tolist():
        with (scratch / f"{n}").open("ab") as file:
            keys[ends[n] - counts[n] : ends[n]].tofile(file)
