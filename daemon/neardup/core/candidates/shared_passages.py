"""Pairs of stories that share passage hashes, among stories that are all in memory."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from neardup.core.fingerprint.passage_hashes import MIN_SHARED, PassageHashes
from neardup.core.jit import compiled

SLOT_BITS = 20  # as many slots as a processor keeps at hand
OWNER_BITS, OWNER_MASK = np.uint64(32), np.uint64(0xFFFFFFFF)

Indices = npt.NDArray[np.int64]


@compiled
def maybe_repeated(hashes: PassageHashes) -> npt.NDArray[np.bool_]:
    """(n,) hashes -> whether each may occur twice: surely where it does, and seldom where it does not.

    What is left to sort is a small part.
    """
    slots, repeated = np.zeros(1 << SLOT_BITS, np.uint8), np.empty(len(hashes), np.bool_)
    for one in hashes:
        slots[one >> np.uint32(32 - SLOT_BITS)] += slots[one >> np.uint32(32 - SLOT_BITS)] < 2
    for n in range(len(hashes)):
        repeated[n] = slots[hashes[n] >> np.uint32(32 - SLOT_BITS)] == 2
    return repeated


def sharing_pairs(stories: Sequence[PassageHashes], common: int) -> tuple[Indices, Indices, Indices]:
    """The pairs of stories with at least MIN_SHARED passage hashes in common: left < right, and how many they share.

    Each story has distinct hashes.  A hash that more than `common` of the stories hold does not count.
    """
    owners = np.repeat(np.arange(len(stories), dtype=np.uint64), [len(hashes) for hashes in stories])
    hashes = np.concatenate([*stories, np.empty(0, np.uint32)])
    repeated = maybe_repeated(hashes)
    keys = hashes[repeated].astype(np.uint64) << OWNER_BITS | owners[repeated]
    keys.sort()  # takes half the time of argsort
    hashes, owners = (keys >> OWNER_BITS).astype(np.uint32), (keys & OWNER_MASK).astype(np.int64)
    starts = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1])) if len(hashes) else np.empty(0, np.int64)
    sizes = np.diff(np.append(starts, len(hashes)))
    shared = np.repeat((sizes > 1) & (sizes <= common), sizes)
    hashes, owners = hashes[shared], owners[shared]
    codes = [np.empty(0, np.int64)]
    for offset in range(1, min(int(sizes.max(initial=1)), common + 1)):
        equal = hashes[:-offset] == hashes[offset:]
        codes.append(owners[:-offset][equal] * len(stories) + owners[offset:][equal])
    pairs, counts = np.unique(np.concatenate(codes), return_counts=True)
    pairs, counts = pairs[counts >= MIN_SHARED], counts[counts >= MIN_SHARED]
    left, right = np.divmod(pairs, max(len(stories), 1))
    return left, right, counts
