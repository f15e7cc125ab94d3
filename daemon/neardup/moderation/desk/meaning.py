"""The queue of translated and retold pairs, and the page of one: its aligned chunks side by side, and its verdicts."""

import asyncio
import json
import sqlite3
from typing import Any, NamedTuple

from aiohttp import web
from msgspec import Struct

from neardup.core.text.chunks import cut_chunks
from neardup.core.verify.tiers import list_kinds_of_meaning
from neardup.errors import Conflict
from neardup.ledger import Row, meaning_flags, verdicts
from neardup.moderation.desk.addresses import (
    MEANING_STATUSES,
    MeaningQueue,
    Pair,
    ShownPair,
    find_page_of_form,
    format_meaning_query,
    make_pair_url,
    make_shown_pair,
    parse_meaning_queue,
    read_page_number,
    read_pair,
)
from neardup.moderation.desk.deciding import NewVerdict, read_query, read_verdict, render_conflict
from neardup.moderation.desk.moderators import Moderator
from neardup.moderation.desk.pages import render_page, require_moderator
from neardup.moderation.desk.parts import Desk, announce_undo, announce_verdict, get_desk, load_text
from neardup.moderation.interface import translate_later
from neardup.query.compare import LoadedStory, describe_stories
from neardup.records import Verdict

PAGE_SIZE = 50


class AlignedChunks(NamedTuple):
    """Two chunks that belong together, of the earlier story and the later one; a text is None if it cannot be read."""

    cosine: float
    matched: str | None
    story: str | None


class MeaningPair(Struct, frozen=True):
    """A row of the view `meaning_pairs`, both stories by id, its verdicts so far, and the next pair of the queue.

    `seen` is the state of its verdicts, by which a decision is refused that was made on an older page.
    """

    row: dict[str, Any]
    stories: dict[int, dict[str, Any]]
    history: list[Row]
    seen: int
    after: ShownPair | None


async def show_queue(request: web.Request) -> web.Response:
    """GET /meaning: the widest margin first."""
    require_moderator(request)
    desk, page_number = get_desk(request), read_page_number(request.query)
    queue, first = parse_meaning_queue(request.query, desk.config), (page_number - 1) * PAGE_SIZE

    def read(db: sqlite3.Connection) -> tuple[list[Row], int, int]:
        found = meaning_flags.select(db, queue.selection, limit=PAGE_SIZE, offset=first)
        either, neither = (meaning_flags.count(db, queue.only(same_author=shown).selection) for shown in (True, False))
        hidden = 0 if desk.config.detection.same_author == "keep" else either - neither
        return list(found), meaning_flags.count(db, queue.selection), hidden

    await desk.ledger.refresh_cases()
    rows, total, hidden = await desk.ledger.read(read)
    return render_page(
        request,
        "meaning_queue.html.j2",
        rows=rows,
        total=total,
        hidden=hidden,
        queue=queue,
        first=first,
        page_number=page_number,
        last=max(-(-total // PAGE_SIZE), 1),
        kinds=list_kinds_of_meaning(),
        statuses=MEANING_STATUSES,
    )


async def show(request: web.Request) -> web.Response:
    """GET /meaning/A/B: the story published earlier is shown first, if that is known."""
    moderator, desk, pair = require_moderator(request), get_desk(request), read_pair(request)
    queue = parse_meaning_queue(request.query, desk.config)
    await desk.ledger.refresh_cases()
    found = await desk.ledger.read(_read_meaning_pair, pair, queue)
    if found is None:
        raise web.HTTPNotFound(reason=translate_later("These two stories are not flagged as a pair"))
    languages = found.row["language"], found.row["matched_language"]
    return render_page(
        request,
        "meaning_pair.html.j2",
        found=found,
        aligned=await _align_chunks(desk, found),
        may_decide=all(map(moderator.may_decide, languages)),
        action=f"{request.rel_url.raw_path}/verdict",
        undo=f"{request.rel_url.raw_path}/undo",
        queue=queue,
    )


def _read_meaning_pair(db: sqlite3.Connection, pair: Pair, queue: MeaningQueue) -> MeaningPair | None:
    row = meaning_flags.read_pair(db, *pair)
    if row is None:
        return None
    listed = {
        (listed_pair["a"], listed_pair["b"]): listed_pair
        for listed_pair in meaning_flags.select(db, queue.selection, limit=2 * PAGE_SIZE)
    }
    following = list(listed)[list(listed).index(pair) + 1 :] if pair in listed else list(listed)
    after = listed[following[0]] if following else None
    return MeaningPair(
        row,
        describe_stories(db, list(pair)),
        verdicts.list_of_pair(db, *pair),
        meaning_flags.identify_state(db, *pair),
        None if after is None else make_shown_pair(after),
    )


async def _align_chunks(desk: Desk, found: MeaningPair) -> list[AlignedChunks]:
    row, sides = found.row, ("matched_id", "story_id")
    loaded = await asyncio.gather(*(load_text(desk, found.stories[row[side]]) for side in sides))
    matched, story = (cut_chunks(side.text.written) if isinstance(side, LoadedStory) else [] for side in loaded)
    is_swapped = row["matched_id"] != row["a"]
    aligned = list[AlignedChunks]()
    for place_a, place_b, cosine in json.loads(row["chunks"]):
        place, story_place = (place_b, place_a) if is_swapped else (place_a, place_b)
        aligned.append(AlignedChunks(cosine, _get_chunk(matched, place), _get_chunk(story, story_place)))
    return aligned


def _get_chunk(texts: list[str], place: int) -> str | None:
    return texts[place] if place < len(texts) else None


async def decide(request: web.Request) -> web.StreamResponse:
    """POST /meaning/A/B/verdict: fields `verdict`, `note`, `seen` and `query`; leads to the next pair of the queue."""
    desk, pair = get_desk(request), read_pair(request)
    given = read_verdict(request)
    queue = parse_meaning_queue(read_query(request), desk.config)
    found = await desk.ledger.read(_read_meaning_pair, pair, queue)
    try:
        done = await desk.ledger.write(decide_pair, pair, given)
    except Conflict as error:
        return render_conflict(request, error, find_page_of_form(request))
    announce_verdict(desk, done, given.verdict)
    after = found and found.after
    path = make_pair_url(*after, "meaning") if after else "/meaning"
    raise web.HTTPSeeOther(f"{path}{format_meaning_query(queue)}")


def decide_pair(db: sqlite3.Connection, pair: Pair, given: NewVerdict) -> int:
    """Give a pair a verdict; returns the number of the decision.  Raises Conflict, and NotPermitted."""
    _require(db, pair, given.moderator)
    seen = int(given.seen) if given.seen.isascii() and given.seen.isdecimal() else -1
    return meaning_flags.decide(db, *pair, given.verdict, given.note, given.moderator.name, seen)


async def undo(request: web.Request) -> web.StreamResponse:
    """POST /meaning/A/B/undo: undo the latest verdict; fields `seen` and `query`; leads back to the pair."""
    desk, pair = get_desk(request), read_pair(request)
    given = read_verdict(request, Verdict.REOPENED)
    try:
        undone = await desk.ledger.write(undo_latest, pair, given)
    except Conflict as error:
        return render_conflict(request, error, find_page_of_form(request))
    announce_undo(desk, undone)
    queue = parse_meaning_queue(read_query(request), desk.config)
    raise web.HTTPSeeOther(f"{find_page_of_form(request)}{format_meaning_query(queue)}")


def undo_latest(db: sqlite3.Connection, pair: Pair, given: NewVerdict) -> int:
    """Undo the latest verdict on a pair; returns the number of its decision.  Raises Conflict, and NotPermitted.

    A verdict that a case got is not undone here, where its other pairs are not shown.
    """
    _require(db, pair, given.moderator)
    if str(meaning_flags.identify_state(db, *pair)) != given.seen:
        raise Conflict("another moderator has decided this pair meanwhile: look at it again")
    latest = next((row for row in verdicts.list_of_pair(db, *pair) if not row["undone_at"]), None)
    if latest is None:
        raise Conflict("this verdict was undone before")
    decision = int(latest["decision"])
    if (pairs := len(verdicts.list_of_decision(db, decision))) > 1:
        raise Conflict(f"this verdict is of {pairs} pairs: undo it at its case")
    given.moderator.require(verdicts.list_languages(db, decision))
    verdicts.undo(db, decision, given.moderator.name, verdicts.identify_state(db, verdicts.list_flags(db, decision)))
    return decision


def _require(db: sqlite3.Connection, pair: Pair, moderator: Moderator) -> None:
    row = meaning_flags.read_pair(db, *pair)
    moderator.require([row["language"], row["matched_language"]] if row else [])
