"""The candidate index: it nominates the stories that may be copies of a story.

An index is derived from the ledger.  It applies the ledger's numbered changes in order and records the number of the
last one, so an index that is behind replays the changes it lacks, and an index that lost data is rebuilt.

A backend implements `Index`.  It may also implement the optional protocols below it, `BucketStatistics`,
`ServerHealth` and `Completeness`; every caller works without them.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from neardup.core.candidates.banding import Banding, Numbers
from neardup.records import BandedFingerprint, Change, Language

if TYPE_CHECKING:
    from neardup.core.candidates.banding import FingerprintArrays


Bandings = Mapping[Language, Banding]
Codes = Mapping[Language, str]  # the ISO 639 code of each language


class BucketKind(StrEnum):
    """The fingerprint whose bands a bucket belongs to."""

    SIMHASH = "SimHash"
    SIGNATURE = "signature"


class Bucket(NamedTuple):
    """The stories of a language that have the value `values[0]` in band `band`.

    With more than one value it is the intersection of the buckets of adjacent bands, `band` and those after it.  Where
    a packed index stores SimHashes, `band` is the number of a block (see neardup.core.candidates.banding).
    `str()` gives the documented key, `HINDI:0:28D3` for a SimHash and `sketch:HINDI:31:0AF1` for a signature; the keys
    of an intersection are joined by `+`.
    """

    kind: BucketKind
    language: Language
    band: int
    values: tuple[int, ...]

    def __str__(self) -> str:
        prefix = "sketch:" if self.kind is BucketKind.SIGNATURE else ""
        keys = (f"{prefix}{self.language}:{band}:{value:04X}" for band, value in enumerate(self.values, self.band))
        return "+".join(keys)


class LookupResult(Struct, frozen=True):
    """The candidates for one story, each either by its story id or by its story number (see `Change`).

    Every story within the Hamming distance, or with enough bands of the signature in common, is among them.  Some
    candidates share buckets by chance, and some numbers belong to former versions of stories.  `numbers` are distinct
    and ascending.  `large` are the buckets of more than `max_bucket` members, with their sizes.
    """

    ids: set[int]
    numbers: Numbers
    large: dict[Bucket, int]


class IndexPosition(Struct, frozen=True):
    """What an index records about itself: its ledger, the version of its fingerprints, and its last change.

    `applied` is the number of the last change applied; None for an index that is empty or has lost it.
    """

    ledger_id: str | None
    version: str | None
    applied: int | None


class Index(Protocol):
    """The contract of every index.  Each method raises Transient where a later call may succeed."""

    async def read_position(self) -> IndexPosition:
        """What the index records about itself."""
        ...

    async def look_up(self, probes: Sequence[BandedFingerprint]) -> tuple[int | None, list[LookupResult]]:
        """Look up stories, the probes: the last change applied, and one result per probe.

        The results include every change up to that one.  Every bucket is read whole: so which stories are found does
        not depend on the order in which they came.
        """
        ...

    async def apply(self, changes: Sequence[Change], applied: int | None, since: int | None = None) -> None:
        """Apply changes to the buckets and set the position to `applied`, all in one transaction.

        Changes up to the position are skipped and the position never goes back, so a replay changes nothing; changes
        numbered 0, which are not the ledger's, are always applied.  If `applied` is None the position stays as it is.
        `since` is the position that the changes follow: raises Transient if the index has fallen behind it.
        """
        ...

    async def clear(self, ledger_id: str, version: str, sizes: Mapping[Language, int] = {}) -> None:
        """Drop all data and record this ledger and this version of the fingerprints; `applied` becomes None.

        `sizes` are the numbers of stories that the index is about to hold, by language, as far as they are known.
        """
        ...

    async def admit(self, version: str) -> None:
        """Record this version, and the settings of the languages that were added since the index was cleared.

        The recorded settings stay as they are.
        """
        ...

    def build(self, batches: "AsyncIterator[FingerprintArrays]", scratch: Path) -> AsyncGenerator[int, None]:
        """Fill an index that was just cleared; `applied` stays None.

        Yields progress from time to time: by how many stories the build has advanced.  `scratch` is an empty folder
        with room for a hundred bytes per story.
        """
        ...

    async def close(self) -> None:
        """Release connections and threads."""
        ...


@runtime_checkable
class BucketStatistics(Protocol):
    """An index that can count its stories and the members of its buckets.  Each method raises Transient as `Index`."""

    async def count_stories(self) -> dict[Language, int]:
        """The number of stories of each language that has any."""
        ...

    async def read_bucket_sizes(self, sample: Sequence[BandedFingerprint]) -> dict[Bucket, int]:
        """The number of members of each bucket that a story of the sample falls into; empty buckets are left out."""
        ...


async def read_bucket_sizes(index: Index, sample: Sequence[BandedFingerprint]) -> dict[Bucket, int]:
    """The sizes of the buckets that the sample falls into; empty for an index without statistics."""
    return await index.read_bucket_sizes(sample) if isinstance(index, BucketStatistics) else {}


@runtime_checkable
class ServerHealth(Protocol):
    """An index that can check its server or file.  Each method raises Transient as `Index`."""

    async def check_writable(self) -> None:
        """Write without changing the index; raises where an insert would be refused."""
        ...

    async def find_problem(self) -> str | None:
        """What is wrong with the server's configuration or with the data, in one line; None if nothing is."""
        ...


@runtime_checkable
class Completeness(Protocol):
    """An index that can compare stories with its buckets, each story given as the change that inserts it.

    Each method raises Transient as `Index`, and IndexDamaged if only a rebuild helps.
    """

    async def count_missing(self, stories: Sequence[Change]) -> list[int]:
        """For each story, the number of its entries that the index lacks."""
        ...

    async def restore(self, stories: Sequence[Change]) -> None:
        """Write those entries of the stories that the index lacks; its position and its counts stay as they are."""
        ...
