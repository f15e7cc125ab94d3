"""Conversion between the query string of a queue's address and its selection of flags."""

from collections.abc import Mapping
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
MAX_NUMBER = 10_000_000


def selection_of(query: Mapping[str, str], languages: Languages) -> Selection:
    """The selection of a query.  Raises HTTPBadRequest if a language, kind, status, score or id is invalid."""

    def value(name: str) -> str | None:
        return query.get(name, "").strip() or None

    try:
        language, kind, status, score = value("language"), value("kind"), value("status"), value("score")
        story, cluster = value("story"), value("cluster")
        return Selection(
            languages=(languages.find(language),) if language else (),
            kinds=(tier_of(kind).kind,) if kind else (),
            statuses=STATUSES[status or "open"],
            score=_share(score) if score else None,
            author=value("author"),
            story=id_of(story) if story else None,
            cluster=id_of(cluster) if cluster else None,
        )
    except (ValueError, KeyError):
        raise web.HTTPBadRequest(reason="The address has an invalid filter") from None


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        raise ValueError(text)
    return share


def query_of(selection: Selection, **more: object) -> str:
    """The query string of a selection and of further parameters; "" if all have their defaults."""
    language: tuple[Language, ...] = selection.languages
    parameters = {
        "language": language[0] if language else None,
        "kind": selection.kinds[0] if selection.kinds else None,
        "status": next(name for name, statuses in STATUSES.items() if statuses == selection.statuses),
        "score": selection.score,
        "author": selection.author,
        "story": selection.story,
        "cluster": selection.cluster,
    } | more
    if parameters["status"] == "open":
        del parameters["status"]
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
