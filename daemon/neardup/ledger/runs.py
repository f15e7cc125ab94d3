"""Runs, and what the ledger records about itself by name: watermark, checkpoint, the sweep that is owed, and others.

The watermark is the `updated_at` up to which every story has been listed: a daily run lists what changed after it.
Only a run that is done advances it, so a story that a failed run missed is listed again.  A checkpoint is the place at
which an interrupted backfill continues.
"""

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from neardup.ledger import now_ms, select_named_rows, transaction
from neardup.records import Checkpoint

BACKED_UP = "backed_up_at"
WATERMARKS = 100  # kept on record, in case the clock was ahead for this many runs


def begin(db: sqlite3.Connection, command: str) -> int:
    """Record the start of a run; runs that never ended are marked as crashed."""
    with transaction(db):
        db.execute("UPDATE runs SET status = 'crashed' WHERE status = 'running'")
        cursor = db.execute("INSERT INTO runs (command, started_at) VALUES (?, ?)", (command, now_ms()))
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def finish(
    db: sqlite3.Connection,
    run_id: int,
    status: str,
    *,
    counts: dict[str, object],
    error: str | None = None,
    watermark: int | None = None,
) -> None:
    """Record the end of a run that is under way; one that ended already keeps its outcome.

    One that is `done` advances the watermark, and a backfill then drops its checkpoint.
    """
    with transaction(db):
        closed = db.execute(
            "UPDATE runs SET status = ?, ended_at = ?, error = ?, counts = ? WHERE run_id = ? AND status = 'running'",
            (status, now_ms(), error, json.dumps(counts), run_id),
        )
        if closed.rowcount and status == "done":
            db.execute(
                "DELETE FROM meta WHERE key IN ('checkpoint', 'refingerprinting') AND"
                " 'backfill' = (SELECT command FROM runs WHERE run_id = ?)",
                (run_id,),
            )
            if watermark is not None:
                _move_watermark(db, run_id, watermark)


def put_warnings(db: sqlite3.Connection, run_id: int, warnings: Mapping[str, str]) -> None:
    """Add to the record of a run that ended what failed after it: hook -> reason."""
    db.execute(
        "UPDATE runs SET counts = json_set(counts, '$.warnings', json(?)) WHERE run_id = ?",
        (json.dumps(warnings), run_id),
    )


def put(db: sqlite3.Connection, key: str, value: str) -> None:
    """Record what the ledger knows about itself by this name."""
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def read_wait(db: sqlite3.Connection, pid: int) -> dict[str, Any] | None:
    """What the process with this id waits for, why, and since when in milliseconds; None where it does not wait."""
    record = json.loads(get(db, "waiting") or "{}")
    return dict(record) if record.get("pid") == pid else None


def owe_sweep(db: sqlite3.Connection, *, owed: bool) -> None:
    """Record that stories were written without lookups, or that a sweep has found their pairs since."""
    if owed:
        put(db, "sweep_owed", "1")
    else:
        db.execute("DELETE FROM meta WHERE key = 'sweep_owed'")


def owes_sweep(db: sqlite3.Connection) -> bool:
    """Whether there may be stories that were never compared with the others."""
    return get(db, "sweep_owed") is not None


def get(db: sqlite3.Connection, key: str) -> str | None:
    """What the ledger knows about itself by this name; None if nothing is on record."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return row[0] if row else None


def read_watermark(db: sqlite3.Connection) -> int | None:
    """The `updated_at` up to which every story has been listed, in milliseconds."""
    value = get(db, "watermark")
    return int(value) if value else None


def read_trusted_watermark(db: sqlite3.Connection, now: int) -> int | None:
    """The watermark that can be trusted at `now`; 0 where none on record can be.

    A run that began after `now` had a clock that was ahead, so that stories dated in the future may have moved the
    watermark: the one before it is used.  A story that is listed twice is found unchanged; one that is never listed
    would be lost.
    """
    watermarks = _list_watermarks(db)
    return next((watermark for watermark, began in reversed(watermarks) if began <= now), 0 if watermarks else None)


def _list_watermarks(db: sqlite3.Connection) -> list[tuple[int, int]]:
    """The last watermarks, each with the start of its run."""
    return [(watermark, began) for watermark, began in json.loads(get(db, "watermarks") or "[]")]


def _move_watermark(db: sqlite3.Connection, run_id: int, watermark: int) -> None:
    (began,) = db.execute("SELECT started_at FROM runs WHERE run_id = ?", (run_id,)).fetchone()
    if watermark > (read_trusted_watermark(db, began) or 0):
        put(db, "watermarks", json.dumps([*_list_watermarks(db), (watermark, began)][-WATERMARKS:]))
        put(db, "watermark", str(watermark))


def read_checkpoint(db: sqlite3.Connection) -> Checkpoint | None:
    """The place at which an interrupted backfill continues."""
    value = get(db, "checkpoint")
    return Checkpoint(*json.loads(value)) if value else None


def put_checkpoint(db: sqlite3.Connection, checkpoint: Checkpoint) -> None:
    put(db, "checkpoint", json.dumps([checkpoint.listing, checkpoint.position, checkpoint.newest]))


def list_latest(db: sqlite3.Connection, limit: int) -> list[dict[str, Any]]:
    """The last runs, newest first."""
    columns = "run_id, command, started_at, ended_at, status, error, counts"
    rows = select_named_rows(db, f"SELECT {columns} FROM runs ORDER BY run_id DESC LIMIT ?", (limit,))
    return [row | {"counts": json.loads(row["counts"])} for row in rows]


def read_last_of_command(db: sqlite3.Connection, command: str) -> dict[str, Any] | None:
    """When the last run of a command started, in milliseconds, its status and its error; None if there is none."""
    latest = "SELECT started_at, status, error FROM runs WHERE command = ? ORDER BY run_id DESC LIMIT 1"
    return next(select_named_rows(db, latest, (command,)), None)


def read_last_successes(db: sqlite3.Connection) -> dict[str, int]:
    """Command -> the end of its last successful run, in milliseconds."""
    latest = "SELECT max(run_id) FROM runs WHERE status = 'done' GROUP BY command"
    ended = dict(db.execute(f"SELECT command, ended_at FROM runs WHERE run_id IN ({latest})"))
    copied = get(db, BACKED_UP)  # a backup may happen during a run, so it is recorded apart
    return ended if copied is None else ended | {"backup": int(copied)}
