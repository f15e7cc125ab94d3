"""The candidate index: it nominates the stories that may be copies of a story.

An index is derived from the ledger.  It applies the ledger's numbered changes in order and records the number of the
last one, so an index that is behind replays the changes it lacks, and an index that lost data is rebuilt.

A backend implements `Index`.  The functions below it are how backends record their position and settings, and recognise
an index that was made under other settings.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import replace

from neardup.core.candidates.banding import Banding, Numbers
from neardup.core.fingerprint.version import explain_difference
from neardup.errors import Fatal, IndexDamaged, Transient
from neardup.records import BandedFingerprint, Change, Language

if TYPE_CHECKING:
    from neardup.core.candidates.banding import FingerprintArrays


Bandings = Mapping[Language, Banding]
Codes = Mapping[Language, str]  # the ISO 639 code of each language
DIGITS = 19  # of the numbers that 64 bits hold with a sign, less one


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

    async def count_stories(self) -> dict[Language, int]:
        """The number of stories of each language that has any."""
        ...

    async def read_bucket_sizes(self, sample: Sequence[BandedFingerprint]) -> dict[Bucket, int]:
        """The number of members of each bucket that a story of the sample falls into; empty buckets are left out."""
        ...

    async def count_missing(self, stories: Sequence[Change]) -> list[int]:
        """For each story, given as the change that inserts it, the number of its entries that the index lacks.

        Raises IndexDamaged if only a rebuild helps.
        """
        ...

    async def restore(self, stories: Sequence[Change]) -> None:
        """Write those entries of these stories that the index lacks; its position and its counts stay as they are.

        Raises IndexDamaged if only a rebuild helps.
        """
        ...

    async def check_writable(self) -> None:
        """Write without changing the index; raises where an insert would be refused."""
        ...

    async def find_problem(self) -> str | None:
        """What is wrong with the server's configuration or with the data, in one line; None if nothing is."""
        ...

    async def close(self) -> None:
        """Release connections and threads."""
        ...


def record_packed_settings(bandings: Bandings) -> dict[str, str]:
    """The records of the settings that decide which packed buckets a story falls into, by name."""
    return {
        "hamming": record_by_language({language: banding.hamming for language, banding in bandings.items()}),
        "bands": record_by_language({language: banding.bands for language, banding in bandings.items()}),
    }


def record_by_language(values: Mapping[Language, int]) -> str:
    """One number per language, as an index records it: `HINDI=14 TAMIL=13`."""
    return " ".join(f"{language}={value}" for language, value in values.items())


def parse_values(record: str | None) -> dict[Language, int]:
    """The numbers in a record of `record_by_language`; none without a record.  Raises IndexDamaged for another text."""
    pairs = [entry.rpartition("=") for entry in (record or "").split()]
    if not all(language and value.isascii() and value.isdigit() for language, _, value in pairs):
        raise IndexDamaged(f"the index is damaged: it records a setting as {record!r:.40}")
    return {Language(language): int(value) for language, _, value in pairs}


def extend_record(recorded: str | None, current: str) -> str:
    """A recorded setting, extended by the current values of the languages that it lacks."""
    return record_by_language(parse_values(current) | parse_values(recorded))


def is_same_setting(recorded: str | None, current: str) -> bool:
    """Whether each language in both records has the same value in both; False without a record.

    The index holds no story of a language that only one of the records names.
    """
    old, new = parse_values(recorded), parse_values(current)
    return recorded is not None and all(new.get(language, value) == value for language, value in old.items())


def mark_other_settings(position: IndexPosition, settings: Sequence[str]) -> IndexPosition:
    """The position of an index whose recorded `settings` differ from ours: its version names them, it has no change.

    An index that records no version, or differs in no setting, keeps its position.
    """
    if position.version is None or not settings:
        return position
    return replace(position, version=f"{position.version}, made for another {' and '.join(settings)}", applied=None)


def make_data_lost() -> Transient:
    """The error of an index that lost data during a write; the index is repaired before the next attempt."""
    return Transient("the index has lost data while it was written to", "index_lost")


def refuse_gap(applied: int | None, since: int | None) -> None:
    """Raise Transient if changes that follow `since` would leave a gap after `applied`."""
    if since is not None and (applied is None or applied < since):
        raise make_data_lost()


def select_new(changes: Sequence[Change], applied: int | None) -> list[Change]:
    """The changes after `applied`, and those numbered 0: they are not the ledger's, and are always applied."""
    return [change for change in changes if change.seq == 0 or applied is None or change.seq > applied]


def parse_number(value: object) -> int | None:
    """A position or a count as an index stores it; None if it is missing or no number."""
    if isinstance(value, bytes) and value.isdigit() and len(value) < DIGITS:
        return int(value)
    return value if isinstance(value, int) and value >= 0 else None


def find_earliest(positions: Sequence[int | None]) -> int | None:
    """The lowest of the positions of an index's parts; None if one of them is missing."""
    return None if None in positions else min(position for position in positions if position is not None)


def refuse_index_mismatch(position: IndexPosition, ledger: str, version: str, held: Collection[str]) -> None:
    """Raise Fatal for the index of a ledger with another id, or with fingerprints of another version.

    `held` are the languages of which the ledger has stories.
    """
    refuse_foreign_index(position, ledger)
    if position.version is None:
        return
    recorded, _, other_settings = position.version.partition(", ")
    if why := explain_difference(recorded, version, held):
        raise Fatal(f"the index holds {why}; `neardup reindex` rebuilds it")
    if other_settings:
        raise Fatal(f"the index is {other_settings}; `neardup reindex` rebuilds it")


def refuse_foreign_index(position: IndexPosition, ledger: str) -> None:
    """Raise Fatal for the index of a ledger with another id."""
    if position.ledger_id not in (None, ledger):
        raise Fatal("the index belongs to another ledger; `neardup reindex` rebuilds it from this one")
