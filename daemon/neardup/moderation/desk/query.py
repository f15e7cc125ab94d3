"""Queues of translated and retold pairs and their addresses: what a queue lists, and the query string that says so."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self
from urllib.parse import urlencode

from aiohttp import web

from neardup.config import Config
from neardup.core.verify.tiers import tier_of
from neardup.ledger.flags import Selection
from neardup.moderation.interface import marked
from neardup.records import DECIDING, Language
from neardup.source.parse import id_of

STATUSES: dict[str, tuple[str, ...]] = {
    "open": ("open",),
    "judged": DECIDING,
    "every": ("open", *DECIDING),
    **{verdict: (verdict,) for verdict in DECIDING},
}
SHOWN = "shown"  # the value of `same_author` that admits the hidden flags between stories of one author
OPEN_FLAGS = Selection()
MAX_NUMBER = 10_000_000


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue of translated and retold pairs: their selection, the widest margin first."""

    selection: Selection = OPEN_FLAGS

    def only(self, **filters: Any) -> Self:
        """The queue with other values for these fields of its selection."""
        return replace(self, selection=replace(self.selection, **filters))


def queue_of(query: Mapping[str, str], config: Config) -> Queue:
    """The queue of a query, with the pairs of one author if `detection.same_author` keeps them.

    Raises HTTPBadRequest if a language, kind, status or id is invalid.
    """

    def value(name: str) -> str | None:
        return query.get(name, "").strip() or None

    try:
        language, kind, status, story = value("language"), value("kind"), value("status"), value("story")
        selection = Selection(
            languages=(config.registry.find(language),) if language else (),
            kinds=(tier_of(kind).kind,) if kind else (),
            statuses=STATUSES[status or "open"],
            author=value("author"),
            story=id_of(story) if story else None,
            catalogue=value("catalogue"),
            same_author={None: config.detection.same_author == "keep", SHOWN: True}[value("same_author")],
        )
        return Queue(selection)
    except (ValueError, KeyError):
        raise web.HTTPBadRequest(reason=marked("The address has an invalid filter")) from None


def share_of(text: str) -> float:
    """A share, 0 to 1.  Raises ValueError."""
    share = float(text)
    if not 0 <= share <= 1:
        raise ValueError(text)
    return share


def query_of(queue: Queue, **more: object) -> str:
    """The query string of a queue and of further parameters; "" if all have their defaults."""
    selection = queue.selection
    language: tuple[Language, ...] = selection.languages
    parameters = {
        "language": language[0] if language else None,
        "kind": selection.kinds[0] if selection.kinds else None,
        "status": next(name for name, statuses in STATUSES.items() if statuses == selection.statuses),
        "author": selection.author,
        "story": selection.story,
        "catalogue": selection.catalogue,
        "same_author": SHOWN if selection.same_author else None,
    } | more
    if parameters["status"] == "open":
        del parameters["status"]
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"?{urlencode(given)}" if given else ""


def at_word(query: str, word: int | None) -> str:
    """A query string with the word that a pair's page begins at; many links differ only in it."""
    return query if word is None else f"{query}{'&' if query else '?'}word={word}"


def number(query: Mapping[str, str], name: str) -> int | None:
    """A parameter that is a number from 0 to MAX_NUMBER; None if it is missing.  Raises HTTPBadRequest."""
    text = query.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 12 and int(text) <= MAX_NUMBER):
        raise web.HTTPBadRequest(reason=marked("The address has an invalid number"))
    return int(text)
