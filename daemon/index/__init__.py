"""The LSH index: who stands in the same bands.  Derived from the ledger, and rebuilt from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from daemon.records import Banded, Change, Language

Distances = Mapping[Language, int]  # the Hamming distance that lookups of a language must not miss


@dataclass(frozen=True, slots=True)
class Mark:
    """What an index says of itself: whose it is, which fingerprints it holds, and up to where.

    `applied` is the number of the last change applied; None where the index is empty or has lost it.
    """

    ledger_id: str | None
    version: str | None
    applied: int | None


class Index(Protocol):
    """The contract of every index.  Each method raises Transient where a later call may work."""

    async def mark(self) -> Mark:
        """The index's account of itself."""
        ...

    async def lookup(self, probes: Sequence[Banded]) -> tuple[int | None, list[set[int]]]:
        """The last change applied, then for each probe the ids that may be within its distance.

        No id within the language's distance is ever missing; some are there by chance.
        """
        ...

    async def apply(self, changes: Sequence[Change], applied: int | None) -> None:
        """Move stories between bands and set `applied`, all in one transaction.  Idempotent.

        None leaves `applied` as it is: a rebuild is not done before its last page.
        """
        ...

    async def clear(self, ledger_id: str, version: str) -> None:
        """Drop everything, and begin anew for this ledger and these fingerprints; `applied` is None."""
        ...

    async def sizes(self) -> dict[Language, int]:
        """Stories by language."""
        ...

    async def bucket_sizes(self, sample: Sequence[Banded]) -> dict[str, int]:
        """Members of the buckets that the sample falls into, by bucket name `<LANGUAGE>:<n>:<value>`."""
        ...

    async def trouble(self) -> str | None:
        """What is wrong with the way the index's server is set up, in one line, or None."""
        ...

    async def close(self) -> None: ...
