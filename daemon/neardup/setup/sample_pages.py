"""A sample of the pages of the configured source."""

import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, closing
from random import Random
from typing import NamedTuple

from neardup.config import Config, Content
from neardup.core.page import Page
from neardup.errors import Fatal, NeardupError
from neardup.pages.store import Pages, open_transfers, path_of
from neardup.records import BadRow, Checkpoint, Language, ListedRow, Story
from neardup.source import rows_of
from neardup.source.listings import open_source

PAGES = 20
ROWS = 500_000  # of the listing, among which the pages are chosen; more would take more than 4 s
SEED = 1


class SamplePage(NamedTuple):
    """A page, and the language that the listing gives it."""

    language: Language
    page: Page


async def sample_pages(config: Config) -> list[SamplePage]:
    """A few pages, chosen at random among all rows of the listing; those that cannot be read are left out.

    Raises Fatal for a listing without a usable row, or if no page can be read, with the reason of the first.
    """
    read = list(_read(config.content, await _sample(config)))
    pages = [page for page in read if isinstance(page, SamplePage)]
    failures = [page for page in read if isinstance(page, NeardupError)]
    if failures and not pages:
        raise Fatal(f"none of {len(read)} pages could be read: {failures[0]}")
    return pages


async def _sample(config: Config) -> list[Story]:
    """A few stories of the listing, each as likely as any other.  A listing is often sorted, by template for example.

    Algorithm R of Vitter (1985), "Random sampling with a reservoir".
    """
    chosen, stories, reason, random = list[Story](), 0, "it has no rows", Random(SEED)  # noqa: S311 - not for security
    async with aclosing(_rows(config)) as rows:  # type: ignore[type-var]
        async for row in rows:
            if isinstance(row, BadRow):
                reason = str(row.error)
            elif isinstance(row, Story):
                stories += 1
                if len(chosen) < PAGES:
                    chosen.append(row)
                elif (place := random.randrange(stories)) < PAGES:
                    chosen[place] = row
                if stories == ROWS:
                    break
    if not chosen:
        raise Fatal(f"the listing has no usable row: {reason}")
    return chosen


def _rows(config: Config) -> AsyncIterator[ListedRow]:
    return rows_of(open_source(config, _ignore_checkpoint))


async def _ignore_checkpoint(_: Checkpoint) -> None:
    """Ignore the checkpoint: a sample is never resumed."""


def _read(content: Content, stories: Sequence[Story]) -> Iterator[SamplePage | NeardupError]:
    """The pages of these stories, or why they cannot be read, in any order."""
    store, languages = Pages(content), dict[object, Language]()
    control, other = socket.socketpair()
    with closing(control), closing(other):
        transfers = open_transfers([content], control.fileno())
        for story in stories:
            try:
                get = store.begin(path_of(content, story))
            except NeardupError as error:
                yield error
            else:
                languages[get] = story.language
                transfers.begin(get)
        while transfers.under_way:
            transfers.advance(wait=True)
            while finished := transfers.pop_finished():
                try:
                    page = store.page_of(finished)
                except NeardupError as error:
                    yield error
                else:
                    assert page is not None  # without an ETag a page is always returned
                    yield SamplePage(languages[finished], page)
