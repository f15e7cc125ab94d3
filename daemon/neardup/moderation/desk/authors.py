"""The pages of authors: an author's flagged stories with the other authors of their pairs, and the repeat offenders."""

import sqlite3
from collections import Counter
from dataclasses import dataclass

from aiohttp import web

from neardup.ledger import authors, marks
from neardup.ledger.authors import FlaggedAuthor, History
from neardup.ledger.case_queue import EVERY, CaseSelection
from neardup.ledger.marks import MarkedAuthor, MarkFilter
from neardup.moderation.desk.pages import page, require_moderator
from neardup.moderation.desk.parts import desk_of
from neardup.moderation.desk.queues import CaseQueue, case_query_of, number_in
from neardup.moderation.interface import translate_later
from neardup.moderation.wording import describe_history

PAGE_SIZE = 50
SHOWN_OTHERS = 20
SHOWN_OWN_PAIRS = 20


@dataclass(frozen=True, slots=True)
class AuthorDetails:
    """An author with rows of `ledger.authors`: a page of the flagged stories, the other authors, the own pairs.

    `with_marks` counts the stories with marks; it is None if there are none.
    """

    about: FlaggedAuthor
    with_marks: MarkedAuthor | None
    stories: list[sqlite3.Row]
    others: list[sqlite3.Row]
    own: list[sqlite3.Row]


async def show(request: web.Request) -> web.Response:
    """GET /author/ID: the flagged stories of an author, by the flags with one other author if `with` names one."""
    require_moderator(request)
    author_id, other = request.match_info["author"], request.query.get("with") or None
    page_number = max(number_in(request.query, "page") or 1, 1)
    details = await desk_of(request).ledger.read(_details, author_id, other, (page_number - 1) * PAGE_SIZE)
    if details is None:
        raise web.HTTPNotFound(reason=translate_later("No story of this author is flagged"))
    return page(
        request,
        "author.html.j2",
        details=details,
        history=describe_history(details.about.history),
        other=other,
        page_number=page_number,
        last=_last_page(details.stories, "stories"),
        cases_query=case_query_of(CaseQueue(CaseSelection(author=author_id, status=EVERY))),
    )


async def list_offenders(request: web.Request) -> web.Response:
    """GET /authors: those with several stories that copy."""
    require_moderator(request)
    page_number = max(number_in(request.query, "page") or 1, 1)
    first = (page_number - 1) * PAGE_SIZE
    rows = await desk_of(request).ledger.read(authors.list_repeat_offenders, limit=PAGE_SIZE, offset=first)
    return page(
        request, "authors.html.j2", rows=rows, first=first, page_number=page_number, last=_last_page(rows, "authors")
    )


def _details(db: sqlite3.Connection, author_id: str, other: str | None, first: int) -> AuthorDetails | None:
    about = authors.read_author(db, author_id)
    marked_author = next(iter(marks.list_authors(db, MarkFilter(author=author_id))), None)
    if about is None and marked_author is None:
        return None
    return AuthorDetails(
        about or FlaggedAuthor(author_id, History(), Counter(), None, None, 0),
        marked_author,
        authors.list_flagged_stories(db, author_id, other, limit=PAGE_SIZE, offset=first),
        authors.list_other_authors(db, author_id, SHOWN_OTHERS),
        authors.list_own_pairs(db, author_id, SHOWN_OWN_PAIRS),
    )


def _last_page(rows: list[sqlite3.Row], total: str) -> int:
    return -(-rows[0][total] // PAGE_SIZE) if rows else 1
