"""The text of a story in a request, or of a story on record."""

import asyncio
from dataclasses import replace

from neardup.checking import ServiceParts
from neardup.core.page import PageText, split_story
from neardup.pages.results import TextResult, explain
from neardup.problem_types import TOO_LARGE
from neardup.query.compare import describe_stories, load_story
from neardup.query.compared_story import LoadedStory
from neardup.records import Limit, Mark, MarkReason
from neardup.serve.problems import NO_STORY, UNKNOWN_STORY, Refused
from neardup.serve.requests import ComparedStory
from neardup.serve.story_ids import StoryId, story_id_of

MOST_WORDS = 500_000  # five novels


async def text_of(parts: ServiceParts, text: str | None, html: str | None) -> PageText:
    """The text and the words of a story that is given as a text or as a page.

    A page is parsed by a reader process, because hostile markup can keep a parser busy for hours.  Raises Refused if
    there is no story.
    """
    match await _split(parts, text, html):
        case PageText(_, words) if len(words) > MOST_WORDS:
            raise Refused(TOO_LARGE, f"the story has more than {MOST_WORDS:,} words")
        case PageText() as found:
            return found
        case failure:
            raise Refused(NO_STORY, explain(failure), reason=failure.reason)


async def _split(parts: ServiceParts, text: str | None, html: str | None) -> TextResult:
    given = html if text is None else text
    assert given is not None
    encoded, most = given.encode(), parts.config.content.max_bytes
    if text is None:
        found = await parts.pool.split(encoded[:most])
    else:
        found = await asyncio.to_thread(split_story, encoded[:most].decode(errors="ignore"))
    if isinstance(found, PageText) and len(encoded) > most:
        return replace(found, marks=(Mark(MarkReason.TRUNCATED, Limit.SIZE),))
    return found


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
