"""The page of a story, its similarity report, which is also the heart of the page of a case; and its case file."""

import asyncio
import sqlite3
from collections.abc import Callable, Collection
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from neardup.ledger import (
    authors,
    cases,
    complaints,
    first_seen,
    marks,
    now_ms,
    removed_texts,
    similarities,
    story_rows,
)
from neardup.ledger.authors import History
from neardup.ledger.complaints import Complaint
from neardup.ledger.first_seen import Entry
from neardup.ledger.similarities import Similarity
from neardup.moderation.case_file import check_pdf, has_pdf, make_case_file, read_case_record, render_html, render_pdf
from neardup.moderation.desk.addresses import add_word, read_story_id
from neardup.moderation.desk.moderators import Right
from neardup.moderation.desk.pages import find_moderator, render_page, require_moderator
from neardup.moderation.desk.parts import get_desk, load_text
from neardup.moderation.evidence.story_report import COLOURS, find_common_words, make_story_report
from neardup.moderation.interface import CURRENT, ENGLISH, translate_later
from neardup.moderation.wording import describe_rest, describe_similarity, list_similarity_findings
from neardup.query.compare import LoadedStory, describe_stories
from neardup.query.proof import prove
from neardup.records import Marks, ShownId
from neardup.source.parse import parse_id


class StoryDetails(Struct, frozen=True):
    """A story in the ledger: its similarity, its row of `described`, its case, and the complaints about it.

    `removed_texts` are those that it matches, rows of `removed_texts.read_of_stories`.  `first_seen` is its first
    entry in the log of what was seen first, None for a story that is older than the log.
    """

    found: Similarity
    known: dict[str, Any]
    case_id: ShownId | None
    history: History | None
    marks: Marks
    complaints: list[Complaint]
    removed_texts: list[dict[str, Any]]
    first_seen: Entry | None


async def show_story(request: web.Request) -> web.Response:
    """GET /story/ID; each without= is the id of a source that does not count."""
    require_moderator(request)
    desk, story_id = get_desk(request), read_story_id(request)
    await desk.ledger.refresh_cases()
    details = await desk.ledger.read(read_story_details, story_id)
    if details is None:
        raise web.HTTPNotFound(reason=translate_later("This story is not in the ledger"))
    headline = describe_similarity(details.found)
    return render_page(
        request, "story.html.j2", **await make_report_values(request, details, headline, partial(add_word, ""))
    )


async def make_report_values(
    request: web.Request, details: StoryDetails, headline: str, pair_query: Callable[[int | None], str]
) -> dict[str, Any]:
    """The values of the template of a story.

    `headline` is that of the story with all its sources; `pair_query` gives the query of a pair's page that begins at a
    word.
    """
    desk, left_out = get_desk(request), _parse_left_out(request, details.found)
    if left_out:
        details = replace(details, found=similarities.leave_out(details.found, left_out))
        headline = describe_rest(details.found, len(left_out))
    counted = tuple(source for source in details.found.sources if source.story_id not in left_out)
    text = await load_text(desk, details.known)
    story = text if isinstance(text, LoadedStory) else None
    is_changed = story is not None and not _is_compared(story)
    common = None
    if story is not None and not is_changed:
        hashes = await asyncio.to_thread(lambda: story.text.word_hashes)
        common = await desk.ledger.read(find_common_words, details.found.language, hashes)
    return {
        "details": details,
        "report": await asyncio.to_thread(make_story_report, details.found, story, common),
        "headline": headline,
        "findings": list_similarity_findings(replace(details.found, sources=counted)),
        "left_out": left_out,
        "address_with": lambda source_id: _format_address_without(request, details.found, left_out ^ {source_id}),
        "gone": None if isinstance(text, LoadedStory) else text.why,
        "is_changed": is_changed,
        "colours": COLOURS,
        "pair_query": pair_query,
        "has_proof": details.first_seen is not None and desk.config.ledger.proof_key is not None,
        "has_pdf": await asyncio.to_thread(has_pdf),
        "now": now_ms(),
        "may_complain": (moderator := find_moderator(request)) is not None and Right.DECIDE in moderator.rights,
    }


def _parse_left_out(request: web.Request, found: Similarity) -> frozenset[int]:
    """The ids of the sources that do not count.  Raises HTTPBadRequest."""
    try:
        listed = frozenset(map(parse_id, request.query.getall("without", [])))
    except ValueError:
        raise web.HTTPBadRequest(reason=translate_later("The address has an invalid filter")) from None
    return listed & {source.story_id for source in found.sources}


def _format_address_without(request: web.Request, found: Similarity, left_out: Collection[int]) -> str:
    """The address of this page without these sources."""
    query = [(name, value) for name, value in request.query.items() if name not in ("without", "done")]
    query += [("without", str(source.shown)) for source in found.sources if source.story_id in left_out]
    return f"{request.rel_url.raw_path}{f'?{urlencode(query)}' if query else ''}#sources"


def read_story_details(db: sqlite3.Connection, story_id: int) -> StoryDetails | None:
    """What the ledger knows of a story; None if it does not have it."""
    found = similarities.read_similarity(db, story_id)
    if found is None:
        return None
    case_id = cases.find_case(db, story_id)
    return StoryDetails(
        found,
        describe_stories(db, [story_id])[story_id],
        None if case_id is None else story_rows.read_shown_ids(db, [case_id])[case_id],
        authors.read_histories(db, [found.author_id]).get(found.author_id or ""),
        marks.read_marks(db, [story_id]).get(story_id, ()),
        complaints.list_of_stories(db, [story_id]),
        removed_texts.read_of_stories(db, [story_id]),
        next(iter(first_seen.list_entries(db, story_id)), None),
    )


def _is_compared(story: LoadedStory) -> bool:
    """Whether this text is the one that the ledger's places of words refer to.

    After an upgrade, whose fingerprints differ, only the number of words shows it.
    """
    known = story.known
    if known["text_hash"] is None:
        return bool(len(story.text.word_hashes) == known["words"])
    recorded: bytes = known["text_hash"]
    return recorded == story.text.text_hash


async def show_file(request: web.Request) -> web.Response:
    """GET /story/ID/file."""
    return _download(request, (await _render_file(request)).encode(), "case", "html", "text/html")


async def show_file_as_pdf(request: web.Request) -> web.Response:
    """GET /story/ID/file.pdf."""
    check_pdf()
    pdf = await asyncio.to_thread(render_pdf, await _render_file(request))
    return _download(request, pdf, "case", "pdf", "application/pdf")


async def show_proof(request: web.Request) -> web.Response:
    """GET /story/ID/proof: what `neardup proof ID` prints.  Raises Misuse without a key."""
    require_moderator(request)
    proof = await asyncio.to_thread(prove, get_desk(request).config, read_story_id(request))
    if proof is None:
        raise web.HTTPNotFound(reason=translate_later("This story is not in the ledger"))
    content = msgspec.json.format(msgspec.json.encode(proof), indent=2)
    return _download(request, content, "proof", "json", "application/json")


async def _render_file(request: web.Request) -> str:
    require_moderator(request)
    CURRENT.set(ENGLISH)  # a case file is a document: it does not depend on who downloads it
    desk = get_desk(request)
    record = await desk.ledger.read(read_case_record, read_story_id(request))
    if record is None:
        raise web.HTTPNotFound(reason=translate_later("This story is not in the ledger"))
    case = await make_case_file(record, desk.config, partial(load_text, desk))
    return await asyncio.to_thread(render_html, case, desk.config.registry)


def _download(request: web.Request, content: bytes, kind: str, ending: str, content_type: str) -> web.Response:
    """A file to keep, named after its kind and the story.

    The styles of a page are its own, which the policy of the desk's pages forbids.
    """
    name = quote(f"{kind}-{request.match_info['story'].replace('/', '_')}.{ending}", safe="")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}", "Content-Type": content_type}
    return web.Response(body=content, headers=headers)
