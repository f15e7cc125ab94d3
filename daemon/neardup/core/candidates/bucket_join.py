"""Who meets whom in runs of stories that are equal in a band: the inner loop of a sweep.

The members of a run are taken one by one, and each meets those before it that are equal in a second band
too: a chain of members a value, whose head stands in a table that fits a processor's cache.  A template
copied a thousand times would be met again for every two bands.  So members come in the order of the first
band outside the key: those equal in it, who met for an earlier key, stand side by side in a chain, and a
chain is entered behind them.

A pair belongs to the first of its keys that has a value which is not hot, for that is never cut (see
neardup.core.candidates.heavy_buckets); where all are hot, to the first that compares it.
"""

import numpy as np
from numba import njit

from neardup.core.candidates.heavy_buckets import Columns, Positions, bound
from neardup.core.candidates.join_buffers import (
    BACK,
    BAND_VALUES,
    BEGUN,
    CUTS,
    FOUND,
    IS_CUT,
    NEXT,
    NOBODY,
    RUN,
    SECOND,
    STEPS,
    Desk,
    Key,
    Runs,
    Stories,
)
from neardup.core.jit import compiled

MAX_STEPS = 1 << 24  # between two pauses: about a tenth of a second


@compiled
def meet(stories: Stories, runs: Runs, key: Key, desk: Desk) -> None:
    """Find pairs, until there is no room for another member's, something is cut, MAX_STEPS are made, or runs are over.

    They are over when at[RUN] is their number.  What is cut must be among desk.cuts when it goes on.
    """
    at, most = desk.at, key.rules.most
    at[FOUND] = at[CUTS] = at[STEPS] = 0
    while at[RUN] < len(runs.edges) - 1:
        run = runs.members[runs.edges[at[RUN]] : runs.edges[at[RUN] + 1]]
        if not at[BEGUN]:
            for n in range(len(run)):
                desk.values[n] = 0 if at[SECOND] == key.band else stories.columns[run[n], at[SECOND]]
                desk.first[n] = True
            at[BEGUN] = 1
            at[CUTS] = at[IS_CUT] = _cut(run, most, desk) if len(run) > most else 0
            if at[CUTS]:
                return
        if len(run) > most:
            _chain_hot(stories, run, key, desk)
        else:
            _chain(stories, run, key, desk, False)
        if at[NEXT] == len(run):
            _go_on(len(run), key, desk)
        if at[STEPS] > MAX_STEPS or at[FOUND] + most > len(desk.left):
            return


@compiled
def _go_on(members: int, key: Key, desk: Desk) -> None:
    """From the end of a run to its beginning, and from there to its next second band, or to the next run."""
    at = desk.at
    for n in range(members):
        desk.heads[desk.values[n]] = NOBODY
    at[NEXT] = 0
    at[BACK] = at[IS_CUT] and not at[BACK]
    if not at[BACK]:
        at[BEGUN] = 0
        at[SECOND] += 1
        if at[SECOND] == key.stop:
            at[SECOND] = key.start
            at[RUN] += 1


@njit(inline="always")  # called once a second band of every run: a call would cost as much as the work
def _chain(stories: Stories, run: Positions, key: Key, desk: Desk, is_hot: bool) -> None:
    """Chain the first members of a run, each meeting those before it; then backwards the others, meeting these."""
    columns, rows, rules = stories.columns, stories.rows, key.rules
    second, back, found, steps = desk.at[SECOND], desk.at[BACK], desk.at[FOUND], desk.at[STEPS]
    outside, alone = 0 if key.band else 1, key.start == key.band
    all_hot, unsure = False, 1 << key.band
    n = desk.at[NEXT]
    while n < len(run) and steps <= MAX_STEPS and found + rules.most <= len(desk.left):
        one = len(run) - 1 - n if back else n
        other = behind = head = desk.heads[desk.values[one]]
        if head != NOBODY:
            if is_hot or alone:
                all_hot, unsure = _doubts(stories, run[one], key, desk, is_hot)
            if outside < second and columns[run[one], outside] == columns[run[head], outside]:
                behind = desk.skips[head]
                if not unsure >> outside & 1:
                    other = behind
        if desk.first[one]:
            desk.links[one] = head
            desk.skips[one] = behind
            desk.heads[desk.values[one]] = one
            if back:
                other = NOBODY
        while other != NOBODY:
            a, b = run[one], run[other]
            if (
                not _met(columns, a, b, unsure, second)
                and _equal(rows, a, b) >= rules.least
                and _equal(columns, a, b) >= rules.shared
                and not (all_hot and _belongs_elsewhere(stories, a, b, key, desk))
            ):
                desk.left[found] = min(a, b)
                desk.right[found] = max(a, b)
                found += 1
            steps += 1
            other = desk.links[other]
        steps += 1
        n += 1
    desk.at[NEXT], desk.at[FOUND], desk.at[STEPS] = n, found, steps


@compiled  # apart: were it a branch of `meet`, short runs would take several times as long
def _chain_hot(stories: Stories, run: Positions, key: Key, desk: Desk) -> None:
    _chain(stories, run, key, desk, True)


@compiled
def _doubts(stories: Stories, story: int, key: Key, desk: Desk, is_hot: bool) -> tuple[bool, int]:
    """Whether all values of a story's key are hot, and as bits the columns that do not tell who belongs elsewhere.

    Another member of its chain that is equal to it in a column before the second one, not among these, belongs
    to another key.
    """
    hot, band, second = int(np.int64(stories.hot[story])), key.band, desk.at[SECOND]
    alone = key.start == band
    if not (is_hot and hot >> second & 1):
        return False, hot if alone else hot & -(1 << band)
    unsure, own = hot, bound(stories.columns, story, band, second, desk.cuts)
    for column in range(second):
        if hot >> column & 1 and column != band:
            one, other = (column, column) if alone else (min(column, band), max(column, band))
            limit = bound(stories.columns, story, one, other, desk.cuts)
            if story < limit or own <= limit:  # the earlier key compares it with all of these
                unsure &= ~(1 << column)
    return True, unsure


@compiled
def _met(columns: Columns, a: int, b: int, unsure: int, second: int) -> bool:
    """Whether two stories are equal in a column before the second one whose bit in `unsure` is not set."""
    column = 0
    while column < second and (unsure >> column & 1 or columns[a, column] != columns[b, column]):
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
def _belongs_elsewhere(stories: Stories, a: int, b: int, key: Key, desk: Desk) -> bool:
    """Whether two stories equal in a key of hot values are equal in a cold one too, or an earlier key compares them."""
    columns, alone = stories.columns, key.start == key.band
    for one in range(columns.shape[1]):
        if columns[a, one] == columns[b, one] and not stories.hot[a] >> np.uint32(one) & np.uint32(1):
            return True
    for one in range(key.band + 1):
        if columns[a, one] == columns[b, one]:
            for other in range(one if alone else one + 1, one + 1 if alone else columns.shape[1]):
                if one == key.band and other == desk.at[SECOND]:
                    return False
                if columns[a, other] == columns[b, other] and min(a, b) < bound(columns, a, one, other, desk.cuts):
                    return True
    return False


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
            desk.cut[cuts] = run[n], desk.at[SECOND], size, bound
            cuts += 1
    return cuts
