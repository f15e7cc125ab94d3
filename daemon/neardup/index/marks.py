"""What an index puts on record of itself, and how another's record is told."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from neardup.core.candidates.banding import Banding
from neardup.errors import Transient
from neardup.index.protocol import Bandings, Mark
from neardup.records import Language


def by_name(values: Mapping[Language, int]) -> str:
    """Numbers of languages, for the record: `HINDI=14 TAMIL=13`."""
    return " ".join(f"{language}={value}" for language, value in values.items())


def read_by_name(record: str | None) -> dict[Language, int]:
    """What `by_name` has put on record."""
    pairs = (entry.rpartition("=") for entry in (record or "").split())
    return {Language(language): int(value) for language, _, value in pairs}


def layout(bandings: Bandings, setting: Callable[[Banding], int]) -> str:
    """A setting that decides in which buckets a story is, for the record."""
    return by_name({language: setting(banding) for language, banding in bandings.items()})


def extended(record: str | None, layout: str) -> str:
    """A setting on record, with the languages that were added since."""
    return by_name(read_by_name(record) | read_by_name(layout))


def agrees(record: str | None, layout: str) -> bool:
    """Whether a recorded setting is the same as now for each language that both name.  Others have no story there."""
    recorded, now = read_by_name(record), read_by_name(layout)
    return record is not None and all(now.get(language, value) == value for language, value in recorded.items())


def strange(mark: Mark, settings: Sequence[str]) -> Mark:
    """The mark of an index that was made under other settings, if there are any and it was made at all."""
    if mark.version is None or not settings:
        return mark
    return replace(mark, version=f"{mark.version}, made for another {' and '.join(settings)}", applied=None)


def lost() -> Transient:
    """What to raise where an index is seen to have lost data: tried again, it is healed first."""
    return Transient("the index has lost data while it was written to", "index_lost")


def refuse_gap(mark: int | None, since: int | None) -> None:
    """Raise Transient where changes that go on from `since` would leave some out."""
    if since is not None and (mark is None or mark < since):
        raise lost()


def least(replies: Sequence[bytes | int | None]) -> int | None:
    """Of the marks of an index the one furthest behind; None where one is missing."""
    return None if None in replies else min(int(reply) for reply in replies if reply is not None)
