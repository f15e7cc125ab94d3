"""A sample of the pages of the configured source."""

import random
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, closing

from neardup.config import Config, Content
from neardup.core.page import Page
from neardup.errors import Fatal, NeardupError
from neardup.pages.store import Pages, open_transfers, path_of
from neardup.records import BadRow, Checkpoint, ListedRow, Story
from neardup.source.configured import open_source

PAGES = 20
ROWS = 2_000  # of the listing, from which the pages are chosen
SEED = 1


async def sample_pages(config: Config) -> list[Page]:
    """A few pages, chosen at random among the first rows of the listing; those that cannot be read are left out.

    Raises Fatal for a listing without a usable row, or if no page can be read, with the reason of the first.
    """
    listed: list[ListedRow] = []
    async with aclosing(_rows(config)) as rows:  # type: ignore[type-var]
        async for row in rows:
            listed.append(row)
            if len(listed) == ROWS:
                break
    stories = [row for row in listed if isinstance(row, Story)]
    if not stories:
        bad = next((row.error for row in listed if isinstance(row, BadRow)), "it has no rows")
        raise Fatal(f"the listing has no usable row: {bad}")
    chosen = random.Random(SEED).sample(stories, min(PAGES, len(stories)))  # noqa: S311 - not for security
    read = list(_read(config.content, [path_of(config.content, story) for story in chosen]))
    pages = [page for page in read if isinstance(page, Page)]
    failures = [page for page in read if isinstance(page, NeardupError)]
    if failures and not pages:
        raise Fatal(f"none of {len(read)} pages could be read: {failures[0]}")
    return pages


def _rows(config: Config) -> AsyncIterator[ListedRow]:
    return open_source(config, _ignore_checkpoint).stories(since=None, resume=None)


async def _ignore_checkpoint(_: Checkpoint) -> None:
    """Ignore the checkpoint: a sample is never resumed."""


def _read(content: Content, paths: Sequence[str]) -> Iterator[Page | NeardupError]:
    """The pages at these paths, or why they cannot be read, in any order."""
    store = Pages(content)
    control, other = socket.socketpair()
    with closing(control), closing(other):
        transfers = open_transfers([content], control.fileno())
        for path in paths:
            try:
                transfers.begin(store.begin(path))
            except NeardupError as error:
                yield error
        while transfers.under_way:
            transfers.advance(wait=True)
            while get := transfers.pop_finished():
                try:
                    page = store.page_of(get)
                except NeardupError as error:
                    yield error
                else:
                    assert page is not None  # without an ETag a page is always returned
                    yield page
