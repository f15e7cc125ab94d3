"""Projects the bytes of the embedded index, bucket by bucket."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import SHARED_BLOCKS
from neardup.index.packed_buckets import NUMBER_BYTES
from neardup.index.size import IndexSize, LanguageShape, TierSize
from neardup.index.spread import Spread, even_spread, signature_spread
from neardup.sqlite_pages import PAGE, bytes_in_leaves

Sizes = npt.NDArray[np.int64]

MOST_LOCAL, LEAST_LOCAL = PAGE - 35, (PAGE - 12) * 32 // 255 - 23
OVERFLOW_LINK = 4
CELL_HEADER, RECORD_HEADER = 5, 4


def project_size(shapes: Sequence[LanguageShape], *, grown: bool) -> IndexSize:
    """The size of a rebuilt index, whether `grown` or not: one that grew takes up to a third more."""
    tiers = {shape.language: _tiers(shape) for shape in shapes}
    return IndexSize(tiers, sum(tier.bytes for each in tiers.values() for tier in each.values()))


def _tiers(shape: LanguageShape) -> dict[str, TierSize]:
    blocks = even_spread(shape.banding.hamming + SHARED_BLOCKS, shape.value_bits)
    bands = signature_spread(shape.signature_skew, shape.banding.bands, shape.value_bits)
    return {"near": _tier(blocks, shape.stories), "similar": _tier(bands, shape.stories * shape.signed)}


def _tier(spread: Spread, stories: float) -> TierSize:
    cells, filled = spread.expected(stories, _cell), spread.filled(stories)
    overflow = spread.expected(stories, _overflow)
    return TierSize(filled * bytes_in_leaves(cells / filled) + overflow if filled else 0.0, filled)


def _cell(members: Sizes) -> Sizes:
    """The bytes of a bucket's row in a leaf of the table."""
    payload = NUMBER_BYTES * members + RECORD_HEADER
    rest = LEAST_LOCAL + (payload - LEAST_LOCAL) % (PAGE - OVERFLOW_LINK)
    local = np.where(rest <= MOST_LOCAL, rest, LEAST_LOCAL)
    return np.where(members > 0, np.where(payload <= MOST_LOCAL, payload, local + OVERFLOW_LINK) + CELL_HEADER, 0)


def _overflow(members: Sizes) -> Sizes:
    """The bytes of a bucket's row in overflow pages."""
    payload = NUMBER_BYTES * members + RECORD_HEADER
    beyond = np.where(payload > MOST_LOCAL, payload - LEAST_LOCAL, 0)
    return -(-beyond // (PAGE - OVERFLOW_LINK)) * PAGE
