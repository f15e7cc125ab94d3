"""The addresses of the desk: the stories that stand in them, the queues in their queries, and the places in a queue.

A story stands in an address by its id in the listing, an integer or a name, percent-encoded, so that a slash in it is
no step between folders.  Proxies refuse addresses of more than about 8,000 bytes: stories with a very long name stand
there by the integer that is made from the name, which is accepted everywhere.

Moderators work through the queue of cases; the translated and retold pairs have one of their own.  The query string of
an address says what a queue lists, in which order, and where in it the page stands.  Other moderators decide cases
meanwhile, so a position is looked up again, around the one at which the page was rendered.
"""

import sqlite3
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from typing import Any, Self, TypeVar
from urllib.parse import urlencode

from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from neardup.config import Config
from neardup.core.verify.tiers import find_tier
from neardup.ledger import case_queue, cases, flags, story_rows
from neardup.ledger.case_queue import EVERY, JUDGED, OPEN, Authors, CaseSelection, Complained, Inbox, Order
from neardup.ledger.flags import Selection
from neardup.moderation.desk.moderators import Moderator
from neardup.moderation.interface import translate_later
from neardup.records import DECIDING, PERMITTED, STATUSES, Kind, ShownId, show_id
from neardup.source.parse import make_printable, parse_id, quote_id

Pair = tuple[int, int]  # the lower integer first
ShownPair = tuple[ShownId, ShownId]
T = TypeVar("T")
LONGEST = 2_000  # bytes of an id; an address has at most two
STORY, PAIR, AUTHOR = "{story:[^/]+}", "{a:[^/]+}/{b:[^/]+}", "{author:[^/]+}"  # in the paths of routes
MEANING_STATUSES: dict[str, tuple[str, ...]] = {
    "open": ("open",),
    "judged": DECIDING,
    "every": STATUSES,
    **{status: (status,) for status in (PERMITTED, *DECIDING)},
}
SHOWN = "shown"  # the value of `same_author` that admits the hidden flags between stories of one author
OPEN_FLAGS = Selection()
MAX_NUMBER = 10_000_000
CASE_STATUSES = (OPEN, JUDGED, EVERY, PERMITTED, *DECIDING)
EVERY_CASE = CaseSelection()
MAX_SHIFT = 50  # positions that a case may have moved in the queue since its page was rendered


def quote_shown_id(shown: ShownId) -> str:
    """The id of a story as a segment of a path, or as a value of a query."""
    quoted = quote_id(str(shown))
    return str(parse_id(str(shown))) if len(quoted) > LONGEST else quoted


def make_story_url(shown: ShownId) -> str:
    return f"/story/{quote_shown_id(shown)}"


def make_case_url(shown: ShownId) -> str:
    """The address of the case with this id, which is that of one of its stories."""
    return f"/case/{quote_shown_id(shown)}"


def make_pair_url(first: ShownId, second: ShownId, page: str = "pair") -> str:
    """The address of the page of two stories, given in any order: `pair`, `meaning` or `serials`."""
    a, b = sorted((first, second), key=lambda shown: parse_id(str(shown)))
    return f"/{page}/{quote_shown_id(a)}/{quote_shown_id(b)}"


def make_author_url(author_id: str) -> str:
    return f"/author/{quote_id(author_id)}"


def read_author_id(request: web.Request) -> str:
    """The author in the path.  Raises HTTPNotFound."""
    author_id = make_printable(request.match_info["author"])
    if author_id is None:
        raise web.HTTPNotFound
    return author_id


def read_story_id(request: web.Request) -> int:
    """The story in the path.  Raises HTTPNotFound."""
    try:
        return parse_id(request.match_info["story"])
    except ValueError:
        raise web.HTTPNotFound from None


def read_pair(request: web.Request) -> Pair:
    """The pair in the path, the lower integer first.  Raises HTTPNotFound."""
    try:
        a, b = sorted(parse_id(request.match_info[name]) for name in "ab")
    except ValueError:
        raise web.HTTPNotFound from None
    return a, b


def find_page_of_form(request: web.Request) -> str:
    """The address of the page whose form was posted to this path, which has the action as its last segment."""
    return request.rel_url.raw_path.rpartition("/")[0]


# The queues in the queries of addresses.


class CaseQueue(Struct, frozen=True):
    """A queue of cases: its selection and its order."""

    selection: CaseSelection = EVERY_CASE
    order: Order = Order.SIMILARITY

    def only(self, **filters: Any) -> Self:
        return replace(self, selection=replace(self.selection, **filters))

    def ordered_by(self, order: Order) -> Self:
        return replace(self, order=order)


def parse_case_queue(query: Mapping[str, str], config: Config, moderator: Moderator) -> CaseQueue:
    """The queue of a query; without a language, that of the languages of the moderator.

    It has the cases of one author if `detection.same_author` keeps them.

    Raises HTTPBadRequest if a filter is invalid.
    """
    try:
        language = _parse_value(query, "language", config.registry.find)
        selection = CaseSelection(
            languages=(language,) if language else moderator.languages,
            kind=_parse_value(query, "kind", _parse_kind),
            status=CASE_STATUSES[CASE_STATUSES.index(_parse_value(query, "status", str) or OPEN)],
            similarity=_parse_value(query, "similarity", _parse_share),
            author=_parse_value(query, "author", str),
            authors=_parse_value(query, "authors", Authors),
            catalogue=_parse_value(query, "catalogue", str),
            decided_by=_parse_value(query, "decided_by", str),
            since=_parse_value(query, "since", _parse_day),
            until=_parse_value(query, "until", _parse_day),
            inbox=_parse_value(query, "inbox", Inbox),
            moderator=moderator.name,
            hidden=config.detection.same_author == "keep",
            complaint=_parse_value(query, "complaint", Complained),
        )
        return CaseQueue(selection, _parse_value(query, "sort", Order) or Order.SIMILARITY)
    except (ValueError, KeyError):
        raise web.HTTPBadRequest(reason=translate_later("The address has an invalid filter")) from None


def format_case_query(queue: CaseQueue, **more: object) -> str:
    """The query string of a queue and of further parameters; "" if all have their defaults."""
    selection = queue.selection
    parameters = {
        "language": selection.languages[0] if len(selection.languages) == 1 else None,
        "kind": selection.kind,
        "status": None if selection.status == OPEN else selection.status,
        "similarity": selection.similarity,
        "author": selection.author,
        "authors": selection.authors,
        "catalogue": selection.catalogue,
        "decided_by": selection.decided_by,
        "since": None if selection.since is None else format_day(selection.since),
        "until": None if selection.until is None else format_day(selection.until),
        "inbox": selection.inbox,
        "complaint": selection.complaint,
        "sort": None if queue.order is Order.SIMILARITY else queue.order,
    }
    return _format_query(parameters | more)


def _format_query(parameters: Mapping[str, object]) -> str:
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"?{urlencode(given)}" if given else ""


def _parse_value(query: Mapping[str, str], name: str, parse: Callable[[str], T]) -> T | None:
    """A parameter of a query; None if it is missing or blank."""
    text = query.get(name, "").strip()
    return parse(text) if text else None


def _parse_kind(text: str) -> Kind:
    return find_tier(text).kind


def _parse_share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        raise ValueError(text)
    return share


def _parse_day(text: str) -> int:
    """The milliseconds at which a day begins in UTC."""
    return int(datetime.combine(date.fromisoformat(text), time(), UTC).timestamp() * 1000)


def format_day(milliseconds: int) -> str:
    """The inverse of `_parse_day`."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).date().isoformat()


class MeaningQueue(Struct, frozen=True):
    """A queue of translated and retold pairs: their selection, the widest margin first.

    `story` is the id of the only story whose pairs are selected, as it was given.
    """

    selection: Selection = OPEN_FLAGS
    story: str | None = None

    def only(self, **filters: Any) -> Self:
        return replace(self, selection=replace(self.selection, **filters))


def parse_meaning_queue(query: Mapping[str, str], config: Config) -> MeaningQueue:
    """The queue of a query, with the pairs of one author if `detection.same_author` keeps them.

    Raises HTTPBadRequest if a language, kind, status or id is invalid.
    """
    try:
        language, kind = _parse_value(query, "language", config.registry.find), _parse_value(query, "kind", _parse_kind)
        shows_hidden = {None: config.detection.same_author == "keep", SHOWN: True}
        selection = Selection(
            languages=(language,) if language else (),
            kinds=(kind,) if kind else (),
            statuses=MEANING_STATUSES[_parse_value(query, "status", str) or OPEN],
            author=_parse_value(query, "author", str),
            story=_parse_value(query, "story", parse_id),
            catalogue=_parse_value(query, "catalogue", str),
            same_author=shows_hidden[_parse_value(query, "same_author", str)],
        )
        return MeaningQueue(selection, _parse_value(query, "story", str))
    except (ValueError, KeyError):
        raise web.HTTPBadRequest(reason=translate_later("The address has an invalid filter")) from None


def format_meaning_query(queue: MeaningQueue, **more: object) -> str:
    """The query string of a queue and of further parameters; "" if all have their defaults."""
    selection = queue.selection
    status = next(name for name, statuses in MEANING_STATUSES.items() if statuses == selection.statuses)
    parameters = {
        "language": selection.languages[0] if selection.languages else None,
        "kind": selection.kinds[0] if selection.kinds else None,
        "status": None if status == OPEN else status,
        "author": selection.author,
        "story": queue.story,
        "catalogue": selection.catalogue,
        "same_author": SHOWN if selection.same_author else None,
    }
    return _format_query(parameters | more)


def add_word(query: str, word: int | None) -> str:
    """A query string with the word that a pair's page begins at; many links differ only in it."""
    return query if word is None else f"{query}{'&' if query else '?'}word={word}"


def read_number(query: Mapping[str, str], name: str) -> int | None:
    """A parameter that is a number from 0 to MAX_NUMBER; None if it is missing.  Raises HTTPBadRequest."""
    text = query.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 12 and int(text) <= MAX_NUMBER):
        raise web.HTTPBadRequest(reason=translate_later("The address has an invalid number"))
    return int(text)


def read_page_number(query: Mapping[str, str]) -> int:
    """The page of a list, counted from 1; the first one if none is named.  Raises HTTPBadRequest."""
    return max(read_number(query, "page") or 1, 1)


# The places of a case in a queue, and of a pair in its case.


class QueuePosition(Struct, frozen=True):
    """The position of a case in a queue, from 0, and its neighbours, which are cases that no other moderator holds.

    If it is not `in_queue`, the position is the one that it would have.
    """

    at: int
    in_queue: bool
    before: int | None
    after: int | None


class PlaceInCase(Struct, frozen=True):
    """The case of a pair, its neighbours among the pairs of the case, and the next one without a verdict.

    There are no neighbours of a pair that does not count in the case, and no case of a flag that was withdrawn.
    """

    case_id: ShownId | None
    before: ShownPair | None = None
    after: ShownPair | None = None
    next_open: ShownPair | None = None


def find_case_position(db: sqlite3.Connection, queue: CaseQueue, case_id: int, at: int) -> QueuePosition:
    """The current position of a case that was at position `at`.

    A case that has left the queue keeps its place before the case that is there now.
    """
    first = max(at - MAX_SHIFT, 0)
    found = case_queue.select_ids(db, queue.selection, queue.order, limit=2 * MAX_SHIFT + 2, offset=first)
    mine = queue.selection.moderator
    held = {n for n, lease in cases.read_held_leases(db, found).items() if lease.moderator != mine} - {case_id}
    in_queue = case_id in found
    n = found.index(case_id) if in_queue else min(at - first, len(found))
    return QueuePosition(
        first + n,
        in_queue,
        before=next((other for other in reversed(found[:n]) if other not in held), None),
        after=next((other for other in found[n + in_queue :] if other not in held), None),
    )


def place_in_case(db: sqlite3.Connection, pair: Pair) -> PlaceInCase:
    """The place of a pair, a < b, in its case, whose most severe pairs come first.

    The pairs without a verdict are walked through from this one to the last, and then from the first one on.
    """
    row = flags.read_pair(db, *pair)
    case_id = None if row is None else cases.find_case(db, row["story_id"])
    if row is None or case_id is None:
        return PlaceInCase(None)
    statuses = cases.read_statuses(db, case_id)
    ids = list(statuses)
    n = ids.index(row["flag_id"]) if row["flag_id"] in statuses else len(ids)
    to_decide = [flag_id for flag_id in (*ids[n + 1 :], *ids[:n]) if statuses[flag_id] == "open"]
    places = (ids[n - 1 : n] if n < len(ids) else [], ids[n + 1 : n + 2], to_decide[:1])
    described = flags.list_pairs(db, [flag_id for place in places for flag_id in place])
    pair_of = {flag["flag_id"]: make_shown_pair(flag) for flag in described}
    [case_shown] = story_rows.read_shown_ids(db, [case_id]).values()
    return PlaceInCase(case_shown, *(pair_of[place[0]] if place else None for place in places))


def make_shown_pair(flag: Mapping[str, Any]) -> ShownPair:
    """The ids of a row of one of the views of pairs, as they are shown."""
    return show_id(flag["story_id"], flag["story_name"]), show_id(flag["matched_id"], flag["matched_name"])
