"""The page of a story: its similarity report, and the form for one verdict on its open pairs with its sources."""

import asyncio
import sqlite3
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from neardup.core.fingerprint.compute import text_hash
from neardup.core.fingerprint.word_hashes import hashed
from neardup.ledger import flags, similarities, verdicts
from neardup.ledger.selection import Selection
from neardup.ledger.similarities import Similarity
from neardup.moderation.desk.cluster import story_of
from neardup.moderation.desk.decision import Decision, decision
from neardup.moderation.desk.desk import desk_of
from neardup.moderation.desk.login import require_name
from neardup.moderation.desk.pages import page
from neardup.moderation.desk.position import QueuePosition, story_position_of
from neardup.moderation.desk.query import EVERY, Queue, number, queue_of
from neardup.moderation.desk.texts import load_text
from neardup.moderation.evidence.common_text import common_text
from neardup.moderation.evidence.story_report import COLOURS, story_report
from neardup.moderation.wording import similarity_findings, similarity_headline
from neardup.query.compare import describe_stories
from neardup.query.evidence import LoadedStory


@dataclass(frozen=True, slots=True)
class StoryDetails:
    """A story in the ledger: its similarity, its row of `described`, and its position in the queue it came from.

    `open_pairs` counts its open flags with its sources, whose state `seen` identifies, for detecting conflicts;
    `pairs` counts all its flags.
    """

    found: Similarity
    known: dict[str, Any]
    open_pairs: int
    pairs: int
    seen: str
    position: QueuePosition[int] | None
    done: Decision | None


async def show(request: web.Request) -> web.Response:
    """GET /story/ID: takes the query of a queue, and the position at= in the queue of stories."""
    require_name(request)
    desk, story_id = desk_of(request), story_of(request)
    queue = queue_of(request.query, desk.config.registry).of_stories
    at = number(request.query, "at")
    details = await desk.ledger.read(_details, story_id, queue, at, number(request.query, "done"))
    if details is None:
        raise web.HTTPNotFound(reason="This story is not in the ledger")
    text = await load_text(desk, details.known)
    story = text if isinstance(text, LoadedStory) else None
    is_changed = story is not None and not _is_compared(story)
    common = None
    if story is not None and not is_changed:
        hashes = await asyncio.to_thread(lambda: hashed(story.words).hashes)
        common = await desk.ledger.read(common_text, details.found.language, hashes)
    return page(
        request,
        "story.html.j2",
        details=details,
        report=await asyncio.to_thread(story_report, details.found, story, common),
        headline=similarity_headline(details.found),
        findings=similarity_findings(details.found),
        gone=None if isinstance(text, LoadedStory) else text.why,
        is_changed=is_changed,
        colours=COLOURS,
        queue=queue,
        at=at,
        pairs=Queue(Selection(statuses=EVERY, story=story_id, same_author=True)),
    )


def _details(
    db: sqlite3.Connection, story_id: int, queue: Queue, at: int | None, done: int | None
) -> StoryDetails | None:
    found = similarities.of_story(db, story_id)
    if found is None:
        return None
    open_flags = verdicts.open_flags_of_story(db, story_id)
    return StoryDetails(
        found,
        describe_stories(db, [story_id])[story_id],
        len(open_flags),
        flags.count(db, Selection(statuses=EVERY, story=story_id, same_author=True)),
        verdicts.state(db, open_flags),
        None if at is None else story_position_of(db, queue, story_id, at),
        None if done is None else decision(db, done),
    )


def _is_compared(story: LoadedStory) -> bool:
    """Whether this text is the one that the ledger's places of words refer to.

    After an upgrade, whose fingerprints differ, only the number of words can tell.
    """
    known = story.known
    if known["text_hash"] is None:
        return bool(len(story.words) == known["words"])
    recorded: bytes = known["text_hash"]
    return recorded == text_hash(story.words)
