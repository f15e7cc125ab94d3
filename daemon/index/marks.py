"""What an index puts on record of itself, and how another's record is told."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from daemon.core.banding import Banding
from daemon.index import Bandings, Mark
from daemon.records import Language


def layout(bandings: Bandings, setting: Callable[[Banding], int]) -> str:
    """A setting that decides where a story stands, for the record: one number if all languages agree."""
    values = [str(setting(bandings[language])) for language in Language]
    return values[0] if len(set(values)) == 1 else ",".join(values)


def strange(mark: Mark, settings: Sequence[str]) -> Mark:
    """The mark of an index that was made under other settings, if there are any and it was made at all."""
    if mark.version is None or not settings:
        return mark
    return replace(mark, version=f"{mark.version}, made for another {' and '.join(settings)}", applied=None)
