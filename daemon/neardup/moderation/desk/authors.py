"""The pages of authors: the record and the flagged stories of one, and the repeat offenders.

From the page of an author, moderators ask the platform to hide the stories that are not decided, and take that back.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable
from typing import Any

from aiohttp import web
from msgspec import Struct

from neardup.ledger import Row, authors, marks, removed_texts
from neardup.ledger.authors import Copies, FlaggedAuthor, History
from neardup.ledger.case_queue import EVERY, CaseSelection
from neardup.ledger.marks import MarkedAuthor, MarkFilter
from neardup.moderation.desk import deciding
from neardup.moderation.desk.addresses import (
    CaseQueue,
    format_case_query,
    make_author_url,
    read_author_id,
    read_page_number,
)
from neardup.moderation.desk.deciding import NewVerdict, read_verdict
from neardup.moderation.desk.moderators import Right
from neardup.moderation.desk.pages import render_page, require_moderator
from neardup.moderation.desk.parts import get_desk
from neardup.moderation.interface import translate_later
from neardup.records import Verdict

PAGE_SIZE = 50
SHOWN_OTHERS = 20
SHOWN_OWN_PAIRS = 20


class AuthorDetails(Struct, frozen=True):
    """An author with rows of `ledger.authors`: a page of the flagged stories, the other authors, the own pairs.

    `with_marks` counts the stories with marks; it is None if there are none.  `record` is what `read_copies` counts.
    `accounts` are the earlier ones and the later ones that may be the same person's, of `removed_texts.read_accounts`.
    """

    about: FlaggedAuthor
    with_marks: MarkedAuthor | None
    stories: list[Row]
    others: list[Row]
    own: list[Row]
    record: tuple[Copies, Copies]
    hidings: list[Row]
    accounts: tuple[list[dict[str, Any]], list[dict[str, Any]]]

    @property
    def hiding(self) -> Row | None:
        """Who hid the author's undecided stories, and when; None if they are not hidden."""
        return next((row for row in self.hidings if row["shown_at"] is None), None)


async def show(request: web.Request) -> web.Response:
    """GET /author/ID: the flagged stories of an author, by the flags with one other author if `with` names one."""
    moderator = require_moderator(request)
    author_id, other = read_author_id(request), request.query.get("with") or None
    page_number = read_page_number(request.query)
    await get_desk(request).ledger.refresh_cases()
    details = await get_desk(request).ledger.read(_read_details, author_id, other, (page_number - 1) * PAGE_SIZE)
    if details is None:
        raise web.HTTPNotFound(reason=translate_later("No story of this author is flagged"))
    return render_page(
        request,
        "author.html.j2",
        details=details,
        other=other,
        page_number=page_number,
        last=_count_pages(details.stories, "stories"),
        every_case=format_case_query(CaseQueue(CaseSelection(author=author_id, status=EVERY))),
        open_cases=format_case_query(CaseQueue(CaseSelection(author=author_id))),
        may_decide=Right.DECIDE in moderator.rights,
    )


async def list_offenders(request: web.Request) -> web.Response:
    """GET /authors: those with several stories that copy."""
    require_moderator(request)
    page_number = read_page_number(request.query)
    first = (page_number - 1) * PAGE_SIZE
    rows = await get_desk(request).ledger.read(authors.list_repeat_offenders, limit=PAGE_SIZE, offset=first)
    accounts = await get_desk(request).ledger.read(removed_texts.list_accounts, PAGE_SIZE)
    return render_page(
        request,
        "authors.html.j2",
        rows=rows,
        accounts=accounts,
        first=first,
        page_number=page_number,
        last=_count_pages(rows, "authors"),
    )


def _read_details(db: sqlite3.Connection, author_id: str, other: str | None, first: int) -> AuthorDetails | None:
    about = authors.read_author(db, author_id)
    marked_author = next(iter(marks.list_authors(db, MarkFilter(author=author_id))), None)
    accounts = removed_texts.read_accounts(db, author_id)
    if about is None and marked_author is None and not any(accounts):
        return None
    return AuthorDetails(
        about or FlaggedAuthor(author_id, History(), Counter(), None, None, 0),
        marked_author,
        authors.list_flagged_stories(db, author_id, other, limit=PAGE_SIZE, offset=first),
        authors.list_other_authors(db, author_id, SHOWN_OTHERS),
        authors.list_own_pairs(db, author_id, SHOWN_OWN_PAIRS),
        authors.read_copies(db, author_id),
        authors.list_hidings(db, author_id),
        accounts,
    )


async def hide(request: web.Request) -> web.StreamResponse:
    """POST /author/ID/hide: field `note`; the platform is asked to hide the author's stories until they are decided."""
    return await _write(request, deciding.hide_author)


async def show_again(request: web.Request) -> web.StreamResponse:
    """POST /author/ID/show: takes that back."""
    return await _write(request, deciding.show_author)


async def _write(
    request: web.Request, work: Callable[[sqlite3.Connection, str, NewVerdict], None]
) -> web.StreamResponse:
    author_id, given = read_author_id(request), read_verdict(request, Verdict.REOPENED)
    await get_desk(request).ledger.write(work, author_id, given)
    get_desk(request).wake_posting.set()
    raise web.HTTPSeeOther(make_author_url(author_id))


def _count_pages(rows: list[Row], total: str) -> int:
    return -(-rows[0][total] // PAGE_SIZE) if rows else 1
