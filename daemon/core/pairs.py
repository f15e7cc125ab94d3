"""All pairs among the fingerprints of one language that their bands bring up, without a lookup a story.

Stories are sorted by a key, and the members of each run of equal keys are compared with each other:
the tables of Manku, Jain and Das Sarma (WWW 2007), made one at a time.  A pair may be equal in many
keys; it is given in the first of them, so that nothing has to be remembered to give it once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from daemon.core.banding import ROWS_A_BAND, groups
from daemon.core.minhash import SignatureRows, agreeing
from daemon.core.verify import HashRows, hamming

Positions = npt.NDArray[np.int64]
Column = npt.NDArray[np.unsignedinteger]  # of each story one band, or the leading 32 bits of a group
Keys = npt.NDArray[np.uint64]  # a key, then a position, 32 bits each
Mask = npt.NDArray[np.bool_]

PORTION = 1 << 18  # pairs compared at a time: what is made of them fits a processor's cache
POSITION_BITS = 32
BANDS_A_KEY = 2
NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Portion:
    """Some of the pairs, as positions, `left` < `right`.

    `capped` names runs of which not every pair was compared, with their sizes; `done` is the share
    of the keys that are behind, 0 to 1.
    """

    left: Positions = field(default_factory=lambda: NONE)
    right: Positions = field(default_factory=lambda: NONE)
    capped: dict[str, int] = field(default_factory=dict)
    done: float = 0.0

    def where(self, kept: Mask) -> "Portion":
        return replace(self, left=self.left[kept], right=self.right[kept])


@dataclass(frozen=True, slots=True)
class Runs:
    """The members of all runs of equal keys, one after the other; run r is members[edges[r]:edges[r + 1]]."""

    members: Positions
    edges: Positions
    values: Keys


def near_pairs(simhashes: HashRows, distance: int, max_bucket: int) -> Iterator[Portion]:
    """Every pair of (n, 2) SimHashes within the Hamming distance, 0 to 7, once.

    A key is a group of bands.  Of a run of more than `max_bucket` equal keys each member is compared
    with the first `max_bucket` only.  Raises ValueError as `groups` does.
    """
    bands = simhashes.view(">u2")
    columns = [
        _joined([bands[:, band] for band in group[:BANDS_A_KEY]]).astype(np.uint32) for group in groups(distance)
    ]
    for portion in _meeting("", columns, np.arange(len(simhashes)), 1, max_bucket):
        left, right = simhashes.take(portion.left, axis=0), simhashes.take(portion.right, axis=0)
        yield portion.where(hamming(left, right) <= distance)


def sketch_pairs(
    signatures: SignatureRows, signed: Positions, *, bands: int, shared: int, agreeing_rows: int, max_bucket: int
) -> Iterator[Portion]:
    """Every pair of (n, 64) signatures that shares so many of the first `bands` bands and agrees in so many rows, once.

    `signed` are the positions that have a signature, ascending.  A key is two bands, or one where one
    shared is enough; long runs are cut as those of `near_pairs`.
    """
    values = signatures.view(">u2")
    together = min(shared, BANDS_A_KEY)
    columns = [values[:, band] for band in range(bands)]
    for portion in _meeting("sketch:", columns, signed, together, max_bucket):
        left, right = signatures.take(portion.left, axis=0), signatures.take(portion.right, axis=0)
        alike = agreeing(left, right) >= agreeing_rows
        if shared > together:
            equal = (left == right)[:, : bands * ROWS_A_BAND].reshape(-1, bands, ROWS_A_BAND).all(axis=-1)
            alike &= np.count_nonzero(equal, axis=-1) >= shared
        yield portion.where(alike)


def _meeting(
    tier: str, columns: Sequence[Column], positions: Positions, together: int, max_bucket: int
) -> Iterator[Portion]:
    """For each so many columns together, the pairs equal in them and in no other before the last of them.

    A template copied a thousand times would be met in every key.  So stories are first put in order
    of the first columns: then the members of a run that are equal in the first column outside its
    key, and were met in an earlier one, stand side by side, and are not compared.
    """
    order = positions[_places(_sorted([column[positions] for column in columns[:together]]))]
    columns = [column[order].astype(column.dtype.newbyteorder("=")) for column in columns]
    keys = list(combinations(range(len(columns)), together))
    for n, key in enumerate(keys):
        runs = _runs(_sorted([columns[c] for c in key]))
        first, capped = _first(runs, order, max_bucket)
        earlier = [columns[c] for c in range(key[-1]) if c not in key]
        for one, other in _compared(runs, first, earlier[0] if earlier else None):
            left, right = _unmet(one, other, earlier[1:])
            a, b = order.take(left), order.take(right)
            yield Portion(np.minimum(a, b), np.maximum(a, b), done=n / len(keys))
        names = {f"{tier}{'+'.join(map(str, key))}:{value:X}": size for value, size in capped.items()}
        yield Portion(capped=names, done=(n + 1) / len(keys))


def _unmet(left: Positions, right: Positions, columns: Sequence[Column]) -> tuple[Positions, Positions]:
    """The pairs that differ in every column."""
    for column in columns:
        unmet = column.take(left) != column.take(right)
        left, right = left[unmet], right[unmet]
    return left, right


def _joined(columns: Sequence[Column]) -> Keys:
    """Columns of 16 bits, or one of 32, side by side."""
    joined = columns[0].astype(np.uint64)
    for column in columns[1:]:
        joined <<= np.uint64(16)
        joined |= column
    return joined


def _sorted(columns: Sequence[Column]) -> Keys:
    """Key and position of each story, ascending.  Sorting both as one number is several times faster than argsort."""
    keys = _joined(columns)
    keys <<= np.uint64(POSITION_BITS)
    keys |= np.arange(len(keys), dtype=np.uint64)
    keys.sort()
    return keys


def _places(keys: Keys) -> Positions:
    return (keys & np.uint64((1 << POSITION_BITS) - 1)).astype(np.int64)


def _runs(keys: Keys) -> Runs:
    """Sorted keys -> the runs of two and more that are equal."""
    equal = np.flatnonzero(keys[1:] ^ keys[:-1] < np.uint64(1 << POSITION_BITS))
    begins = np.flatnonzero(np.diff(equal, prepend=-2) > 1)
    sizes = np.diff(begins, append=len(equal)) + 1
    return Runs(
        _places(keys.take(_spread(equal[begins], sizes))),
        _edges(sizes),
        keys[equal[begins]] >> np.uint64(POSITION_BITS),
    )


def _first(runs: Runs, order: Positions, most: int) -> tuple[Mask, dict[int, int]]:
    """Which members are among the first `most` of their run, by position; longer runs as value -> size."""
    first = np.ones(len(runs.members), np.bool_)
    sizes = np.diff(runs.edges)
    long = np.flatnonzero(sizes > most)
    for run in long.tolist():
        start, stop = runs.edges[run : run + 2].tolist()
        by_position = np.argpartition(order.take(runs.members[start:stop]), most)
        first[start + by_position[most:]] = False
    return first, dict(zip(runs.values[long].tolist(), sizes[long].tolist(), strict=True))


def _compared(runs: Runs, first: Mask, blocks: Column | None) -> Iterator[tuple[Positions, Positions]]:
    """The pairs of each run of which one is among the first, and that differ in `blocks`, portion by portion."""
    begins = np.ones(len(first), np.bool_)
    if blocks is not None:
        values = blocks.take(runs.members)
        begins[1:] = values[1:] != values[:-1]
        begins[runs.edges[:-1]] = True
    block = np.cumsum(begins) - 1
    block_edges = np.append(np.flatnonzero(begins), len(first))
    run = np.repeat(np.arange(len(runs.edges) - 1), np.diff(runs.edges))
    # All are compared with the first members after their block; who is not one of these, with those before it too.
    late = np.flatnonzero(~first)
    ones = np.concatenate((runs.members, runs.members[late]))
    so_far = _edges(first)
    starts = so_far[np.concatenate((block_edges[block + 1], runs.edges[run[late]]))]
    stops = so_far[np.concatenate((runs.edges[run + 1], block_edges[block[late]]))]
    yield from _portions(ones, runs.members[first], starts, stops - starts)


def _portions(
    ones: Positions, others: Positions, starts: Positions, counts: Positions
) -> Iterator[tuple[Positions, Positions]]:
    """Each one with so many of the others, from a start on."""
    some = counts > 0
    ones, starts, counts = ones[some], starts[some], counts[some]
    ends = np.cumsum(counts)
    begin = 0
    while begin < len(ones):
        end = max(begin + 1, int(np.searchsorted(ends, ends[begin] - counts[begin] + PORTION, "right")))
        part = slice(begin, end)
        yield np.repeat(ones[part], counts[part]), others.take(_spread(starts[part], counts[part]))
        begin = end


def _edges(counts: npt.NDArray[np.generic]) -> Positions:
    """0, then the running sum."""
    edges = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=edges[1:])
    return edges


def _spread(starts: Positions, counts: Positions) -> Positions:
    """The numbers of each range, one range after the other."""
    edges = _edges(counts)
    return np.arange(edges[-1]) + np.repeat(starts - edges[:-1], counts)
