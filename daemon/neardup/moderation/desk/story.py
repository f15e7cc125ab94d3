"""The page of a story: its similarity report, which is also the heart of the page of a case."""

import asyncio
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from aiohttp import web

from neardup.core.fingerprint.word_hashes import hash_words
from neardup.ledger import authors, cases, marks, similarities
from neardup.ledger.authors import History
from neardup.ledger.similarities import Similarity
from neardup.moderation.desk.access import require_moderator
from neardup.moderation.desk.desk import Desk, desk_of
from neardup.moderation.desk.pages import page
from neardup.moderation.desk.query import at_word
from neardup.moderation.desk.texts import load_text
from neardup.moderation.evidence.common_text import common_text
from neardup.moderation.evidence.story_report import COLOURS, story_report
from neardup.moderation.interface import marked
from neardup.moderation.wording import author_history, similarity_findings, similarity_headline
from neardup.query.compare import describe_stories
from neardup.query.evidence import LoadedStory
from neardup.records import Marks
from neardup.source.parse import id_of


@dataclass(frozen=True, slots=True)
class StoryDetails:
    """A story in the ledger: its similarity, its row of `described`, and its case."""

    found: Similarity
    known: dict[str, Any]
    case_id: int | None
    history: History | None
    marks: Marks


def story_of(request: web.Request) -> int:
    """The story id in the path.  Raises HTTPNotFound."""
    try:
        return id_of(request.match_info["story"])
    except ValueError:
        raise web.HTTPNotFound from None


async def show(request: web.Request) -> web.Response:
    """GET /story/ID."""
    require_moderator(request)
    desk, story_id = desk_of(request), story_of(request)
    await desk.ledger.refresh_cases()
    details = await desk.ledger.read(story_details, story_id)
    if details is None:
        raise web.HTTPNotFound(reason=marked("This story is not in the ledger"))
    return page(
        request,
        "story.html.j2",
        **await report_values(desk, details, partial(at_word, "")),
    )


async def report_values(desk: Desk, details: StoryDetails, pair_query: Callable[[int | None], str]) -> dict[str, Any]:
    """The values of the template of a story; `pair_query` gives the query of a pair's page that begins at a word."""
    text = await load_text(desk, details.known)
    story = text if isinstance(text, LoadedStory) else None
    is_changed = story is not None and not _is_compared(story)
    common = None
    if story is not None and not is_changed:
        hashes = await asyncio.to_thread(lambda: hash_words(story.words).hashes)
        common = await desk.ledger.read(common_text, details.found.language, hashes)
    return {
        "details": details,
        "report": await asyncio.to_thread(story_report, details.found, story, common),
        "headline": similarity_headline(details.found),
        "findings": similarity_findings(details.found),
        "gone": None if isinstance(text, LoadedStory) else text.why,
        "is_changed": is_changed,
        "history": details.history and author_history(details.history),
        "colours": COLOURS,
        "pair_query": pair_query,
    }


def story_details(db: sqlite3.Connection, story_id: int) -> StoryDetails | None:
    """What the ledger knows of a story; None if it does not have it."""
    found = similarities.of_story(db, story_id)
    if found is None:
        return None
    return StoryDetails(
        found,
        describe_stories(db, [story_id])[story_id],
        cases.of_story(db, story_id),
        authors.histories(db, [found.author_id]).get(found.author_id or ""),
        marks.of_stories(db, [story_id]).get(story_id, ()),
    )


def _is_compared(story: LoadedStory) -> bool:
    """Whether this text is the one that the ledger's places of words refer to.

    After an upgrade, whose fingerprints differ, only the number of words can tell.
    """
    known = story.known
    if known["text_hash"] is None:
        return bool(len(story.words) == known["words"])
    recorded: bytes = known["text_hash"]
    return recorded == story.text_hash
