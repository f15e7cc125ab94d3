"""How backends record their position and settings, and recognise an index that was made under other settings."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from neardup.core.candidates.banding import Banding
from neardup.errors import Transient
from neardup.index.protocol import Bandings, IndexPosition
from neardup.records import Language


def setting_record(bandings: Bandings, setting: Callable[[Banding], int]) -> str:
    """A setting that decides which buckets a story falls into: one number if all languages agree, else a list."""
    values = [str(setting(bandings[language])) for language in Language]
    return values[0] if len(set(values)) == 1 else ",".join(values)


def with_other_settings(position: IndexPosition, settings: Sequence[str]) -> IndexPosition:
    """The position of an index whose recorded `settings` differ from ours: its version names them, it has no change.

    An index that records no version, or differs in no setting, keeps its position.
    """
    if position.version is None or not settings:
        return position
    return replace(position, version=f"{position.version}, made for another {' and '.join(settings)}", applied=None)


def data_lost() -> Transient:
    """The error of an index that lost data during a write; the index is repaired before the next attempt."""
    return Transient("the index has lost data while it was written to", "index_lost")


def refuse_gap(applied: int | None, since: int | None) -> None:
    """Raise Transient if changes that follow `since` would leave a gap after `applied`."""
    if since is not None and (applied is None or applied < since):
        raise data_lost()


def earliest(replies: Sequence[bytes | int | None]) -> int | None:
    """The lowest of the positions of an index's parts; None if one of them is missing."""
    return None if None in replies else min(int(reply) for reply in replies if reply is not None)
