"""Laws: a batch is written completely or not at all; edits withdraw what was derived; closing waits for calls; and a
command waits for a process that stores submitted stories, which has the lock for a moment only.
"""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
from msgspec.structs import replace
from neardup.config import Thresholds
from neardup.core.languages import LANGUAGES
from neardup.core.verify.scores import assess
from neardup.errors import Fatal, Transient
from neardup.ledger import (
    Ledger,
    candidates,
    connect,
    dead_letters,
    flags,
    lock,
    outbox,
    read,
    runs,
    stories,
    story_rows,
    transaction,
    verification,
)
from neardup.ledger.flags import Selection
from neardup.ledger.schema import OLDEST
from neardup.pipeline.verifier import BEFORE_ALL
from neardup.records import BadRow, Checkpoint, Dead, DeadLettered, Fingerprinted, Skip, Skipped, Story

from tests.support.builders import commit, fingerprint_of, fingerprinted, verify_pending
from tests.support.languages import HINDI


@pytest.fixture
def db(tmp_path: Path) -> sqlite3.Connection:
    return connect(tmp_path / "ledger.db")


def test_failed_batch_leaves_no_trace(db: sqlite3.Connection) -> None:
    with pytest.raises(TypeError):
        commit(db, fingerprinted(1, 1), pairs={(1, object())})  # type: ignore[arg-type]
    assert stories.read_stored_versions(db, [1]).get(1) is None
    assert outbox.read_last_seq(db) == 0


def test_transaction_inside_another_is_a_part_of_it(db: sqlite3.Connection) -> None:
    with suppress(ZeroDivisionError), transaction(db):
        with transaction(db):
            runs.put(db, "inner", "1")
        runs.put(db, "outer", str(1 / 0))
    assert runs.get(db, "inner") is None and not db.in_transaction
    with transaction(db), transaction(db):
        runs.put(db, "inner", "2")
    assert runs.get(db, "inner") == "2" and not db.in_transaction


def test_removed_text_removes_its_fingerprint(db: sqlite3.Connection) -> None:
    commit(db, fingerprinted(1, 1))
    commit(db, Skipped(Story(1, HINDI), Skip.MISSING))
    assert stories.read_stored_versions(db, [1]).get(1) is not None, "a missing object says nothing of the text"
    commit(db, Skipped(Story(1, HINDI), Skip.EMPTY))
    assert stories.read_stored_versions(db, [1]).get(1) is None
    assert outbox.list_changes(db, 1, 9)[-1].new is None


def test_metadata_of_unchanged_story_is_updated(db: sqlite3.Connection) -> None:
    commit(db, fingerprinted(1, 1, updated_at=1))
    commit(db, Skipped(Story(1, HINDI, title="new", updated_at=2), Skip.UNCHANGED, '"f"'))
    row = story_rows.describe(db, [1])[1]
    assert (row["title"], row["updated_at"], row["etag"]) == ("new", 2, '"f"')
    assert outbox.read_last_seq(db) == 1, "nothing changes for the index"


def test_edit_withdraws_flags_until_they_are_verified_again(db: sqlite3.Connection) -> None:
    commit(db, fingerprinted(1, 1), fingerprinted(2, 1), pairs={(1, 2)})
    verify_pending(db)
    assert [row["story_id"] for row in flags.select(db)] == [2]
    flags.mark_exported(db, [1])
    commit(db, fingerprinted(2, 0xFFFF))
    assert list(flags.select(db)) == []
    commit(db, fingerprinted(2, 1), pairs={(1, 2)})
    verify_pending(db)
    assert [row["flag_id"] for row in flags.select(db)] == [2], "it is another flag, of another text"
    assert [row["flag_id"] for row in flags.select(db, Selection(only_new=True))] == [2], "and news again"


def test_assessment_of_an_old_text_is_dropped(db: sqlite3.Connection) -> None:
    commit(db, fingerprinted(1, 1), fingerprinted(2, 1), pairs={(1, 2)})
    assessed = [(pair, assess(pair, None, None, Thresholds())) for pair in candidates.list_pending(db, BEFORE_ALL, 9)]
    commit(db, fingerprinted(2, 0xFFFFFF), pairs={(1, 2)})  # edited while the verifier was at work
    assert not verification.record(db, assessed, "v")
    assert candidates.count_pending(db) == 1, "the pair waits to be judged by its new text"


def test_pair_with_a_removed_story_is_not_nominated(db: sqlite3.Connection) -> None:
    commit(db, fingerprinted(1, 1))
    commit(db, Skipped(Story(1, HINDI), Skip.EMPTY), fingerprinted(2, 1), pairs={(1, 2)})
    assert candidates.count_pending(db) == 0


def test_a_story_whose_text_went_is_known_until_it_is_forgotten(db: sqlite3.Connection) -> None:
    commit(db, fingerprinted(1, 1))
    commit(db, Skipped(Story(1, HINDI), Skip.EMPTY))
    assert stories.forget(db, 1, known_only=True)[0], "since when it was known is on record"
    assert stories.find_forgotten(db, [1, 2]) == {1}, "a listing could bring it back"
    assert not stories.forget(db, 1, known_only=True)[0]


def test_a_story_that_is_forgotten_while_its_page_is_read_leaves_nothing(db: sqlite3.Connection) -> None:
    dead_letters.add_interrupted(db, [1, 2])
    for story_id in (1, 2, 3, 4):
        stories.forget(db, story_id)
    commit(
        db,
        fingerprinted(1, 1),
        DeadLettered(Story(2, HINDI, title="रहस्य"), Dead.STORE_ERROR, "why"),
        Skipped(Story(3, HINDI), Skip.MISSING),
        DeadLettered(
            BadRow("4", Dead.BAD_LANGUAGE, "no known language", name="TLH/secret.html"), Dead.BAD_LANGUAGE, ""
        ),
        DeadLettered(BadRow("row:x", Dead.BAD_ID, "no id"), Dead.BAD_ID, "no id"),
    )
    assert dead_letters.count_by_reason(db) == {"bad_id": 1}
    assert stories.read_stored_versions(db, [1]) == dead_letters.count_interruptions(db) == {}


def test_forgetting_a_story_removes_all_its_records(db: sqlite3.Connection) -> None:
    commit(db, fingerprinted(1, 1), fingerprinted(2, 1), pairs={(1, 2)})
    verify_pending(db)
    commit(db, DeadLettered(Story(3, HINDI), Dead.STORE_ERROR, "why"))
    assert all(stories.forget(db, n)[0] for n in (2, 3))
    assert not stories.forget(db, 99)[0]
    assert db.execute("SELECT count(*) FROM flags").fetchone() == (0,)
    assert dead_letters.count_by_reason(db) == {}
    assert set(stories.read_fingerprints(db, [1, 2])) == {1}


def test_a_page_that_is_stored_while_its_folder_is_read_is_not_taken_for_gone(db: sqlite3.Connection) -> None:
    def store(story_id: int) -> None:
        story = Story(story_id, HINDI, path := f"{story_id}.html", name=path)
        commit(db, Fingerprinted(story, fingerprint_of(story_id.to_bytes(16)), None))

    store(1)
    store(2)
    last_change = outbox.read_last_seq(db)
    store(3)
    assert stories.list_unlisted_pages(db, {1}, last_change) == [2]


def test_dead_letter_counts_attempts_until_recovery(db: sqlite3.Connection) -> None:
    for _ in range(2):
        commit(
            db,
            DeadLettered(Story(3, HINDI), Dead.STORE_ERROR, "why"),
            DeadLettered(BadRow("row:x", Dead.BAD_ID, "no id"), Dead.BAD_ID, "no id"),
        )
    assert db.execute("SELECT attempts FROM dead_letters ORDER BY key").fetchall() == [(2,), (2,)]
    commit(db, fingerprinted(3, 3))
    assert dead_letters.count_by_reason(db) == {"bad_id": 1}


def test_only_successful_runs_advance_the_watermark(db: sqlite3.Connection) -> None:
    for status, mark, expected in (("failed", 50, None), ("done", 100, 100), ("done", 70, 100), ("stopped", 900, 100)):
        runs.finish(db, runs.begin(db, "daily"), status, counts={}, watermark=mark)
        assert runs.read_watermark(db) == expected, status


def test_daily_run_keeps_checkpoint_of_backfill(db: sqlite3.Connection) -> None:
    runs.put_checkpoint(db, Checkpoint("query", 7))
    runs.finish(db, runs.begin(db, "daily"), "done", counts={})
    assert runs.read_checkpoint(db) == Checkpoint("query", 7)
    runs.finish(db, runs.begin(db, "backfill"), "done", counts={})
    assert runs.read_checkpoint(db) is None


def test_run_that_never_ended_is_marked_as_crashed(db: sqlite3.Connection) -> None:
    runs.begin(db, "backfill")
    runs.begin(db, "daily")
    assert [run["status"] for run in runs.list_latest(db, 2)] == ["running", "crashed"]


def test_refused_pipeline_command_names_the_holder(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with (
        lock.only_one(path, "backfill"),
        pytest.raises(Transient, match=r"backfill, process [0-9]+, since 20") as caught,
        lock.only_one(path, "daily"),
    ):
        pass
    assert caught.value.exit_code == 75
    assert lock.read_holder(path) is None


def test_half_written_lock_names_another_command(tmp_path: Path) -> None:
    with lock.only_one(tmp_path / "l.db", "backfill"):
        [path] = tmp_path.glob("l.db?*lock*")
        path.write_text('{"command": "back')
        assert lock.read_holder(tmp_path / "l.db") == {"command": "another command"}


def test_ledger_can_be_read_while_a_batch_is_written(tmp_path: Path) -> None:
    db = connect(tmp_path / "ledger.db")
    commit(db, fingerprinted(1, 1))
    db.execute("BEGIN IMMEDIATE")
    db.execute("DELETE FROM stories")
    assert stories.read_stored_versions(read(tmp_path / "ledger.db"), [1]).get(1) is not None


def test_ledger_of_newer_schema_is_refused(tmp_path: Path) -> None:
    db = connect(tmp_path / "ledger.db")
    db.execute("PRAGMA user_version = 99")
    for open_connection in (connect, read):
        with pytest.raises(Fatal, match="newer neardup"):
            open_connection(tmp_path / "ledger.db")


def test_file_that_is_no_ledger_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").write_text("this is not a database, and it is long enough to be looked at\n" * 20)
    with pytest.raises(Fatal, match="cannot open the ledger"):
        connect(tmp_path / "ledger.db")
    with pytest.raises(Fatal, match="neardup backfill"):
        read(tmp_path / "none.db")


@pytest.mark.parametrize("schema", range(1, OLDEST))
def test_ledger_of_trial_version_is_refused(tmp_path: Path, schema: int) -> None:
    path = tmp_path / "ledger.db"
    with closing(connect(path)) as db:
        commit(db, fingerprinted(1, 1))
        db.execute(f"PRAGMA user_version = {schema}")
    before = path.read_bytes()
    for opening in (connect, read):
        with pytest.raises(Fatal, match=rf"\(schema {schema}, .* {OLDEST}\): move it away and run `neardup backfill`$"):
            opening(path)
    assert path.read_bytes() == before, "what it holds is lost"


def test_reading_many_known_stories_equals_reading_each(db: sqlite3.Connection) -> None:
    commit(db, *(fingerprinted(n, n, language) for n, language in enumerate(LANGUAGES)))
    one_by_one = {n: stories.read_stored_versions(db, [n]).get(n) for n in range(len(LANGUAGES))}
    assert stories.read_stored_versions(db, [*range(len(LANGUAGES)), 99]) == one_by_one


def test_unchanged_metadata_is_not_written(db: sqlite3.Connection) -> None:
    commit(db, fingerprinted(1, 1))
    again = Skipped(fingerprinted(1, 1).story, Skip.UNCHANGED)
    before = db.total_changes
    stories.update(db, [again, replace(again, etag='"e"')])
    assert db.total_changes == before
    stories.update(db, [replace(again, etag='"f"')])
    assert db.total_changes == before + 1


@pytest.mark.parametrize("open_connection", [connect, read])
async def test_closing_waits_for_the_current_call(
    open_connection: Callable[[Path], sqlite3.Connection], tmp_path: Path
) -> None:
    """SQLite does not survive a file that is closed while it is read."""
    connect(tmp_path / "ledger.db").close()
    ledger, begun, go = Ledger(tmp_path / "ledger.db", open_connection), threading.Event(), threading.Event()
    ended = []

    def call(db: sqlite3.Connection) -> None:
        begun.set()
        go.wait()
        ended.append(db.execute("SELECT count(*) FROM stories").fetchone())

    calling = asyncio.create_task(ledger.do(call))
    await asyncio.to_thread(begun.wait)
    calling.cancel()
    closing = asyncio.create_task(asyncio.to_thread(ledger.close))
    await asyncio.wait([calling])
    go.set()
    await closing
    assert ended == [(0,)]


def test_a_command_waits_for_the_upkeep_of_submissions_and_for_nothing_else(tmp_path: Path) -> None:
    ledger, held, release = tmp_path / "l.db", threading.Event(), threading.Event()

    def hold(command: str) -> None:
        with lock.only_one(ledger, command):
            held.set()
            release.wait()

    keeping_up = threading.Thread(target=hold, args=(lock.SERVE,))
    keeping_up.start()
    held.wait()
    timer = threading.Timer(2 * lock.INSTANT_SECONDS, release.set)
    timer.start()
    with lock.only_one(ledger, "daily"):
        holder = lock.read_holder(ledger)
        assert holder is not None and holder["command"] == "daily"
        with pytest.raises(Transient, match="neardup daily"), lock.only_one(ledger, "sweep"):
            pass
    keeping_up.join()
    timer.join()
