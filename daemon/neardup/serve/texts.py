"""The text of a story in a request, or of a story on record."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from neardup.app import ServiceParts
from neardup.core.page import PageText, PreparedStory, Unreadable, prepare_story, split_story
from neardup.pages.results import Failure, ReadFailed, explain
from neardup.problem_types import TOO_LARGE
from neardup.query.compare import describe_stories, load_story
from neardup.query.evidence import LoadedStory
from neardup.records import Limit, Mark, MarkReason
from neardup.serve.problems import NO_STORY, UNKNOWN_STORY, Refused
from neardup.serve.requests import ComparedStory
from neardup.serve.story_ids import StoryId, story_id_of

S = TypeVar("S", PageText, PreparedStory)
MOST_WORDS = 500_000  # five novels


async def prepared_story(parts: ServiceParts, text: str | None, html: str | None) -> PreparedStory:
    """A story to check that is given as a text or as a page.  Raises Refused if there is none."""
    found = await _read(parts, text, html, prepare_story, parts.pool.prepare)
    _refuse_novels(found.fingerprint.words)
    return found


async def text_of(parts: ServiceParts, text: str | None, html: str | None) -> PageText:
    """The text and the words of a story that is given as a text or as a page.  Raises Refused if there is none."""
    found = await _read(parts, text, html, split_story, parts.pool.split)
    _refuse_novels(len(found.words))
    return found


def _refuse_novels(words: int) -> None:
    if words > MOST_WORDS:
        raise Refused(TOO_LARGE, f"the story has more than {MOST_WORDS:,} words")


async def _read(
    parts: ServiceParts,
    text: str | None,
    html: str | None,
    read_text: Callable[[str], S | Unreadable],
    read_page: Callable[[bytes], Awaitable[S | Failure]],
) -> S:
    """What is read from a text or from a page; `read_page` does it in a reader process.

    Hostile markup can keep a parser busy for hours.  Raises Refused if there is no story.
    """
    given = html if text is None else text
    assert given is not None
    encoded, most = given.encode(), parts.config.content.max_bytes
    if text is None:
        found = await read_page(encoded[:most])
    else:
        found = await asyncio.to_thread(read_text, encoded[:most].decode(errors="ignore"))
    if isinstance(found, Unreadable | ReadFailed):
        raise Refused(NO_STORY, explain(found), reason=found.reason)
    return replace(found, marks=(Mark(MarkReason.TRUNCATED, Limit.SIZE),)) if len(encoded) > most else found


async def story_on_record(parts: ServiceParts, story_id: StoryId) -> LoadedStory:
    """The current text of a story on record.

    Raises Refused if there is no such story or its page yields no text, Transient if the store does not answer.
    """
    known = await parts.reader.do(describe_stories, [story_id.number])
    if story_id.number not in known:
        raise Refused(UNKNOWN_STORY, f"story {story_id.shown} is not on record")
    story = await load_story(parts.pool, known[story_id.number])
    if not isinstance(story, LoadedStory):
        raise Refused(NO_STORY, f"story {story_id.shown}: {story.why}")
    return story


async def compared_story(parts: ServiceParts, side: ComparedStory) -> LoadedStory:
    """One side of a comparison.  Raises as `text_of` and `story_on_record` do."""
    if side.story_id is not None:
        return await story_on_record(parts, story_id_of(side.story_id))
    found = await text_of(parts, side.text, side.html)
    return LoadedStory(found.text, found.words, {})
