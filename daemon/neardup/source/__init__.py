"""Who lists the stories, behind one protocol: Athena, a manifest file, a folder, and the dead letters.

`listings` opens what a configuration names, `athena` runs queries.  `rows` reads files, `parse` makes stories of rows,
and `documents` has the files and tables that are scanned.
"""

from collections.abc import AsyncIterable, AsyncIterator
from contextlib import aclosing
from typing import Protocol

from neardup.core.columns import ListedBlock, StoryColumns
from neardup.records import BadRow, Checkpoint, ListedRow, Story
from neardup.source.rows import BLOCK_ROWS


class Source(Protocol):
    """A listing of stories.

    `name` identifies it in a checkpoint; `size` is its length in the unit of `Checkpoint.position` (0: not known yet).
    """

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...

    def list_blocks(self, *, since: int | None, resume: Checkpoint | None) -> AsyncIterator[ListedBlock]:
        """All stories in columns, or those updated at or after `since` (milliseconds since 1970); and the bad rows.

        Continues from `resume` if that is a checkpoint of this listing.
        """
        ...


async def list_rows(
    source: Source, *, since: int | None = None, resume: Checkpoint | None = None
) -> AsyncIterator[ListedRow]:
    """The rows of a listing as objects."""
    async with aclosing(source.list_blocks(since=since, resume=resume)) as blocks:  # type: ignore[type-var]
        async for block in blocks:
            for row in [block] if isinstance(block, BadRow) else block.stories():
                yield row


async def make_blocks(rows: AsyncIterable[ListedRow | StoryColumns]) -> AsyncIterator[ListedBlock]:
    """Blocks of these rows, in order: stories listed as objects are gathered in columns, others pass as they are."""
    stories = list[Story]()
    async for row in rows:
        if isinstance(row, Story):
            stories.append(row)
        if stories and (not isinstance(row, Story) or len(stories) == BLOCK_ROWS):
            yield StoryColumns.of(stories)
            stories.clear()
        if not isinstance(row, Story):
            yield row
    if stories:
        yield StoryColumns.of(stories)
