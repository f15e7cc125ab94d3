"""The query of an address <-> which flags a queue holds."""

from collections.abc import Mapping
from urllib.parse import urlencode

from aiohttp import web

from neardup.core.verify.tiers import tier_of
from neardup.languages import Languages
from neardup.ledger.selection import Selection
from neardup.records import Language, Verdict
from neardup.source.parse import id_of

OPEN = ("open",)
JUDGED = tuple(Verdict)
EVERY = (*OPEN, *JUDGED)  # what the machine withdrew is nobody's work
STATUSES: dict[str, tuple[str, ...]] = {
    "open": OPEN,
    "judged": JUDGED,
    "every": EVERY,
    **{verdict: (verdict,) for verdict in Verdict},
}
MOST_AT = 10_000_000


def selection_of(query: Mapping[str, str], languages: Languages) -> Selection:
    """Raises HTTPBadRequest for what is no language, kind, status, score or id."""

    def said(name: str) -> str | None:
        return query.get(name, "").strip() or None

    try:
        language, kind, status, score = said("language"), said("kind"), said("status"), said("score")
        story, cluster = said("story"), said("cluster")
        return Selection(
            languages=(languages.find(language),) if language else (),
            kinds=(tier_of(kind).kind,) if kind else (),
            statuses=STATUSES[status or "open"],
            score=_share(score) if score else None,
            author=said("author"),
            story=id_of(story) if story else None,
            cluster=id_of(cluster) if cluster else None,
        )
    except (ValueError, KeyError):
        raise web.HTTPBadRequest(reason="There is no such queue") from None


def _share(said: str) -> float:
    share = float(said)
    if not 0 <= share <= 1:
        raise ValueError(said)
    return share


def query_of(selection: Selection, **more: object) -> str:
    """The query that gives a selection, and more of it; "" where there is nothing to say."""
    language: tuple[Language, ...] = selection.languages
    said = {
        "language": language[0] if language else None,
        "kind": selection.kinds[0] if selection.kinds else None,
        "status": next(name for name, statuses in STATUSES.items() if statuses == selection.statuses),
        "score": selection.score,
        "author": selection.author,
        "story": selection.story,
        "cluster": selection.cluster,
    } | more
    if said["status"] == "open":
        del said["status"]
    named = {name: value for name, value in said.items() if value is not None}
    return f"?{urlencode(named)}" if named else ""


def number(query: Mapping[str, str], name: str) -> int | None:
    """A number from 0 on; None where it is not there.  Raises HTTPBadRequest."""
    said = query.get(name, "")
    if not said:
        return None
    if not (said.isascii() and said.isdecimal() and len(said) <= 12 and int(said) <= MOST_AT):
        raise web.HTTPBadRequest(reason="There is no such place")
    return int(said)
