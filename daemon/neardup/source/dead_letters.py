"""Stories of the ledger's dead letters, with the values of the listings that they came from."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace

from neardup.columns import ListedBlock, StoryColumns
from neardup.records import Checkpoint, Story


class DeadLetters:
    """The stories that `page(key)` returns, a page of those behind this key at a time, until a page is empty.

    `size` is the number of stories, and a story's position counts them from 1.
    """

    def __init__(self, page: Callable[[str], Awaitable[Sequence[Story]]], size: int) -> None:
        self._page = page
        self.name = "dead letters"
        self.size = size

    async def blocks(self, *, since: int | None, resume: Checkpoint | None) -> AsyncIterator[ListedBlock]:
        """All of them; `since` and `resume` are ignored."""
        after, position = "", 0
        while page := await self._page(after):
            yield StoryColumns.of(replace(story, position=n) for n, story in enumerate(page, position + 1))
            after, position = page[-1].key, position + len(page)
