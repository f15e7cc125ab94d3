"""Notices a Redis that loses data while an index is built in it, when there is no mark to tell by.

    INCR  neardup:filled:<LANG>    with each message that writes some of a language; gone when all is written

Redis applies and keeps commands in their order, so whatever is lost of a message is lost with its count.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from daemon.index.marks import lost
from daemon.records import Language

Command = tuple[object, ...]


class Filling:
    """Counts the messages here and there; `ask` sends some commands as one message."""

    def __init__(self, ask: Callable[[Sequence[Command]], Awaitable[list[Any]]], names: Mapping[Language, str]) -> None:
        self._ask = ask
        self._keys = {language: f"neardup:filled:{name}" for language, name in names.items()}
        self._counts: Counter[Language] = Counter()

    def begin(self) -> None:
        """The index was just cleared."""
        self._counts.clear()

    async def write(self, language: Language, commands: Sequence[Command]) -> None:
        """Write some of a language.  Raises Transient where what was written of it before is gone."""
        self._counts[language] += 1
        *_, count = await self._ask([*commands, ("INCR", self._keys[language])])
        if count != self._counts[language]:
            raise lost()

    async def end(self) -> None:
        """All is written.  Raises Transient where some of it is gone."""
        counts = await self._ask([("GETDEL", self._keys[language]) for language in self._counts])
        if [int(count or 0) for count in counts] != list(self._counts.values()):
            raise lost()
