"""The LSH index: who stands in the same bands.  Derived from the ledger, and rebuilt from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from daemon.core.banding import Banding, Numbers
from daemon.records import Banded, Change, Language

Bandings = Mapping[Language, Banding]


@dataclass(frozen=True, slots=True)
class Found:
    """What a lookup brought up.

    `ids` may be within the Hamming distance: none that is within it is missing, some are there by
    chance.  `numbers` share enough bands of the signature; of them, some are of stories edited or
    removed since.  `capped` names the buckets of which no more than `max_bucket` members were looked
    at, with their sizes.
    """

    ids: set[int]
    numbers: Numbers
    capped: Mapping[str, int]


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

    async def lookup(self, probes: Sequence[Banded]) -> tuple[int | None, list[Found]]:
        """The last change applied, then what each probe's bands hold.

        Of a bucket with more than `max_bucket` members those of the lowest ids, and of the latest
        numbers, are taken: the numbers of versions edited or removed since are the older ones.
        Probes that fall into the same buckets share one Found, which is not to be changed.
        """
        ...

    async def apply(self, changes: Sequence[Change], applied: int | None) -> None:
        """Move stories between bands and set `applied`, all in one transaction.

        Changes up to the mark are left out, and the mark never goes back, so that a replay changes
        nothing; those of a rebuild have no number (0) and are always applied.  None leaves `applied`
        as it is: a rebuild is not done before its last page.
        """
        ...

    async def clear(self, ledger_id: str, version: str) -> None:
        """Drop everything, and begin anew for this ledger and these fingerprints; `applied` is None."""
        ...

    async def sizes(self) -> dict[Language, int]:
        """Stories by language."""
        ...

    async def bucket_sizes(self, sample: Sequence[Banded]) -> dict[str, int]:
        """Members of the buckets that the sample falls into, by name.

        `<LANGUAGE>:<n>:<value>` is a bucket of SimHashes, `sketch:<LANGUAGE>:<n>:<value>` one of signatures.
        """
        ...

    async def trouble(self) -> str | None:
        """What is wrong with the way the index's server is set up, in one line, or None."""
        ...

    async def close(self) -> None: ...
