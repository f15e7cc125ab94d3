"""What an index puts on record of itself, and how another's record is told."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from neardup.core.candidates.banding import Banding
from neardup.errors import Transient
from neardup.index.protocol import Bandings, Mark
from neardup.records import Language


def layout(bandings: Bandings, setting: Callable[[Banding], int]) -> str:
    """A setting that decides where a story stands, for the record: one number if all languages agree."""
    values = [str(setting(bandings[language])) for language in Language]
    return values[0] if len(set(values)) == 1 else ",".join(values)


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
