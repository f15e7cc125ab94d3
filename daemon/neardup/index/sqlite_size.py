"""Projects the bytes of the embedded index (neardup.index.sqlite): a table in which each bucket is a row.

A row is a cell in a leaf page; a payload that is too long continues in overflow pages (sqlite.org/fileformat2.html).
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import SHARED_BLOCKS
from neardup.index.packed_buckets import NUMBER_BYTES
from neardup.index.size import IndexSize, LanguageShape, TierSize
from neardup.index.spread import Spread, even_spread, signature_spread
from neardup.sqlite_pages import PAGE, bytes_in_leaves

Sizes = npt.NDArray[np.int64]

MOST_LOCAL, LEAST_LOCAL = PAGE - 35, (PAGE - 12) * 32 // 255 - 23  # bytes of a payload in its leaf: X and M there
OVERFLOW_LINK = 4  # the number of the next overflow page
CELL_HEADER, RECORD_HEADER = 5, 4


def project_size(shapes: Sequence[LanguageShape], *, grown: bool) -> IndexSize:
    """The projected size of an index that was rebuilt.  `grown` is ignored: one that grew takes up to a third more."""
    tiers = {shape.language: _tiers(shape) for shape in shapes}
    return IndexSize(tiers, sum(tier.bytes for by_tier in tiers.values() for tier in by_tier.values()))


def _tiers(shape: LanguageShape) -> dict[str, TierSize]:
    blocks = even_spread(shape.banding.hamming + SHARED_BLOCKS, shape.value_bits)
    bands = signature_spread(shape.signature_skew, shape.banding.bands, shape.value_bits)
    return {"near": _tier(blocks, shape.stories), "similar": _tier(bands, shape.stories * shape.signed)}


def _tier(spread: Spread, stories: float) -> TierSize:
    cell_bytes, filled = spread.expected(stories, _cell_bytes), spread.filled(stories)
    overflow = spread.expected(stories, _overflow_bytes)
    return TierSize(filled * bytes_in_leaves(cell_bytes / filled) + overflow if filled else 0.0, filled)


def _cell_bytes(members: Sizes) -> Sizes:
    """The bytes of each bucket's cell in its leaf, by the number of members."""
    payload = NUMBER_BYTES * members + RECORD_HEADER
    fitted = LEAST_LOCAL + (payload - LEAST_LOCAL) % (PAGE - OVERFLOW_LINK)  # fills the overflow pages exactly
    local = np.where(fitted <= MOST_LOCAL, fitted, LEAST_LOCAL)
    return np.where(members > 0, np.where(payload <= MOST_LOCAL, payload, local + OVERFLOW_LINK) + CELL_HEADER, 0)


def _overflow_bytes(members: Sizes) -> Sizes:
    """The bytes of each bucket's overflow pages, by the number of members."""
    payload = NUMBER_BYTES * members + RECORD_HEADER
    overflowing = np.where(payload > MOST_LOCAL, payload - LEAST_LOCAL, 0)
    return -(-overflowing // (PAGE - OVERFLOW_LINK)) * PAGE
