"""Queues and their addresses: what a queue lists, and the query string that says so."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Self
from urllib.parse import urlencode

from aiohttp import web

from neardup.core.verify.tiers import tier_of
from neardup.languages import Languages
from neardup.ledger.selection import Selection
from neardup.records import Language, Verdict
from neardup.source.parse import id_of

OPEN = ("open",)
DECIDED = tuple(Verdict)
EVERY = (*OPEN, *DECIDED)  # withdrawn flags need no verdict
STATUSES: dict[str, tuple[str, ...]] = {
    "open": OPEN,
    "judged": DECIDED,
    "every": EVERY,
    **{verdict: (verdict,) for verdict in Verdict},
}
SHOWN = "shown"  # the value of `same_author` that admits the hidden flags between stories of one author
OPEN_FLAGS = Selection()
MAX_NUMBER = 10_000_000


class View(StrEnum):
    """What a queue lists, in which order."""

    PAIRS = "pairs"  # the most severe first
    SIMILARITY = "similarity"  # pairs; those of the most similar story first
    STORIES = "stories"  # the most similar first


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue: the selection of its flags, and its view of them."""

    selection: Selection = OPEN_FLAGS
    view: View = View.PAIRS

    def only(self, **filters: Any) -> Self:
        """The queue with other values for these fields of its selection."""
        return replace(self, selection=replace(self.selection, **filters))

    def seen_as(self, view: View) -> Self:
        """The queue in another view."""
        return replace(self, view=view)

    @property
    def of_stories(self) -> Self:
        """The queue of the stories that have these flags with their sources."""
        return self.seen_as(View.STORIES)


def queue_of(query: Mapping[str, str], languages: Languages) -> Queue:
    """The queue of a query.  Raises HTTPBadRequest if a view, language, kind, status, share or id is invalid."""

    def value(name: str) -> str | None:
        return query.get(name, "").strip() or None

    try:
        language, kind, status, score = value("language"), value("kind"), value("status"), value("score")
        story, cluster, similarity = value("story"), value("cluster"), value("similarity")
        selection = Selection(
            languages=(languages.find(language),) if language else (),
            kinds=(tier_of(kind).kind,) if kind else (),
            statuses=STATUSES[status or "open"],
            score=_share(score) if score else None,
            author=value("author"),
            story=id_of(story) if story else None,
            cluster=id_of(cluster) if cluster else None,
            similarity=_share(similarity) if similarity else None,
            same_author={None: False, SHOWN: True}[value("same_author")],
        )
        return Queue(selection, View(value("view") or View.PAIRS))
    except (ValueError, KeyError):
        raise web.HTTPBadRequest(reason="The address has an invalid filter") from None


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        raise ValueError(text)
    return share


def query_of(queue: Queue, **more: object) -> str:
    """The query string of a queue and of further parameters; "" if all have their defaults."""
    selection = queue.selection
    language: tuple[Language, ...] = selection.languages
    parameters = {
        "view": queue.view,
        "language": language[0] if language else None,
        "kind": selection.kinds[0] if selection.kinds else None,
        "status": next(name for name, statuses in STATUSES.items() if statuses == selection.statuses),
        "score": selection.score,
        "author": selection.author,
        "story": selection.story,
        "cluster": selection.cluster,
        "similarity": selection.similarity,
        "same_author": SHOWN if selection.same_author else None,
    } | more
    for name, default in (("view", View.PAIRS), ("status", "open")):
        if parameters[name] == default:
            del parameters[name]
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"?{urlencode(given)}" if given else ""


def number(query: Mapping[str, str], name: str) -> int | None:
    """A parameter that is a number from 0 to MAX_NUMBER; None if it is missing.  Raises HTTPBadRequest."""
    text = query.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 12 and int(text) <= MAX_NUMBER):
        raise web.HTTPBadRequest(reason="The address has an invalid number")
    return int(text)
