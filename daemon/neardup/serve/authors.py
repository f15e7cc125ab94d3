"""The watch of an author: a token, the copies of their own stories, and what is new for all authors."""

import sqlite3
from collections.abc import Callable
from typing import TypeVar

from neardup.http.problems import ProblemType, Refused
from neardup.ledger import author_copies, now_ms, snapshot
from neardup.records import format_time
from neardup.serve.rights_messages import (
    AuthorCopies,
    AuthorCopy,
    AuthorNews,
    AuthorToken,
    CopiesQuery,
    Digest,
    DigestQuery,
)
from neardup.serve.service import Deadline, ServiceParts
from neardup.source.parse import parse_time

NO_AUTHOR_KEY = ProblemType("no-author-key", 404, "No key signs the tokens of authors")
OTHER_AUTHORS_TOKEN = ProblemType("other-authors-token", 403, "The token is that of another author")
MOST_NEWS = 20  # copies of an author in a digest
T = TypeVar("T")


async def make_author_token(parts: ServiceParts, author_id: str, _: Deadline) -> AuthorToken:
    """POST /v1/authors/{author}/token.  Raises Refused without a key."""
    if parts.author_tokens is None:
        raise Refused(NO_AUTHOR_KEY, "name a key as serve.author_key")
    token, expires_at = parts.author_tokens.make(author_id, now_ms())
    return AuthorToken(author_id=author_id, token=token, expires_at=format_time(expires_at))


async def author_copies_of(parts: ServiceParts, author_id: str, query: CopiesQuery, _: Deadline) -> AuthorCopies:
    """GET /v1/authors/{author}/copies."""
    since = 0 if query.since is None else parse_time(query.since)
    found = await parts.reader.do(
        _read_in_snapshot, author_copies.list_copies, author_id, since, query.before, query.limit + 1
    )
    shown = found[: query.limit]
    return AuthorCopies(
        author_id=author_id,
        copies=[_make_author_copy(parts, copy) for copy in shown],
        next=shown[-1].flag_id if len(found) > query.limit else None,
    )


async def new_copies(parts: ServiceParts, query: DigestQuery, _: Deadline) -> Digest:
    """GET /v1/authors/copies."""
    found = await parts.reader.do(
        _read_in_snapshot, author_copies.list_news, parse_time(query.since), query.after, query.limit + 1, MOST_NEWS
    )
    shown = found[: query.limit]
    return Digest(
        authors=[
            AuthorNews(
                author_id=news.author_id,
                total=news.total,
                copies=[_make_author_copy(parts, copy) for copy in news.copies],
            )
            for news in shown
        ],
        next=shown[-1].author_id if len(found) > query.limit else None,
    )


def _read_in_snapshot(db: sqlite3.Connection, work: Callable[..., list[T]], *arguments: object) -> list[T]:
    with snapshot(db):
        return work(db, *arguments)


def _make_author_copy(parts: ServiceParts, copy: author_copies.AuthorCopy) -> AuthorCopy:
    """A copy as its author may see it: without moderators and their notes."""
    return AuthorCopy(
        own_story_id=copy.own,
        own_title=copy.own_title,
        story_id=copy.other,
        title=copy.title,
        link=parts.config.content.link_to(copy.language, copy.other),
        published_at=format_time(copy.published_at),
        kind=copy.kind,
        similarity=copy.similarity,
        status=copy.status,
        flagged_at=format_time(copy.flagged_at),
        is_later=copy.is_later,
    )
