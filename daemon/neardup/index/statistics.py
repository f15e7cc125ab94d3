"""Optional statistics of an index: how many stories it holds, and how full its buckets are."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from neardup.index.protocol import Bucket, Index
from neardup.records import BandedFingerprint, Language


@runtime_checkable
class BucketStatistics(Protocol):
    """An index that can count its stories and the members of its buckets.  Each method raises Transient as `Index`."""

    async def story_counts(self) -> dict[Language, int]:
        """The number of stories of each language that has any."""
        ...

    async def bucket_sizes(self, sample: Sequence[BandedFingerprint]) -> dict[Bucket, int]:
        """The number of members of each bucket that a story of the sample falls into; empty buckets are left out."""
        ...


async def bucket_sizes(index: Index, sample: Sequence[BandedFingerprint]) -> dict[Bucket, int]:
    """The sizes of the buckets that the sample falls into; empty for an index without statistics."""
    return await index.bucket_sizes(sample) if isinstance(index, BucketStatistics) else {}
