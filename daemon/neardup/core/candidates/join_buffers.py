"""What a sweep's inner loop works on (see neardup.core.candidates.bucket_join)."""

from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.heavy_buckets import Columns, Cuts, Hot, Positions

Rows = npt.NDArray[np.uint8]  # (n, w): of each story its fingerprint
Chain = npt.NDArray[np.int32]  # of a value or a member the member before

BAND_VALUES = 1 << 16
RUN, SECOND, BEGUN, BACK, NEXT, IS_CUT, FOUND, CUTS, STEPS = range(9)
NOBODY = -1


class Stories(NamedTuple):
    """Fingerprints by position, once as the values of their bands and once as bytes; both C-contiguous and writable."""

    columns: Columns
    rows: Rows
    hot: Hot


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
    """The band of the runs, and the second ones, from `start` up to `stop`: those behind it, or itself alone."""

    band: int
    start: int
    stop: int
    rules: Rules


class Desk(NamedTuple):
    """What `meet` works on.  Of `at`, RUN, SECOND, BEGUN, BACK, NEXT and IS_CUT tell where to go on.

    at[FOUND] pairs are put in `left` and `right`, as positions, left < right; and at[CUTS] groups of equal keys
    that are too long in `cut`: one of its members, its second band, its size and its first position cut off.
    Those that were cut before are in `cuts`.
    """

    at: Positions
    heads: Chain
    links: Chain
    skips: Chain
    values: npt.NDArray[np.uint16]
    first: npt.NDArray[np.bool_]
    left: Positions
    right: Positions
    cut: Positions
    cuts: Cuts

    @classmethod
    def of(cls, stories: int, room: int, cuts: int) -> Self:
        """For runs of so many stories, pairs and cuts at most."""
        return cls(
            np.zeros(9, np.int64),
            np.full(BAND_VALUES, NOBODY, np.int32),
            np.empty(stories, np.int32),
            np.empty(stories, np.int32),
            np.empty(stories, np.uint16),
            np.empty(stories, np.bool_),
            np.empty(room, np.int64),
            np.empty(room, np.int64),
            np.empty((cuts, 4), np.int64),
            Cuts.none(),
        )

    def begin(self, key: Key) -> None:
        """Go to the first run and its first second band."""
        self.at[:] = 0
        self.at[SECOND] = key.start
