"""Notices a Redis that loses data while an index is built in it, when there is no mark to tell by.

    INCR  neardup:filled:<LANG>    with each message that writes some of a language; gone when the mark is set

Redis applies and keeps commands in their order, so whatever is lost of a message is lost with its count.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from neardup.index.marks import lost
from neardup.records import Language

Command = tuple[object, ...]


class Filling:
    """Counts the messages here and there; `ask` sends some commands as one message."""

    def __init__(self, ask: Callable[[Sequence[Command]], Awaitable[list[Any]]], names: Mapping[Language, str]) -> None:
        self._ask = ask
        self._keys = {language: f"neardup:filled:{name}" for language, name in names.items()}
        self._counts: dict[Language, int] = {}

    def forget(self) -> None:
        """The index is about to be cleared."""
        self._counts.clear()

    async def begin(self) -> None:
        """The index was cleared.  Raises Transient where what a clear leaves is gone."""
        version, *counts = await self._ask(
            [("GET", "neardup:version"), *(("INCR", key) for key in self._keys.values())]
        )
        if version is None or set(counts) != {1}:
            raise lost()
        self._counts = dict.fromkeys(self._keys, 1)

    async def write(self, language: Language, commands: Sequence[Command]) -> None:
        """Write some of a language.  Raises Transient where what was written of it before is gone."""
        self._counts[language] += 1
        *_, count = await self._ask([*commands, ("INCR", self._keys[language])])
        if count != self._counts[language]:
            raise lost()

    def keys(self, languages: Iterable[Language]) -> list[str]:
        """The counts there of languages that were written to, and whose mark is not yet set."""
        return [self._keys[language] for language in languages if language in self._counts]

    def refuse_loss(self, counts: Sequence[int], languages: Iterable[Language]) -> None:
        """Raise Transient where the counts that stand there under `keys` tell that some of it is gone."""
        if list(counts) != [self._counts[language] for language in languages if language in self._counts]:
            raise lost()

    def marked(self, languages: Iterable[Language]) -> None:
        """From here on the mark tells of a loss."""
        for language in languages:
            self._counts.pop(language, None)
