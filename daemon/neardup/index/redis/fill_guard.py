"""Detects that Redis loses data during the build of an index, when there is no position yet to show a loss.

    INCR  neardup:filled:<LANG>    with each message that writes data of a language; deleted when the position is set

Redis applies and persists commands in order, and the INCR is the last of a message: if Redis loses any part of the
message, it loses the INCR too.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from neardup.index.positions import data_lost
from neardup.index.redis.commands import Command
from neardup.records import Language


class FillGuard:
    """Counts the messages sent for each language and compares Redis's counts with its own; `send` sends one message."""

    def __init__(
        self, send: Callable[[Sequence[Command]], Awaitable[list[Any]]], names: Mapping[Language, str]
    ) -> None:
        self._send = send
        self._keys = {language: f"neardup:filled:{name}" for language, name in names.items()}
        self._counts: dict[Language, int] = {}

    def reset(self) -> None:
        """Forget all counts, before the index is cleared."""
        self._counts.clear()

    async def start(self) -> None:
        """Start counting, after the index was cleared.  Raises Transient if Redis has lost what the clear wrote."""
        version, *counts = await self._send(
            [("GET", "neardup:version"), *(("INCR", key) for key in self._keys.values())]
        )
        if version is None or set(counts) != {1}:
            raise data_lost()
        self._counts = dict.fromkeys(self._keys, 1)

    async def write(self, language: Language, commands: Sequence[Command]) -> None:
        """Write data of a language.  Raises Transient if Redis has lost data written earlier."""
        self._counts[language] += 1
        *_, count = await self._send([*commands, ("INCR", self._keys[language])])
        if count != self._counts[language]:
            raise data_lost()

    def keys(self, languages: Iterable[Language]) -> list[str]:
        """The keys of the counts of those languages that were written to and have no position yet."""
        return [self._keys[language] for language in languages if language in self._counts]

    def refuse_loss(self, counts: Sequence[int | None], languages: Iterable[Language]) -> None:
        """Raise Transient if Redis's counts, the values of `keys(languages)`, show a loss."""
        if list(counts) != [self._counts[language] for language in languages if language in self._counts]:
            raise data_lost()

    def finish(self, languages: Iterable[Language]) -> None:
        """Stop counting for languages whose position is set: from then on the position shows a loss."""
        for language in languages:
            self._counts.pop(language, None)
