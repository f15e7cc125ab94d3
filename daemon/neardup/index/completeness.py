"""Optional comparison of an index with the ledger: whether the buckets of a story hold it, and their repair."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from neardup.records import Change


@runtime_checkable
class Completeness(Protocol):
    """An index that can compare stories with its buckets, each story given as the change that inserts it.

    Each method raises Transient as `Index`, and IndexDamaged if only a rebuild helps.
    """

    async def missing(self, stories: Sequence[Change]) -> list[int]:
        """For each story, the number of its entries that the index lacks."""
        ...

    async def restore(self, stories: Sequence[Change]) -> None:
        """Write those entries of the stories that the index lacks; its position and its counts stay as they are."""
        ...
