"""The inputs, state and output buffers of the bucket join (see neardup.core.candidates.bucket_join)."""

from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.heavy_buckets import BandValues, HeavyBands, Positions, Truncations

FingerprintBytes = npt.NDArray[np.uint8]  # (n, width)
ChainLinks = npt.NDArray[np.int32]  # indices of members in a run, or END_OF_CHAIN

HASH_SLOTS = 1 << 16  # one for each value of a band of 16 bits
END_OF_CHAIN = -1
# The elements of JoinBuffers.cursor: where the join resumes, ...
RUN, SECOND_BAND, RUN_IS_PREPARED, BACKWARD, NEXT_MEMBER, HAS_TRUNCATED = range(6)
# ... and what it did since it last resumed.
PAIRS, TRUNCATED, STEPS = range(6, 9)


class Stories(NamedTuple):
    """Fingerprints of n stories, as band values and as bytes; both arrays are C-contiguous and writable."""

    band_values: BandValues
    fingerprints: FingerprintBytes
    heavy: HeavyBands


class Runs(NamedTuple):
    """Stories grouped by their value in a band; the positions of run r are members[edges[r]:edges[r + 1]]."""

    members: Positions
    edges: Positions


class JoinRules(NamedTuple):
    """A pair must share at least `min_bands` bands and agree in at least `min_bytes` bytes of the fingerprints.

    In a bucket of more than `max_bucket` members, each member is compared only with the first `max_bucket` by position.
    """

    min_bands: int
    min_bytes: int
    max_bucket: int


class Keys(NamedTuple):
    """The keys (first_band, second) for each second band in range(start, stop).

    The second bands follow the first band; or there is only one, the first band itself: then a key is a single band.
    """

    first_band: int
    start: int
    stop: int
    rules: JoinRules


class JoinBuffers(NamedTuple):
    """The state of a join that can be resumed, and its output; m is the number of stories.

    Output: `cursor[PAIRS]` pairs of positions, left[i] < right[i]; and `cursor[TRUNCATED]` rows of `truncated`, each a
    bucket that was just truncated: one of its members, its second band, its size, and the first position it excludes.
    """

    cursor: Positions  # (9,): see the constants above
    heads: ChainLinks  # (HASH_SLOTS,): for each value of the second band, the member that was chained last
    links: ChainLinks  # (m,): for each chained member, the next one in its chain
    skips: ChainLinks  # (m,): the same, but past the members with its value in the outside band
    values: npt.NDArray[np.uint16]  # (m,): for each member of the run, its value in the second band
    is_chained: npt.NDArray[np.bool_]  # (m,): false for members beyond the first max_bucket of their bucket
    left: Positions  # (room,)
    right: Positions  # (room,)
    truncated: Positions  # (max_truncated, 4)
    truncations: Truncations  # of all buckets that were truncated before

    @classmethod
    def allocate(cls, stories: int, room: int, max_truncated: int) -> Self:
        """Buffers for so many stories, `room` pairs, and at most `max_truncated` truncated buckets in one run."""
        return cls(
            np.zeros(9, np.int64),
            np.full(HASH_SLOTS, END_OF_CHAIN, np.int32),
            np.empty(stories, np.int32),
            np.empty(stories, np.int32),
            np.empty(stories, np.uint16),
            np.empty(stories, np.bool_),
            np.empty(room, np.int64),
            np.empty(room, np.int64),
            np.empty((max_truncated, 4), np.int64),
            Truncations.none(),
        )

    def start(self, keys: Keys) -> None:
        """Move to the first run and the first second band."""
        self.cursor[:] = 0
        self.cursor[SECOND_BAND] = keys.start
