"""A batch of lookups in segments and tail.

The hashes of all probes are looked up in ascending order, so that a batch reads a block once, by several threads, so
that a disk is asked for several blocks at once.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from neardup.core.candidates.banding import Numbers
from neardup.core.fingerprint.word_hashes import MIN_SHARED
from neardup.core.sets import find_distinct
from neardup.index.passages.postings import HASH_SHIFT, Counts, Keys, PassageHashes, get_numbers
from neardup.index.passages.segment import Segment
from neardup.index.passages.tail import Run, TailView, may_hold

THREADS = 8
HASHES_A_THREAD = 128  # at least; the lookups of fewer hashes cost less than a thread
MOST_CACHED_BYTES = 96 << 20  # of segments that the system keeps in memory once they were read


class Found(NamedTuple):
    """The answer to one probe.

    `numbers` (n,), ascending, are the stories that share at least MIN_SHARED hashes with it of those that no more
    stories have than were allowed, `shared` (n,) how many.  `holders` has how many stories have each of its hashes.
    Stories that were changed or removed are among them until a merge drops them.
    """

    numbers: Numbers
    shared: Counts
    holders: Counts


class _Postings(NamedTuple):
    """For some hashes: how many stories have each, and (position of the hash, number) of those of uncommon hashes."""

    holders: Counts
    positions: Counts
    numbers: Numbers


class _Occurrences(NamedTuple):
    """For the hashes that a source has: their positions among those looked up, where their postings begin, how many."""

    positions: Counts
    places: Counts
    counts: Counts


def look_up(
    probes: Sequence[PassageHashes], common: int, segments: Sequence[Segment], tail: TailView, executor: Executor
) -> list[Found]:
    """For each probe the stories that share passages with it.  Raises PassagesDamaged."""
    if not probes:
        return []
    hashes = np.concatenate(probes)
    keys = hashes.astype(np.uint64) << HASH_SHIFT | np.arange(len(hashes), dtype=np.uint64)
    order = np.sort(keys).astype(np.uint32)  # takes half the time of argsort
    owners = np.repeat(np.arange(len(probes)), [len(probe) for probe in probes])
    threads = min(THREADS, -(-len(order) // HASHES_A_THREAD)) if _is_large(segments) else 1
    parts = [part for part in np.array_split(order, max(threads, 1)) if len(part)]
    found = list(
        (executor.map if len(parts) > 1 else map)(
            lambda part: _find_postings(hashes[part], common, segments, tail), parts
        )
    )
    holders, keys_found = np.empty(len(hashes), np.int64), [np.empty(0, np.uint64)]
    for part, postings in zip(parts, found, strict=True):
        holders[part] = postings.holders
        keys_found.append(owners[part][postings.positions].astype(np.uint64) << HASH_SHIFT | postings.numbers)
    return _make_answers(probes, holders, np.sort(np.concatenate(keys_found)))


def find_holders(hashes: PassageHashes, most: int, segments: Sequence[Segment], tail: TailView) -> Numbers:
    """The stories that have any of some hashes, leaving out hashes that more than `most` have.  Raises as `look_up`."""
    return find_distinct(_find_postings(hashes, most, segments, tail).numbers)


def find_postings(
    hashes: PassageHashes, most: int, segments: Sequence[Segment], tail: TailView
) -> tuple[Counts, Numbers, Counts]:
    """The stories that have each of some hashes, as positions (n,) of hashes and numbers (n,), and how many there are.

    A hash that more than `most` have is without them.  Raises as `look_up`.
    """
    found = _find_postings(hashes, most, segments, tail)
    return found.positions, found.numbers, found.holders


def _is_large(segments: Sequence[Segment]) -> bool:
    """Whether the segments do not all stay in memory, so that lookups wait for the disk."""
    return sum(segment.header.file_bytes for segment in segments) > MOST_CACHED_BYTES


def _find_postings(hashes: PassageHashes, common: int, segments: Sequence[Segment], tail: TailView) -> _Postings:
    sources: list[Segment | Run] = [*segments, *tail.runs]
    everywhere, maybe = np.arange(len(hashes)), np.flatnonzero(may_hold(tail.filter, hashes))
    found = [_select_held(everywhere, *segment.find(hashes)) for segment in segments]
    found += [_select_held(maybe, *run.find(hashes[maybe])) for run in tail.runs]
    holders = np.zeros(len(hashes), np.int64)
    for occurrences in found:
        holders[occurrences.positions] += occurrences.counts
    positions, numbers = [np.empty(0, np.int64)], [np.empty(0, np.uint32)]
    for source, occurrences in zip(sources, found, strict=True):
        wanted = np.where(holders[occurrences.positions] <= common, occurrences.counts, 0)
        positions.append(np.repeat(occurrences.positions, wanted))
        numbers.append(source.numbers(occurrences.places, wanted))
    return _Postings(holders, np.concatenate(positions), np.concatenate(numbers))


def _select_held(positions: Counts, places: Counts, counts: Counts) -> _Occurrences:
    """Those of the looked up hashes, at `positions`, that a source has."""
    held = np.flatnonzero(counts)
    return _Occurrences(positions[held], places[held], counts[held])


def _make_answers(probes: Sequence[PassageHashes], holders: Counts, keys: Keys) -> list[Found]:
    """`holders` are those of the hashes of all probes, `keys` the (probe, number) of each posting found, sorted."""
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    shared = np.diff(np.append(starts, len(keys)))
    several = shared >= MIN_SHARED
    kept, shared = keys[starts[several]], shared[several]
    numbers, edges = get_numbers(kept), np.searchsorted(kept, np.arange(len(probes) + 1, dtype=np.uint64) << HASH_SHIFT)
    ends = np.cumsum([0, *map(len, probes)])
    return [
        Found(numbers[start:stop], shared[start:stop], holders[first:last])
        for (start, stop), (first, last) in zip(pairwise(edges), pairwise(ends), strict=True)
    ]
