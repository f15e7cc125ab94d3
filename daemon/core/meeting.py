"""Who meets whom in runs of stories that are equal in a band: the inner loop of a sweep.

The members of a run are taken one by one, and each meets those before it that are equal in a second band
too: a chain of members a value, whose head stands in a table that fits a processor's cache.  A template
copied a thousand times would be met again for every two bands.  So members come in the order of the first
band outside the key: those equal in it, who met for an earlier key, stand side by side in a chain, and a
chain is entered behind them.
"""

from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
from numba import njit

from daemon.core.jit import compiled

Positions = npt.NDArray[np.int64]
Columns = npt.NDArray[np.unsignedinteger]  # (n, c): of each story the values of its bands
Rows = npt.NDArray[np.uint8]  # (n, w): of each story its fingerprint
Chain = npt.NDArray[np.int32]  # of a value or a member the member before

BAND_VALUES = 1 << 16
RUN, SECOND, BACK, NEXT, IS_CUT, FOUND, CUTS, STEPS = range(8)
MAX_STEPS = 1 << 24  # between two pauses: about a tenth of a second
NOBODY = -1


class Stories(NamedTuple):
    """Fingerprints by position, once as the values of their bands and once as bytes; both C-contiguous and writable."""

    columns: Columns
    rows: Rows


class Runs(NamedTuple):
    """The positions of the members of all runs; run r is members[edges[r]:edges[r + 1]]."""

    members: Positions
    edges: Positions


class Rules(NamedTuple):
    """What makes a pair: it is equal in `shared` bands at least, and in `least` bytes.

    Of more than `most` members of equal keys each is compared with the first `most` only, by position.
    """

    shared: int
    least: int
    most: int


class Key(NamedTuple):
    """The band of the runs, and the second ones, from `start` up to `stop`; the band itself is no second one."""

    band: int
    start: int
    stop: int


class Desk(NamedTuple):
    """What `meet` works on.  Of `at`, RUN, SECOND, BACK, NEXT and IS_CUT tell where to go on.

    at[FOUND] pairs are put in `left` and `right`, as positions, left < right; and at[CUTS] groups of equal keys
    that were too long in `cuts`: one of its members, its second band and its size.
    """

    at: Positions
    heads: Chain
    links: Chain
    skips: Chain
    values: npt.NDArray[np.uint16]
    first: npt.NDArray[np.bool_]
    left: Positions
    right: Positions
    cuts: Positions

    @classmethod
    def of(cls, stories: int, room: int, cuts: int) -> Self:
        """For runs of so many stories, pairs and cuts at most."""
        return cls(
            np.zeros(8, np.int64),
            np.full(BAND_VALUES, NOBODY, np.int32),
            np.empty(stories, np.int32),
            np.empty(stories, np.int32),
            np.empty(stories, np.uint16),
            np.empty(stories, np.bool_),
            np.empty(room, np.int64),
            np.empty(room, np.int64),
            np.empty((cuts, 3), np.int64),
        )

    def begin(self, key: Key) -> None:
        """Go to the first run and its first second band."""
        self.at[:] = 0
        self.at[SECOND] = key.start


@compiled
def meet(stories: Stories, runs: Runs, key: Key, rules: Rules, desk: Desk) -> None:
    """Find pairs, until there is no room for another member's, something was cut, MAX_STEPS are made, or runs are over.

    They are over when at[RUN] is their number.
    """
    at = desk.at
    at[FOUND] = at[CUTS] = at[STEPS] = 0
    while at[RUN] < len(runs.edges) - 1:
        run = runs.members[runs.edges[at[RUN]] : runs.edges[at[RUN] + 1]]
        if not at[BACK] and not at[NEXT]:
            for n in range(len(run)):
                desk.values[n] = 0 if at[SECOND] == key.band else stories.columns[run[n], at[SECOND]]
                desk.first[n] = True
            at[CUTS] = at[IS_CUT] = _cut(run, rules.most, desk) if len(run) > rules.most else 0
        _chain(stories, run, key, rules, desk)
        if at[NEXT] == len(run):
            for n in range(len(run)):
                desk.heads[desk.values[n]] = NOBODY
            at[NEXT] = 0
            at[BACK] = at[IS_CUT] and not at[BACK]
            if not at[BACK]:
                at[SECOND] += 1
                if at[SECOND] == key.stop:
                    at[SECOND] = key.start
                    at[RUN] += 1
        if at[CUTS] or at[STEPS] > MAX_STEPS or at[FOUND] + rules.most > len(desk.left):
            return


@njit(inline="always")  # called once a second band of every run: a call would cost as much as the work
def _chain(stories: Stories, run: Positions, key: Key, rules: Rules, desk: Desk) -> None:
    """Chain the first members of a run, each meeting those before it; then backwards the others, meeting these."""
    columns, rows = stories.columns, stories.rows
    second, back, found, steps = desk.at[SECOND], desk.at[BACK], desk.at[FOUND], desk.at[STEPS]
    outside = 0 if key.band else 1
    by_blocks = outside < second
    n = desk.at[NEXT]
    while n < len(run) and steps <= MAX_STEPS and found + rules.most <= len(desk.left):
        one = len(run) - 1 - n if back else n
        head = desk.heads[desk.values[one]]
        other = head
        if head != NOBODY and by_blocks and columns[run[one], outside] == columns[run[head], outside]:
            other = desk.skips[head]
        if desk.first[one]:
            desk.links[one] = head
            desk.skips[one] = other
            desk.heads[desk.values[one]] = one
            if back:
                other = NOBODY
        while other != NOBODY:
            a, b = run[one], run[other]
            if (
                not _met(columns, a, b, key.band, second)
                and _equal(rows, a, b) >= rules.least
                and _equal(columns, a, b) >= rules.shared
            ):
                desk.left[found] = min(a, b)
                desk.right[found] = max(a, b)
                found += 1
            steps += 1
            other = desk.links[other]
        steps += 1
        n += 1
    desk.at[NEXT], desk.at[FOUND], desk.at[STEPS] = n, found, steps


@compiled
def _met(columns: Columns, a: int, b: int, band: int, second: int) -> bool:
    """Whether an earlier key has brought two stories together."""
    column = 0
    while column < second and (column == band or columns[a, column] != columns[b, column]):
        column += 1
    return column < second


@compiled
def _equal(table: Columns, a: int, b: int) -> np.uint8:
    """In how many columns two stories are equal."""
    same = np.uint8(0)
    for column in range(table.shape[1]):
        same += np.uint8(table[a, column] == table[b, column])
    return same


@compiled
def _cut(run: Positions, most: int, desk: Desk) -> int:
    """Mark who is not among the first `most` of a value; how many values have more."""
    values = desk.values[: len(run)]
    sizes = np.bincount(values, minlength=BAND_VALUES)
    cuts = 0
    for n in range(len(run)):
        size = sizes[values[n]]
        if size > most:
            its = np.flatnonzero(values == values[n])
            bound = np.sort(run[its])[most]
            for member in its:
                desk.first[member] = run[member] < bound
            sizes[values[n]] = 0
            desk.cuts[cuts] = run[n], desk.at[SECOND], size
            cuts += 1
    return cuts
