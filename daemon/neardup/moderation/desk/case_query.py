"""Queues of cases and their addresses."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from typing import Any, Self
from urllib.parse import urlencode

from aiohttp import web

from neardup.config import Config
from neardup.core.verify.tiers import tier_of
from neardup.ledger.case_queue import EVERY, JUDGED, OPEN, Authors, CaseSelection, Inbox, Order
from neardup.moderation.desk.moderators import Moderator
from neardup.moderation.desk.query import share_of
from neardup.moderation.interface import marked
from neardup.records import DECIDING

STATUSES = (OPEN, JUDGED, EVERY, *DECIDING)
EVERY_CASE = CaseSelection()


@dataclass(frozen=True, slots=True)
class CaseQueue:
    """A queue of cases: its selection and its order."""

    selection: CaseSelection = EVERY_CASE
    order: Order = Order.SIMILARITY

    def only(self, **filters: Any) -> Self:
        """The queue with other values for these fields of its selection."""
        return replace(self, selection=replace(self.selection, **filters))

    def ordered_by(self, order: Order) -> Self:
        """The queue in another order."""
        return replace(self, order=order)


def case_queue_of(query: Mapping[str, str], config: Config, moderator: Moderator) -> CaseQueue:
    """The queue of a query; without a language, that of the languages of the moderator.

    It has the cases of one author if `detection.same_author` keeps them.

    Raises HTTPBadRequest if a filter is invalid.
    """

    def value(name: str) -> str | None:
        return query.get(name, "").strip() or None

    language, kind, status, authors = value("language"), value("kind"), value("status"), value("authors")
    score, similarity, since, until = value("score"), value("similarity"), value("since"), value("until")
    inbox = value("inbox")
    try:
        selection = CaseSelection(
            languages=(config.registry.find(language),) if language else moderator.languages,
            kind=tier_of(kind).kind if kind else None,
            status=STATUSES[STATUSES.index(status or OPEN)],
            score=share_of(score) if score else None,
            similarity=share_of(similarity) if similarity else None,
            author=value("author"),
            authors=Authors(authors) if authors else None,
            catalogue=value("catalogue"),
            since=_midnight(since) if since else None,
            until=_midnight(until) if until else None,
            inbox=Inbox(inbox) if inbox else None,
            moderator=moderator.name,
            hidden=config.detection.same_author == "keep",
        )
        return CaseQueue(selection, Order(value("sort") or Order.SIMILARITY))
    except (ValueError, KeyError):
        raise web.HTTPBadRequest(reason=marked("The address has an invalid filter")) from None


def _midnight(text: str) -> int:
    """The milliseconds at which a day begins in UTC."""
    return int(datetime.combine(date.fromisoformat(text), time(), UTC).timestamp() * 1000)


def day(milliseconds: int) -> str:
    """The inverse of `_midnight`."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).date().isoformat()


def case_query_of(queue: CaseQueue, **more: object) -> str:
    """The query string of a queue and of further parameters; "" if all have their defaults."""
    selection = queue.selection
    parameters = {
        "language": selection.languages[0] if len(selection.languages) == 1 else None,
        "kind": selection.kind,
        "status": None if selection.status == OPEN else selection.status,
        "score": selection.score,
        "similarity": selection.similarity,
        "author": selection.author,
        "authors": selection.authors,
        "catalogue": selection.catalogue,
        "since": None if selection.since is None else day(selection.since),
        "until": None if selection.until is None else day(selection.until),
        "inbox": selection.inbox,
        "sort": None if queue.order is Order.SIMILARITY else queue.order,
    } | more
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"?{urlencode(given)}" if given else ""
