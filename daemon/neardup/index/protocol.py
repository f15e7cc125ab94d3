"""The LSH index: who stands in the same bands.  Derived from the ledger, and rebuilt from it."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from neardup.core.candidates.banding import Banding, Numbers
from neardup.core.candidates.fingerprint_arrays import Columns
from neardup.records import Banded, Change, Language

Bandings = Mapping[Language, Banding]
Codes = Mapping[Language, str]  # the ISO 639 code of each language


@dataclass(frozen=True, slots=True)
class Found:
    """What a lookup brought up, by story id or by number, for no index knows both.

    Of the stories within the Hamming distance and those that share enough bands of the signature none is
    missing; some are there by chance, and some numbers are of versions edited or removed since.
    `numbers` are distinct and ascend.  `capped` names the buckets of which no more than `max_bucket`
    members were looked at, with their sizes.
    """

    ids: set[int]
    numbers: Numbers
    capped: dict[str, int]


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
        """The last change applied, and what each probe's bands hold, with all changes up to that one, at least.

        Of a bucket with more than `max_bucket` members those of the lowest ids, or of the latest
        numbers, are taken: the numbers of versions edited or removed since are the older ones.
        """
        ...

    async def apply(self, changes: Sequence[Change], applied: int | None, since: int | None = None) -> None:
        """Move stories between bands and set `applied`, all in one transaction.

        Changes up to the mark are left out, and the mark never goes back, so that a replay changes
        nothing; those without a number (0) are always applied.  None leaves `applied` as it is.  `since` is the
        mark that the changes go on from: raises Transient where it is gone by now, or an older one.
        """
        ...

    async def clear(self, ledger_id: str, version: str, sizes: Mapping[Language, int] = {}) -> None:
        """Drop everything, and begin anew for this ledger and these fingerprints; `applied` is None.

        `sizes` are the stories of each language that are about to come, as far as that is known.
        """
        ...

    async def admit(self, version: str) -> None:
        """Put on record, beside what is there, the version and the settings of languages that were added since."""
        ...

    def build(self, pages: AsyncIterator[Columns], scratch: Path) -> AsyncGenerator[int, None]:
        """Fill an index that was just cleared; `applied` stays None.

        Yields now and then how many more stories are in.  `scratch` is an empty folder with room for a
        hundred bytes a story.
        """
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

    async def touch(self) -> None:
        """Write, and change nothing; raises where an insert would be refused."""
        ...

    async def close(self) -> None: ...
