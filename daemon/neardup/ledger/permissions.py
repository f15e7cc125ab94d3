"""Permissions: who may use whose text, by which licence and how long.

An author permits all of their texts, a serial or one story, a catalogue of the reference its works, to one author or to
everyone.  A serial is named as in neardup.ledger.serials, and all its chapters are meant, whenever they come.
A flag that no verdict decides is `permitted` while a permission in force covers the copy, and `open` otherwise:
triggers keep that so, whichever came first.  `refresh` applies what the passing of time changes.  A permission that was
revoked stays on record; one of a story that is forgotten does not.
"""

import sqlite3
from enum import StrEnum
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict

from neardup.core.serials import find_stem
from neardup.errors import NeardupError
from neardup.ledger import (
    join_conditions,
    languages,
    list_conditions,
    now_ms,
    select_named_rows,
    similarities,
    story_rows,
    transaction,
    webhook_events,
)
from neardup.ledger.serials import UNDECIDED
from neardup.ledger.story_rows import pack_id
from neardup.records import LONGEST_FIELD, Language, format_time

IS_NOW = "(revoked_at IS NULL AND coalesce(since <= ?1, true) AND coalesce(until > ?1, true))"
COLUMNS = (
    "SELECT permission_id, CAST(p.granted_by AS TEXT) AS granted_by, p.story_id, p.serial, p.catalogue,"
    " CAST(p.granted_to AS TEXT) AS granted_to, p.licence, p.note, p.since, p.until, p.entered_by, p.entered_at,"
    f" p.revoked_by, p.revoked_at, CASE WHEN {IS_NOW} THEN 'in_force' WHEN revoked_at IS NOT NULL THEN 'revoked'"
    " WHEN since > ?1 THEN 'later' ELSE 'ended' END AS state, d.title, d.language"
    " FROM permissions p LEFT JOIN described d ON d.id = p.story_id"
)


class Refusal(StrEnum):
    """Why a permission is not entered, or not revoked."""

    UNCLEAR = "unclear"
    TOO_LONG = "too_long"
    ENDED_TERM = "ended_term"
    WRONG_TERM = "wrong_term"
    UNKNOWN_STORY = "unknown_story"
    UNKNOWN_CATALOGUE = "unknown_catalogue"
    NOT_RIGHTS_HOLDER = "not_rights_holder"
    OWN_TEXT = "own_text"
    DUPLICATE = "duplicate"
    UNKNOWN_PERMISSION = "unknown_permission"
    REVOKED = "revoked"


class PermissionRefused(NeardupError):
    """A permission is not entered, or not revoked, for a `reason`; nothing was changed."""

    def __init__(self, reason: Refusal, why: str) -> None:
        super().__init__(why)
        self.reason = reason


class Grant(Struct, frozen=True):
    """What is permitted to whom.

    `granted_by` is an author, who permits all of their texts, or one of them with `story_id`, or with `serial` its
    chapters; or else a `catalogue` permits its works.  `granted_to` is an author, None for everyone.  It applies at or
    after `since` and before `until`, in milliseconds; None is no limit.
    """

    granted_by: str | None = None
    story_id: int | None = None
    catalogue: str | None = None
    granted_to: str | None = None
    licence: str | None = None
    note: str = ""
    since: int | None = None
    until: int | None = None
    serial: str | None = None


class PermissionFilter(Struct, frozen=True):
    """Filters of permissions, which must all match; None matches all.

    `author` gave or got them; `story` is one that alone is permitted; `current` leaves out what has ended.
    """

    number: int | None = None
    author: str | None = None
    story: int | None = None
    catalogue: str | None = None
    current: bool = False


def enter(db: sqlite3.Connection, grant: Grant, entered_by: str) -> int:
    """Record a permission; returns its number.  Raises PermissionRefused."""
    with transaction(db):
        permission_id = put(db, grant, entered_by)
        similarities.refresh(db)
    return permission_id


def put(db: sqlite3.Connection, grant: Grant, entered_by: str) -> int:
    """As `enter`, within the caller's transaction, which refreshes the similarities once for all that it puts."""
    now = now_ms()
    _refuse(db, grant, now)
    stem = grant.serial and find_stem(grant.serial)
    values = asdict(grant) | {"entered_by": entered_by, "entered_at": now, "serial_stem": stem}
    values |= {"granted_by": pack_id(grant.granted_by), "granted_to": pack_id(grant.granted_to)}
    permission_id = db.execute(
        f"INSERT INTO permissions ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})", [*values.values()]
    ).lastrowid
    assert permission_id is not None
    _apply_due(db, now, permission_id)
    return permission_id


def _refuse(db: sqlite3.Connection, grant: Grant, now: int) -> None:
    """Raise PermissionRefused for a grant that cannot hold."""
    if (grant.granted_by is None) == (grant.catalogue is None):
        raise PermissionRefused(Refusal.UNCLEAR, "give either the author who permits it, granted_by, or a catalogue")
    if [grant.story_id, grant.serial, grant.catalogue].count(None) < 2:
        raise PermissionRefused(Refusal.UNCLEAR, "give only one of story_id, serial and catalogue")
    texts = grant.granted_by, grant.serial, grant.catalogue, grant.granted_to, grant.licence, grant.note
    if max(len(text or "") for text in texts) > LONGEST_FIELD:
        raise PermissionRefused(Refusal.TOO_LONG, f"one of its texts has more than {LONGEST_FIELD:,} characters")
    if grant.until is not None and grant.until <= now:
        raise PermissionRefused(Refusal.ENDED_TERM, f"the permission ended already, at {format_time(grant.until)}")
    if grant.since is not None and grant.until is not None and grant.until <= grant.since:
        raise PermissionRefused(Refusal.WRONG_TERM, "the permission would end before it begins")
    if grant.story_id is not None:
        _refuse_story(db, grant.story_id, grant.granted_by)
    known = db.execute("SELECT 1 FROM works WHERE catalogue = ? LIMIT 1", (grant.catalogue,)).fetchone()
    if grant.catalogue is not None and known is None:
        raise PermissionRefused(Refusal.UNKNOWN_CATALOGUE, f"no works of a catalogue {grant.catalogue} are on record")
    if grant.granted_by is not None and grant.granted_by == grant.granted_to:
        raise PermissionRefused(Refusal.OWN_TEXT, f"author {grant.granted_by} needs no permission for their own texts")
    same = db.execute(
        "SELECT permission_id FROM permissions WHERE granted_by IS ?1 AND story_id IS ?2 AND catalogue IS ?3"
        " AND granted_to IS ?4 AND serial IS ?7 AND revoked_at IS NULL"
        " AND coalesce(until > ?5, true) AND coalesce(since < ?6, true) LIMIT 1",
        (
            pack_id(grant.granted_by),
            grant.story_id,
            grant.catalogue,
            pack_id(grant.granted_to),
            now if grant.since is None else max(grant.since, now),
            grant.until,
            grant.serial,
        ),
    ).fetchone()
    if same is not None:
        raise PermissionRefused(Refusal.DUPLICATE, f"permission {same[0]} says the same at the same time: revoke it")


def _refuse_story(db: sqlite3.Connection, story_id: int, granted_by: str | None) -> None:
    """Raise PermissionRefused unless this author wrote the story."""
    row = db.execute("SELECT author_id, name FROM described WHERE id = ?", (story_id,)).fetchone()
    if row is None:
        raise PermissionRefused(Refusal.UNKNOWN_STORY, f"story {story_id} is not on record")
    author, name = row
    if author != granted_by:
        written = "is by an author who is not known" if author is None else f"is by author {author}"
        why = f"story {name or story_id} {written}, so author {granted_by} cannot permit its use"
        raise PermissionRefused(Refusal.NOT_RIGHTS_HOLDER, why)


def revoke(db: sqlite3.Connection, permission_id: int, revoked_by: str) -> None:
    """End a permission now; it stays on record.  Raises PermissionRefused if there is none to end."""
    with transaction(db):
        now = now_ms()
        row = db.execute(
            "SELECT revoked_by, revoked_at FROM permissions WHERE permission_id = ?", (permission_id,)
        ).fetchone()
        if row is None:
            raise PermissionRefused(Refusal.UNKNOWN_PERMISSION, f"there is no permission {permission_id}")
        if row[1] is not None:
            why = f"{row[0]} revoked permission {permission_id} before, at {format_time(row[1])}"
            raise PermissionRefused(Refusal.REVOKED, why)
        db.execute(
            "UPDATE permissions SET revoked_by = ?, revoked_at = ? WHERE permission_id = ?",
            (revoked_by, now, permission_id),
        )
        _apply_due(db, now, permission_id)
        similarities.refresh(db)


def forget(db: sqlite3.Connection, story_id: int) -> None:
    """Remove the permissions of a story alone, within the caller's transaction, which has removed its flags."""
    db.execute("DELETE FROM permissions WHERE story_id = ?", (story_id,))


# The statuses of flags.


def is_due(db: sqlite3.Connection, now: int) -> bool:
    """Whether a permission has begun or ended since the last `refresh`."""
    row = db.execute(f"SELECT EXISTS (SELECT 1 FROM permissions WHERE in_force <> {IS_NOW})", (now,)).fetchone()
    return bool(row[0])


def refresh(db: sqlite3.Connection, now: int) -> None:
    """Have the flags follow the permissions that have begun or ended by `now`, in milliseconds."""
    if is_due(db, now):  # reading needs no turn
        with transaction(db):
            _apply_due(db, now)
            similarities.refresh(db)


def _apply_due(db: sqlite3.Connection, now: int, permission_id: int | None = None) -> None:
    """As `refresh`, of all or one, within the caller's transaction; the triggers decide the flags that are touched."""
    which = "true" if permission_id is None else "permission_id = ?2"
    due = db.execute(
        f"UPDATE permissions SET in_force = NOT in_force WHERE {which} AND in_force <> {IS_NOW}"
        " RETURNING granted_by, story_id, catalogue, permission_id, in_force",
        (now,) if permission_id is None else (now, permission_id),
    ).fetchall()
    for *about, number, in_force in due:
        concerned, value = _concern(*about)
        changed = db.execute(
            f"UPDATE flags SET status = status WHERE {concerned} AND {UNDECIDED} AND"
            " (status = 'permitted') <> EXISTS (SELECT 1 FROM permitted_flags p WHERE p.flag_id = flags.flag_id)"
            " RETURNING coalesce(later_id, b)",
            (value,),
        ).fetchall()
        if not in_force and webhook_events.is_wanted(db, webhook_events.VERDICTS):
            _announce_end(db, number, {story_id for (story_id,) in changed}, now)


def _announce_end(db: sqlite3.Connection, number: int, opened: set[int], now: int) -> None:
    """Have it posted that a permission has ended, with the stories whose copies are open again."""
    ended = read(db, number, now)
    assert ended is not None
    members = ("granted_by", "story_id", "serial", "catalogue", "granted_to", "licence")
    event: dict[str, Any] = {"event": "permission_ended", "at": format_time(now), "permission": number}
    event |= {name: ended[name] for name in members}
    event |= {"stories": sorted(story_rows.read_shown_ids(db, opened).values(), key=str)}
    webhook_events.announce(db, webhook_events.VERDICTS, event)


def _concern(granted_by: object, story_id: int | None, catalogue: str | None) -> tuple[str, object]:
    """The condition of the flags that such a permission may cover, and its value."""
    if catalogue is not None:
        return "a IN (SELECT story_id FROM works WHERE catalogue = ?1)", catalogue
    if story_id is not None:
        return "(a = ?1 OR b = ?1)", story_id
    return "(author_a = ?1 OR author_b = ?1)", granted_by


def read_languages(db: sqlite3.Connection, grant: Grant) -> set[Language]:
    """The languages of the undecided flags that such a permission may cover, those that are permitted among them."""
    concerned, value = _concern(pack_id(grant.granted_by), grant.story_id, grant.catalogue)
    name_of = languages.map_names(db)
    rows = db.execute(f"SELECT DISTINCT language FROM flags WHERE {concerned} AND {UNDECIDED}", (value,))
    return {name_of[number] for (number,) in rows if number is not None}


# What is on record.


class Source(NamedTuple):
    """A text that another may copy: its story, None for one that is not on record, its author, catalogue and serial."""

    story_id: int | None
    author: str | None
    catalogue: str | None = None
    serial: str | None = None


def find_covering(db: sqlite3.Connection, source: Source, copying_author: str | None, now: int) -> int | None:
    """The number of a permission by which an author may use the text of a source at a time; None without one.

    An author who is not known counts as another.
    """
    if source.author is not None and source.author == copying_author:
        return None
    row = db.execute(
        f"SELECT permission_id FROM permissions WHERE {IS_NOW} AND (granted_by = ?2 AND coalesce(story_id = ?3,"
        " story_id IS NULL) AND (serial IS NULL OR ?6 IN (serial, serial_stem)) OR catalogue = ?4)"
        " AND coalesce(granted_to = ?5, granted_to IS NULL) ORDER BY permission_id LIMIT 1",
        (now, pack_id(source.author), source.story_id, source.catalogue, pack_id(copying_author), source.serial),
    ).fetchone()
    return row and int(row[0])


def select(
    db: sqlite3.Connection, chosen: PermissionFilter, now: int, *, limit: int = -1, offset: int = 0
) -> list[dict[str, Any]]:
    """The permissions of a selection, those entered last first.

    Members: permission_id, granted_by, story_id (as it is shown), serial, catalogue, granted_to, licence, note, since,
    until, entered_by, entered_at, revoked_by, revoked_at, `state` ("in_force", "later", "ended" or "revoked"), and
    `title` and `language` of the story.
    """
    where, values = _make_conditions(chosen, now)
    rows = select_named_rows(
        db, f"{COLUMNS} WHERE {where} ORDER BY permission_id DESC LIMIT ? OFFSET ?", (now, *values, limit, offset)
    )
    return list(story_rows.show_ids(db, rows, ("story_id",)))


def count(db: sqlite3.Connection, chosen: PermissionFilter, now: int) -> int:
    """The number of permissions in a selection."""
    where, values = _make_conditions(chosen, now)
    return int(db.execute(f"SELECT count(*) FROM permissions p WHERE {where}", values).fetchone()[0])


def _make_conditions(chosen: PermissionFilter, now: int) -> tuple[str, list[object]]:
    return join_conditions(
        list_conditions(
            (
                ("permission_id = ?", chosen.number),
                ("(p.granted_by = ? OR p.granted_to = ?)", pack_id(chosen.author)),
                ("p.story_id = ?", chosen.story),
                ("p.catalogue = ?", chosen.catalogue),
                ("revoked_at IS NULL AND coalesce(until > ?, true)", now if chosen.current else None),
            )
        )
    )


def read(db: sqlite3.Connection, permission_id: int, now: int) -> dict[str, Any] | None:
    """A permission as `select` returns it; None if there is none."""
    return next(iter(select(db, PermissionFilter(number=permission_id), now)), None)
