"""All pairs among the fingerprints of one language that their bands bring up, without a lookup a story.

Stories are sorted by a key, and the members of each run of equal keys are compared with each other:
the tables of Manku, Jain and Das Sarma (WWW 2007), made one at a time.  Where a key is two bands, stories
are sorted by the first of them only, and the members of a run meet by the second.  A pair may be equal in
many keys; it is given for one of them, which the values tell, so that no pair has to be remembered.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import BANDS, ROWS_A_BAND, groups
from neardup.core.candidates.bucket_join import meet
from neardup.core.candidates.heavy_buckets import Positions, group_of, hot_values
from neardup.core.candidates.join_buffers import CUTS, FOUND, RUN, Desk, Key, Rows, Rules, Runs, Stories
from neardup.core.fingerprint.minhash import SignatureRows
from neardup.core.verify.scores import HashRows, hamming

Values = npt.NDArray[np.unsignedinteger]

HASH_BYTES = 16
BAND_BYTES = HASH_BYTES // BANDS
BANDS_A_KEY = 2
PORTION = 1 << 18  # pairs given at a time, or as many as one story may have, if these are more
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

    def where(self, kept: npt.NDArray[np.bool_]) -> "Portion":
        return replace(self, left=self.left[kept], right=self.right[kept])


def near_pairs(simhashes: HashRows, distance: int, max_bucket: int) -> Iterator[Portion]:
    """Every pair of (n, 2) SimHashes within the Hamming distance, 0 to 7, once.

    A key is a group of bands.  Of a run of more than `max_bucket` equal keys each member is compared
    with the first `max_bucket` only.  Raises ValueError as `groups` does.
    """
    rows = np.require(simhashes, requirements=["C", "W"]).view(np.uint8)
    spans = [slice(BAND_BYTES * group.start, BAND_BYTES * group[:BANDS_A_KEY].stop) for group in groups(distance)]
    columns = np.empty((len(rows), len(spans)), np.uint32)
    for n, span in enumerate(spans):
        columns[:, n] = np.ascontiguousarray(rows[:, span]).view(f"u{span.stop - span.start}")[:, 0]
    # So many bits stand in as many bytes at most: of who differs in more bytes they need not be counted.
    rules = Rules(shared=1, least=HASH_BYTES - distance, most=max_bucket)
    positions = np.arange(len(rows))
    stories = Stories(columns, rows, hot_values(columns, positions, max_bucket))
    for portion in _meeting("", stories, spans, positions, rules):
        bits = hamming(simhashes.take(portion.left, axis=0), simhashes.take(portion.right, axis=0))
        yield portion.where(bits <= distance)


def sketch_pairs(
    signatures: SignatureRows, signed: Positions, *, bands: int, shared: int, agreeing_rows: int, max_bucket: int
) -> Iterator[Portion]:
    """Every pair of (n, 64) signatures that shares so many of the first `bands` bands and agrees in so many rows, once.

    `signed` are the positions that have a signature, ascending.  A key is two bands, or one where one
    shared is enough; long runs are cut as those of `near_pairs`.
    """
    rows = np.require(signatures, requirements=["C", "W"])
    columns = np.ascontiguousarray(rows.view(np.uint16)[:, :bands])
    spans = [slice(ROWS_A_BAND * band, ROWS_A_BAND * (band + 1)) for band in range(bands)]
    stories = Stories(columns, rows, hot_values(columns, signed, max_bucket))
    yield from _meeting("sketch:", stories, spans, signed, Rules(shared, agreeing_rows, max_bucket))


def _meeting(
    tier: str, stories: Stories, spans: Sequence[slice], positions: Positions, rules: Rules
) -> Iterator[Portion]:
    """For each key of one or two columns, the pairs that belong to it.

    `spans` are the bytes of the columns in the rows.
    """
    columns, together, size = stories.columns, min(rules.shared, BANDS_A_KEY), len(positions)
    rules = rules._replace(most=min(rules.most, max(size, 1)))
    desk = Desk.of(size, max(PORTION, rules.most), size // rules.most)
    order = positions
    for band in reversed(range(together)):
        order = _sorted(order, columns[:, band])
    keys = [Key(n, n + together - 1, len(spans) if together > 1 else n + 1, rules) for n in range(len(spans))]
    total, behind = sum(key.stop - key.start for key in keys), 0
    for key in keys:
        runs = _runs(_sorted(order, columns[:, key.band]), columns[:, key.band])
        desk.begin(key)
        while key.start < key.stop and desk.at[RUN] < len(runs.edges) - 1:
            meet(stories, runs, key, desk)
            cut = desk.cut[: desk.at[CUTS]].tolist()
            if cut:
                groups = [int(group_of(columns, member, key.band, second)) for member, second, _, _ in cut]
                desk = desk._replace(cuts=desk.cuts.and_more(groups, [bound for *_, bound in cut]))
            capped = {
                _name(tier, stories.rows[one], spans, sorted({key.band, second})): size for one, second, size, _ in cut
            }
            done = behind + (key.stop - key.start) * desk.at[RUN] / (len(runs.edges) - 1)
            found = slice(desk.at[FOUND])
            yield Portion(desk.left[found].copy(), desk.right[found].copy(), capped, float(done / total))
        behind += key.stop - key.start
    yield Portion(done=1.0)


def _name(tier: str, row: Rows, spans: Sequence[slice], key: Sequence[int]) -> str:
    value = int.from_bytes(b"".join(row[spans[column]].tobytes() for column in key))
    return f"{tier}{'+'.join(map(str, key))}:{value:X}"


def _sorted(order: Positions, column: Values) -> Positions:
    """Positions by their values, equal ones in the order they are in: a radix sort of 16 bits at a time."""
    for shift in range(0, 8 * column.itemsize, 16):
        digits = (column >> shift).astype(np.uint16)
        order = order[np.argsort(digits[order], kind="stable")]
    return order


def _runs(members: Positions, column: Values) -> Runs:
    """Sorted positions -> the runs of equal values."""
    values = column[members]
    changes = np.ones(len(values) + 1, np.bool_)
    np.not_equal(values[1:], values[:-1], out=changes[1:-1])
    return Runs(members, np.flatnonzero(changes))
