"""How backends record their position and settings, and recognise an index that was made under other settings."""

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec.structs import replace

from neardup.core.candidates.banding import Banding
from neardup.core.fingerprint.version import explain_difference
from neardup.errors import Fatal, IndexDamaged, Transient
from neardup.index.protocol import Bandings, IndexPosition
from neardup.records import Language

DIGITS = 19  # of the numbers that 64 bits hold with a sign, less one


def record_setting(bandings: Bandings, setting: Callable[[Banding], int]) -> str:
    """A setting that decides which buckets a story falls into, as an index records it."""
    return record_by_language({language: setting(banding) for language, banding in bandings.items()})


def record_packed_settings(bandings: Bandings) -> dict[str, str]:
    """The records of the settings that decide which packed buckets a story falls into, by name."""
    return {
        "hamming": record_setting(bandings, lambda banding: banding.hamming),
        "bands": record_setting(bandings, lambda banding: banding.bands),
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
