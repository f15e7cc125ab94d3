"""Stories listed by the ledger's dead letters, as their listings had them."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace

from neardup.records import Checkpoint, Listed, Story


class Letters:
    """The stories that `page(key)` gives, those with later keys than that, until there are no more.

    `size` is their number, and a story's position its place among them.
    """

    def __init__(self, page: Callable[[str], Awaitable[Sequence[Story]]], size: int) -> None:
        self._page = page
        self.name = "dead letters"
        self.size = size

    async def stories(self, *, since: int | None, resume: Checkpoint | None) -> AsyncIterator[Listed]:
        """All of them: neither time nor checkpoint means anything here."""
        after, place = "", 0
        while page := await self._page(after):
            for story in page:
                place += 1
                yield replace(story, position=place)
            after = page[-1].key
