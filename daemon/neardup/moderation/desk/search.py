"""The search: for the id of a story or an author, for words of a title, and for a sentence that stories hold."""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import suppress

from aiohttp import web
from msgspec import Struct, field

from neardup.core.text.normalize import tokenize
from neardup.errors import NeardupError
from neardup.ledger import authors, flags, stories, story_rows
from neardup.moderation.desk.addresses import make_author_url, make_story_url
from neardup.moderation.desk.pages import render_page, require_moderator
from neardup.moderation.desk.parts import Desk, get_desk, load_text
from neardup.query.compare import LoadedStory, describe_stories
from neardup.query.search import LATEST_STORIES, SURE_WORDS, measure_share_held
from neardup.records import ShownId
from neardup.source.parse import LONGEST_NAME, parse_id

MAX_LENGTH = LONGEST_NAME  # characters; as many as an id may have
MOST_TITLES = 50
MOST_TEXTS = 30  # that are read for one sentence
LEAST_WORDS = 4  # of a sentence, as a gram has; fewer words are those of a title
LEAST_SHARE = 0.5  # of the 4-grams of a sentence, by which a story holds it


class SentenceResult(Struct, frozen=True):
    """What was found for a sentence.

    `shares` has the share of it that a story holds, at least LEAST_SHARE, by id, the largest first; `unread` are
    stories whose text could not be read, and `left_out` counts those that were not read.  `failed` says why nothing was
    looked up.  `pending` counts the latest stories whose texts the desk has yet to read.
    """

    shares: dict[int, float] = field(default_factory=dict)
    unread: Sequence[int] = ()
    left_out: int = 0
    pending: int = 0
    failed: str | None = None


async def show(request: web.Request) -> web.StreamResponse:
    """GET /search?q=: leads to a story or an author if nothing else is found by this id."""
    require_moderator(request)
    desk, text = get_desk(request), request.query.get("q", "").strip()[:MAX_LENGTH]
    words = tokenize(text)
    story_id, has_author = await desk.ledger.read(_find_by_id, text)
    titled_ids, is_whole = await desk.titles.search(text, MOST_TITLES)
    sentence = await _find_sentence(desk, words) if len(words) >= LEAST_WORDS else None
    sentence_ids = [] if sentence is None else [*sentence.shares, *sentence.unread]
    is_found = bool(titled_ids or sentence_ids)
    if story_id is not None and not has_author and not is_found:
        raise web.HTTPSeeOther(make_story_url(story_id))
    if has_author and story_id is None and not is_found:
        raise web.HTTPSeeOther(make_author_url(text))
    await desk.ledger.refresh_cases()
    rows = await desk.ledger.read(flags.list_stories, [*titled_ids, *sentence_ids])
    return render_page(
        request,
        "search.html.j2",
        200 if is_found or has_author or story_id is not None else 404,
        text=text,
        story_id=story_id,
        has_author=has_author,
        titled=rows[: len(titled_ids)],
        limit=MOST_TITLES,
        latest=LATEST_STORIES,
        is_whole=is_whole,
        sentence=sentence,
        rows_by_id={row["id"]: row for row in rows[len(titled_ids) :]},
    )


def _find_by_id(db: sqlite3.Connection, text: str) -> tuple[ShownId | None, bool]:
    """The story with an id or a name, and whether an author with this id has flags."""
    has_author = authors.read_author(db, text) is not None
    with suppress(ValueError):
        story_id = parse_id(text)
        if stories.read_stored_versions(db, [story_id]):
            return story_rows.read_shown_ids(db, [story_id])[story_id], has_author
    return None, has_author


async def _find_sentence(desk: Desk, words: list[bytes]) -> SentenceResult:
    try:
        async with desk.open_passage_search() as search:
            sampled = await search.find_stories(words)
        latest, pending = ([], 0) if len(words) >= SURE_WORDS else await desk.texts.find_stories(words)
    except NeardupError as error:
        return SentenceResult(failed=str(error))
    ids = list(dict.fromkeys([*sampled, *latest]))
    known = await desk.ledger.read(describe_stories, ids[:MOST_TEXTS])
    texts = await asyncio.gather(*(load_text(desk, known[story_id]) for story_id in known))
    shares = {
        story_id: measure_share_held(words, loaded.text.word_hashes)
        for story_id, loaded in zip(known, texts, strict=True)
        if isinstance(loaded, LoadedStory)
    }
    return SentenceResult(
        {
            story_id: share
            for story_id, share in sorted(shares.items(), key=lambda found: -found[1])
            if share >= LEAST_SHARE
        },
        [story_id for story_id in known if story_id not in shares],
        max(len(ids) - MOST_TEXTS, 0),
        pending,
    )
