"""The page of a pair: its evidence, its verdicts so far, and the verdict form; and that of two serials that match.

The page of two serials is a dot plot of their chapters, over which one enters the page of a pair.  The copied chapters
run across, those of the source down.  The plot is an SVG image made here, without a script; the pairs that are aligned
stand in a table below it.
"""

import asyncio
import sqlite3
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.ledger import Row, authors, flags, passages, serials, similarities, story_rows, verdicts
from neardup.ledger.authors import History
from neardup.ledger.serials import SerialMatch
from neardup.moderation.desk.addresses import (
    Pair,
    PlaceInCase,
    format_case_query,
    parse_case_queue,
    place_in_case,
    read_number,
    read_pair,
)
from neardup.moderation.desk.deciding import Decision, read_decision
from neardup.moderation.desk.pages import render_page, require_moderator
from neardup.moderation.desk.parts import Desk, get_desk, load_text
from neardup.moderation.desk.permissions import make_prefilled_query
from neardup.moderation.evidence.page import Graph, draw_cluster, find_passage, gather_evidence, make_template_values
from neardup.moderation.interface import translate_later
from neardup.query.compare import (
    LoadedStory,
    UnreadableStory,
    describe_stories,
)
from neardup.records import Language, ShownId


class PairDetails(Struct, frozen=True):
    """A pair in the ledger: its flag (a row of the view `pairs`), both stories by id, and its place in its case.

    `similarity` is that of the later story, None if it has none.  `seen` identifies the state of the flag, for
    detecting conflicts.  `history` are the verdicts on the pair, and `histories` what is known of its authors, by id.
    `done` is the decision that the moderator has just made.  `common` are the hashes of common passages in their
    language.
    """

    flag: dict[str, Any]
    similarity: float | None
    stories: Mapping[int, dict[str, Any]]
    seen: str
    history: list[Row]
    place: PlaceInCase
    graph: Graph | None
    done: Decision | None
    common: PassageHashes
    histories: Mapping[str, History]


async def show(request: web.Request) -> web.Response:
    """GET /pair/A/B: the story published earlier is shown as A, if that is known; word= is a word of B to begin at.

    The rest of the query is that of the case, which says where the case stands in the queue of cases.  With blind=, the
    page has nothing of what moderators decided, and no form.
    """
    moderator, desk, pair = require_moderator(request), get_desk(request), read_pair(request)
    queue, at = parse_case_queue(request.query, desk.config, moderator), read_number(request.query, "at")
    word, done = read_number(request.query, "word"), read_number(request.query, "done")
    await desk.ledger.refresh_cases()
    details = await desk.ledger.read(_read_details, pair, done)
    if details is None:
        raise web.HTTPNotFound(reason=translate_later("These two stories are not flagged as a pair"))
    if is_blind := "blind" in request.query:
        nowhere = PlaceInCase(None)
        flag = hide_decision(details.flag)
        details = replace(details, flag=flag, similarity=None, history=[], place=nowhere, graph=None, histories={})
    sides = details.flag["matched_id"], details.flag["story_id"]
    a, b = await asyncio.gather(*(load_text(desk, details.stories[story]) for story in sides))
    return render_page(
        request,
        "pair.html.j2",
        **await asyncio.to_thread(_make_template_values, desk, a, b, details, word),
        details=details,
        is_blind=is_blind,
        may_decide=moderator.may_decide(details.flag["language"]),
        permission_query="" if is_blind else make_prefilled_query(details.flag),
        action=f"{request.rel_url.raw_path}/verdict",
        layout="desk.html.j2",
        query=format_case_query(queue, at=at),
        histories=details.histories,
    )


def hide_decision(flag: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the view `pairs` without what moderators decided."""
    return dict(flag) | {"status": "open", "context": None, "permission_id": None}


def _read_details(db: sqlite3.Connection, pair: Pair, done: int | None) -> PairDetails | None:
    row = flags.read_pair(db, *pair)
    if row is None:
        return None
    return PairDetails(
        row,
        similarities.read_similarities(db, [row["story_id"]]).get(row["story_id"]),
        describe_stories(db, list(pair)),
        verdicts.identify_state(db, [row["flag_id"]]),
        verdicts.list_of_pair(db, *pair),
        place_in_case(db, pair),
        draw_cluster(db, (row["matched_id"], row["story_id"])),
        None if done is None else read_decision(db, done),
        passages.read_common(db, Language(row["language"])),
        authors.read_histories(db, (row["story_author_id"], row["matched_author_id"])),
    )


def _make_template_values(
    desk: Desk,
    a: LoadedStory | UnreadableStory,
    b: LoadedStory | UnreadableStory,
    details: PairDetails,
    word: int | None,
) -> dict[str, Any]:
    facts = gather_evidence(desk.config.detection, a, b, details.flag, details.common)
    here = None if word is None else find_passage(facts, word)
    return make_template_values(facts, a, b, details.graph) | {"here": here}


async def show_serials(request: web.Request) -> web.Response:
    """GET /serials/A/B: the serials of two chapters that share text."""
    require_moderator(request)
    await get_desk(request).ledger.refresh_cases()
    match, shown = await get_desk(request).ledger.read(_read_match, read_pair(request))
    if match is None:
        raise web.HTTPNotFound(reason=translate_later("These two stories are no chapters of serials that match"))
    return render_page(
        request,
        "serials.html.j2",
        match=match,
        shown=shown,
        across=(min(dot.copy for dot in match.dots), max(dot.copy for dot in match.dots)),
        down=(min(dot.source for dot in match.dots), max(dot.source for dot in match.dots)),
    )


def _read_match(db: sqlite3.Connection, pair: Pair) -> tuple[SerialMatch | None, Mapping[int, ShownId]]:
    """The serials of a pair, and the ids of their chapters as they are shown."""
    match = serials.read_match_of_pair(db, *pair)
    dots = match.dots if match else ()
    return match, story_rows.read_shown_ids(db, {story for dot in dots for story in (dot.source_id, dot.copy_id)})
