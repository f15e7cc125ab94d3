"""Verdicts at the desk: one on a pair, on a case or on several, taking it back, and the forms that ask for them.

A decision is within the rights of its moderator, and raises NotPermitted otherwise.  It is stored as it was seen: what
others did in between is a Conflict, as `ledger.verdicts` raises it.

A form has the state that its moderator saw, and the query of the queue of cases.  It leads on through the queue: from a
case to the next one that no other moderator holds, from a pair to the next one of its case, and from the last pair to
the case.  The verdict on a pair or on a case that is refused comes back with its input.
"""

import re
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from aiohttp import web
from msgspec import Struct

from neardup.errors import Conflict
from neardup.ledger import Row, authors, case_queue, cases, flags, story_rows, verdicts
from neardup.ledger.case_queue import OPEN
from neardup.ledger.cases import CaseHeld, Lease
from neardup.moderation.desk.addresses import (
    CaseQueue,
    Pair,
    QueuePosition,
    ShownPair,
    find_case_position,
    find_page_of_form,
    format_case_query,
    make_case_url,
    make_pair_url,
    parse_case_queue,
    place_in_case,
    read_number,
    read_pair,
    read_story_id,
)
from neardup.moderation.desk.moderators import OFFERED, Moderator, choose_local_path
from neardup.moderation.desk.pages import (
    SendAgain,
    read_note,
    render_page,
    require_moderator,
    require_sender,
)
from neardup.moderation.desk.parts import FORM, Connections, announce_undo, announce_verdict, get_desk
from neardup.moderation.interface import translate_later
from neardup.records import PERMITTED, ShownId, Verdict
from neardup.source.parse import parse_id

EXCEPTED = "except-"  # the fields of pairs that are left out of a verdict begin so
CHOSEN = "case-"  # the fields of chosen cases begin so
SHOWN_DECISIONS = 20


class Decision(Struct, frozen=True):
    """A verdict by a moderator on some pairs; `seen` identifies the state of their flags (`verdicts.identify_state`).

    `cases` are the ids of their cases when they were decided.  `undone_by` is None while it stands; `later` is the
    verdict that was built upon it, a row of `verdicts.find_built_upon`.
    """

    number: int
    verdict: Verdict
    note: str
    moderator: str
    decided_at: int
    pairs: tuple[ShownPair, ...]
    cases: tuple[ShownId, ...]
    undone_by: str | None
    later: Row | None
    seen: str

    @property
    def is_undone(self) -> bool:
        return self.undone_by is not None


def read_decision(db: sqlite3.Connection, number: int) -> Decision | None:
    """The decision with this number; None if there is none."""
    rows = verdicts.list_of_decision(db, number)
    if not rows:
        return None
    first = rows[0]
    case_ids = sorted({row["case_id"] for row in rows} - {None})
    shown = story_rows.read_shown_ids(db, [*case_ids, *(row[side] for row in rows for side in "ab")])
    return Decision(
        number,
        Verdict(first["verdict"]),
        first["note"],
        first["moderator"],
        first["decided_at"],
        tuple((shown[row["a"]], shown[row["b"]]) for row in rows),
        tuple(shown[case_id] for case_id in case_ids),
        first["undone_by"],
        verdicts.find_built_upon(db, number),
        verdicts.identify_state(db, verdicts.list_flags(db, number)),
    )


class NewVerdict(Struct, frozen=True):
    """A verdict as a moderator gives it; `seen` is what `verdicts.identify_state` gave of the flags that were shown."""

    verdict: Verdict
    note: str
    moderator: Moderator
    seen: str = ""


def hold_case(db: sqlite3.Connection, case_id: int, moderator: Moderator) -> Lease:
    """Lease a case to a moderator.  Raises CaseHeld where another one holds it."""
    moderator.require(flags.read_languages(db, cases.list_flags(db, case_id)))
    lease = cases.take_lease(db, case_id, moderator.name)
    if lease.moderator != moderator.name:
        raise cases.explain_lease(lease)
    return lease


def decide_pair(db: sqlite3.Connection, pair: Pair, given: NewVerdict) -> int:
    """Decide one pair, a < b; returns the number of the decision."""
    row = flags.read_pair(db, *pair)
    return _decide(db, [row["flag_id"]] if row else [], given)


def decide_case(db: sqlite3.Connection, case_id: int, excepted: Collection[int], given: NewVerdict) -> int:
    """Decide the open flags of a case but those `excepted`; returns the number of the decision."""
    shown = list_flags_of_case(db, case_id).open
    chosen = [flag_id for flag_id in shown if flag_id not in excepted]
    if shown and not chosen:
        raise Conflict("every pair of the case was left out")
    done = _decide(db, chosen, given, shown)
    cases.release_leases(db, given.moderator.name, [case_id])
    return done


def decide_cases(db: sqlite3.Connection, states: Mapping[int, str], given: NewVerdict) -> int:
    """Decide the open flags of several cases; returns the number of the decision.

    Each case comes with its `describe_state` as it was shown.
    """
    for case_id, state in states.items():
        row = case_queue.read_case(db, case_id)
        if row is None or describe_state(row) != state:
            [shown] = story_rows.read_shown_ids(db, [case_id]).values()
            raise Conflict(f"the case of story {shown} has changed meanwhile: look at it again")
    chosen = [flag_id for case_id in states for flag_id in list_flags_of_case(db, case_id).open]
    seen = verdicts.identify_state(db, chosen)
    done = _decide(db, chosen, NewVerdict(given.verdict, given.note, given.moderator, seen))
    cases.release_leases(db, given.moderator.name, states)
    return done


def reopen_case(db: sqlite3.Connection, case_id: int, given: NewVerdict) -> int:
    """Take back the verdicts on a case, for the reason in the note; returns the number of the decision."""
    return _decide(db, list_flags_of_case(db, case_id).decided, given)


def undo(db: sqlite3.Connection, decision: int, moderator: Moderator, seen: str) -> None:
    """Undo a decision, as `verdicts.undo` does."""
    moderator.require(verdicts.list_languages(db, decision))
    verdicts.undo(db, decision, moderator.name, seen)


def hide_author(db: sqlite3.Connection, author_id: str, given: NewVerdict) -> None:
    """Ask the platform to hide the undecided stories of an author, for the reason in the note."""
    given.moderator.require(authors.read_open_languages(db, author_id))
    authors.hide(db, author_id, given.note, given.moderator.name)


def show_author(db: sqlite3.Connection, author_id: str, given: NewVerdict) -> None:
    """Take back that the undecided stories of an author are hidden."""
    given.moderator.require(authors.read_open_languages(db, author_id))
    authors.show(db, author_id, given.moderator.name)


class CaseFlags(NamedTuple):
    """The ids of the flags of a case.

    A verdict on all of it decides the open ones; opening it again reopens those with a verdict.
    """

    open: list[int]
    decided: list[int]
    permitted: list[int]


def list_flags_of_case(db: sqlite3.Connection, case_id: int) -> CaseFlags:
    """The flags that count in a case, the most severe of each list first."""
    found = CaseFlags([], [], [])
    for flag_id, status in cases.read_statuses(db, case_id).items():
        {"open": found.open, PERMITTED: found.permitted}.get(status, found.decided).append(flag_id)
    return found


def describe_state(row: Mapping[str, Any]) -> str:
    """What changes when others decide a case, or when flags join it: a row of `case_queue.select`, in brief."""
    return f"{row['open_flags']} {row['flags']} {row['statuses']} {row['unsure']} {row['flagged_at']}"


def _decide(db: sqlite3.Connection, flag_ids: Sequence[int], given: NewVerdict, shown: Sequence[int] = ()) -> int:
    given.moderator.require(flags.read_languages(db, flag_ids))
    return verdicts.decide(db, flag_ids, given.verdict, given.note, given.moderator.name, given.seen, shown)


# The forms.


def _parse_verdict(form: dict[str, str]) -> Verdict:
    for verdict in OFFERED:
        if verdict == form.get("verdict"):
            return verdict
    raise web.HTTPBadRequest(reason=translate_later("Unknown verdict"))


def read_query(request: web.Request) -> dict[str, str]:
    """The query string of the queue, which the form has in its field `query`."""
    return dict(parse_qsl(request[FORM].get("query", "").removeprefix("?"), max_num_fields=32))


def read_verdict(request: web.Request, verdict: Verdict | None = None) -> NewVerdict:
    """The verdict in a form with the fields `verdict`, `note` and `seen`.

    A note begins with that of the field `saved`, if one was chosen.  Raises SendAgain for a note that is too long and
    for a moderator who is not known, and HTTPBadRequest for an unknown verdict.
    """
    form = request[FORM]
    given_verdict = verdict or _parse_verdict(form)
    note = read_note(f"{form.get('saved', '')}\n{form.get('note', '')}")
    return NewVerdict(given_verdict, note, require_sender(request), form.get("seen", ""))


def render_conflict(
    request: web.Request, error: Conflict, back: str, form: dict[str, Any] | None = None
) -> web.Response:
    """The page of a conflict, with a way back; a `form` is kept, for the state that is current now."""
    fields = form and {"query": "", "action": request.path} | form
    kept = {name: value for name, value in (form or {}).items() if name.startswith(EXCEPTED)}
    return render_page(
        request,
        "conflict.html.j2",
        409,
        is_held=isinstance(error, CaseHeld),
        message=str(error),
        form=fields,
        back=back,
        kept=kept,
    )


async def post_case_verdict(request: web.Request) -> web.StreamResponse:
    """POST /case/ID/verdict: fields `verdict`, `note`, `seen`, `query`, and except-FLAG for what stays open."""
    ledger, form, case_id = get_desk(request).ledger, request[FORM], read_story_id(request)
    given = read_verdict(request)
    queue, at = _read_queue(request, given.moderator)
    excepted = _read_excepted_flags(form)
    await ledger.refresh_cases()
    position = None if at is None else await ledger.read(find_case_position, queue, case_id, at)
    try:
        done = await ledger.write(decide_case, case_id, excepted, given)
    except Conflict as error:
        state = await ledger.read(_read_case_state, case_id)
        back = f"{find_page_of_form(request)}{format_case_query(queue, at=at)}"
        return render_conflict(request, error, back, form | {"verdict": given.verdict, "note": given.note} | state)
    announce_verdict(get_desk(request), done, given.verdict)
    await ledger.refresh_cases()
    following = None if position is None else await _claim_next(ledger, queue, position, given.moderator.name)
    if position is None or following is None:
        raise web.HTTPSeeOther(f"/{format_case_query(queue, done=done)}")
    after = await ledger.read(find_case_position, queue, following, position.at)
    [shown] = (await ledger.read(story_rows.read_shown_ids, [following])).values()
    raise web.HTTPSeeOther(f"{make_case_url(shown)}{format_case_query(queue, at=after.at, done=done)}")


async def post_reopening(request: web.Request) -> web.StreamResponse:
    """POST /case/ID/reopen: fields `note`, the reason, and `query`; takes back the verdicts on a case."""
    ledger, case_id = get_desk(request).ledger, read_story_id(request)
    given = read_verdict(request, Verdict.REOPENED)
    if not given.note:
        why = translate_later("Say why the case is opened again.")
        raise SendAgain(400, translate_later("A reason is needed"), why)
    queue, at = _read_queue(request, given.moderator)
    try:
        done = await ledger.write(reopen_case, case_id, given)
    except Conflict as error:
        return render_conflict(request, error, f"{find_page_of_form(request)}{format_case_query(queue, at=at)}")
    announce_verdict(get_desk(request), done, given.verdict)
    raise web.HTTPSeeOther(f"{find_page_of_form(request)}{format_case_query(queue, at=at, done=done)}")


async def post_cases_verdict(request: web.Request) -> web.StreamResponse:
    """POST /cases/verdict: fields `verdict`, `note`, `query`, and case-ID with the state of the case."""
    ledger, form = get_desk(request).ledger, request[FORM]
    given = read_verdict(request)
    queue, _ = _read_queue(request, given.moderator)
    states = _read_chosen_cases(form)
    if not states:
        what = translate_later("Mark the cases that the verdict is for.")
        raise SendAgain(400, translate_later("No case was chosen"), what)
    await ledger.refresh_cases()
    try:
        done = await ledger.write(decide_cases, states, given)
    except Conflict as error:
        return render_conflict(request, error, f"/{format_case_query(queue)}")
    announce_verdict(get_desk(request), done, given.verdict)
    raise web.HTTPSeeOther(f"/{format_case_query(queue, done=done)}")


def _read_chosen_cases(form: Mapping[str, str]) -> dict[int, str]:
    """The ids of the chosen cases, each with the state in its field."""
    chosen = {}
    for name in form:
        if name.startswith(CHOSEN):
            with suppress(ValueError):
                chosen[parse_id(name.removeprefix(CHOSEN))] = form[name]
    return chosen


def _read_excepted_flags(form: Mapping[str, str]) -> set[int]:
    listed = [name.removeprefix(EXCEPTED) for name in form if name.startswith(EXCEPTED)]
    return {int(flag_id) for flag_id in listed if re.fullmatch(r"[0-9]{1,18}", flag_id)}


def _read_queue(request: web.Request, moderator: Moderator) -> tuple[CaseQueue, int | None]:
    """The queue in the form's field `query`, and the position in it."""
    query = read_query(request)
    return parse_case_queue(query, get_desk(request).config, moderator), read_number(query, "at")


async def _claim_next(ledger: Connections, queue: CaseQueue, position: QueuePosition, moderator: str) -> int | None:
    """Lease the case that follows, so that two who decide at the same time go on to different ones."""
    after = position.after
    while after is not None and queue.selection.status == OPEN:
        lease = await ledger.write(cases.take_lease, after, moderator)
        if lease.moderator == moderator:
            break
        after = (await ledger.read(find_case_position, queue, after, position.at)).after
    return after


def _read_case_state(db: sqlite3.Connection, case_id: int) -> dict[str, Any]:
    open_flags = list_flags_of_case(db, case_id).open
    return {
        "seen": verdicts.identify_state(db, open_flags),
        "history": verdicts.list_of_case(db, case_id),
        "flagged": len(open_flags),
    }


async def post_pair_verdict(request: web.Request) -> web.StreamResponse:
    """POST /pair/A/B/verdict: fields `verdict`, `note`, `seen` and `query`.

    It leads to the next pair of the case without a verdict; after the last one, back to the case.
    """
    desk, form, pair = get_desk(request), request[FORM], read_pair(request)
    ledger = desk.ledger
    given = read_verdict(request)
    queue, at = _read_queue(request, given.moderator)
    try:
        done = await ledger.write(decide_pair, pair, given)
    except Conflict as error:
        state = await ledger.read(_read_pair_state, pair)
        kept = form | {"verdict": given.verdict, "note": given.note}
        return render_conflict(request, error, find_page_of_form(request), kept | state)
    announce_verdict(desk, done, given.verdict)
    await ledger.refresh_cases()
    place = await ledger.read(place_in_case, pair)
    if place.next_open is not None:
        following = make_pair_url(*place.next_open)
    else:
        following = find_page_of_form(request) if place.case_id is None else make_case_url(place.case_id)
    raise web.HTTPSeeOther(f"{following}{format_case_query(queue, at=at, done=done)}")


async def post_undo(request: web.Request) -> web.StreamResponse:
    """POST /undo/DECISION: fields `seen`, `query` and perhaps `back`.

    It leads to `back`, or to the pair, the case, or the queue of cases.
    """
    desk, done = get_desk(request), read_number(request.match_info, "decision") or 0
    given = read_verdict(request, Verdict.REOPENED)
    undone = await desk.ledger.read(read_decision, done)
    if undone is None:
        raise web.HTTPNotFound
    back = request[FORM].get("back")
    try:
        await desk.ledger.write(undo, done, given.moderator, given.seen)
    except Conflict as error:
        return render_conflict(request, error, choose_local_path(back or _find_path(undone)))
    announce_undo(desk, done)
    if back:
        raise web.HTTPSeeOther(choose_local_path(back))
    queue, at = _read_queue(request, given.moderator)
    raise web.HTTPSeeOther(f"{_find_path(undone)}{format_case_query(queue, at=at)}")


async def show_decisions(request: web.Request) -> web.Response:
    """GET /decisions: the moderator's last decisions, each with its undo."""
    moderator = require_moderator(request)
    return render_page(
        request, "decisions.html.j2", decisions=await get_desk(request).ledger.read(_list_decisions, moderator.name)
    )


def _list_decisions(db: sqlite3.Connection, moderator: str) -> list[dict[str, Any]]:
    """The last decisions, the latest first, each with its address, and with its first pair if that is flagged."""
    listed = []
    for done in verdicts.list_decisions(db, moderator, SHOWN_DECISIONS):
        decision = read_decision(db, done)
        if decision is not None:
            row = flags.read_pair(db, *(parse_id(str(shown)) for shown in decision.pairs[0]))
            # a pair that is not flagged was decided in the queue of meaning
            address = _find_path(decision) if row else make_pair_url(*decision.pairs[0], "meaning")
            listed.append({"decision": decision, "first": row, "address": address})
    return listed


def _find_path(decision: Decision) -> str:
    if len(decision.pairs) == 1:
        return make_pair_url(*decision.pairs[0])
    return make_case_url(decision.cases[0]) if len(decision.cases) == 1 else "/"


def _read_pair_state(db: sqlite3.Connection, pair: Pair) -> dict[str, Any]:
    row = flags.read_pair(db, *pair)
    return {
        "seen": verdicts.identify_state(db, [row["flag_id"]] if row else []),
        "history": verdicts.list_of_pair(db, *pair),
        "flagged": int(row is not None),
    }
