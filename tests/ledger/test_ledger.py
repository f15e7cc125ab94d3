"""A batch is written whole or not at all, and everything it changes for the index is in the outbox."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from neardup.config import Thresholds
from neardup.core.verify.scores import judge
from neardup.errors import Fatal, Transient
from neardup.ledger import candidates, changes, connect, flags, lock, read, runs, stories, verdicts
from neardup.ledger.schema import MIGRATIONS, UNRELEASED
from neardup.ledger.selection import Selection
from neardup.pipeline.verifier import BEFORE_ALL
from neardup.records import BadRow, Checkpoint, Dead, DeadLettered, Language, Skip, Skipped, Story, Verdict

from tests.support.builders import commit, fingerprinted, verify_pending

HINDI = Language.HINDI


@pytest.fixture
def db(tmp_path: Path) -> sqlite3.Connection:
    return connect(tmp_path / "ledger.db")


def test_a_batch_that_fails_leaves_no_trace(db: sqlite3.Connection) -> None:
    with pytest.raises(TypeError):
        commit(db, fingerprinted(1, 1), pairs={(1, object())})  # type: ignore[arg-type]
    assert stories.known_many(db, [1]).get(1) is None
    assert changes.last_seq(db) == 0


def test_a_text_that_is_gone_takes_its_fingerprint_along(db: sqlite3.Connection) -> None:
    commit(db, fingerprinted(1, 1))
    commit(db, Skipped(Story(1, HINDI), Skip.MISSING))
    assert stories.known_many(db, [1]).get(1) is not None, "a missing object says nothing of the text"
    commit(db, Skipped(Story(1, HINDI), Skip.EMPTY))
    assert stories.known_many(db, [1]).get(1) is None
    assert changes.after(db, 1, 9)[-1].new is None


def test_what_is_told_of_an_unchanged_story_is_kept_up_to_date(db: sqlite3.Connection) -> None:
    commit(db, fingerprinted(1, 1, updated_at=1))
    commit(db, Skipped(Story(1, HINDI, title="new", updated_at=2), Skip.UNCHANGED, '"f"'))
    row = stories.describe(db, [1])[1]
    assert (row["title"], row["updated_at"], row["etag"]) == ("new", 2, '"f"')
    assert changes.last_seq(db) == 1, "nothing changes for the index"


def test_an_edit_withdraws_flags_until_they_are_verified_again(db: sqlite3.Connection) -> None:
    commit(db, fingerprinted(1, 1), fingerprinted(2, 1), pairs={(1, 2)})
    verify_pending(db)
    assert [row["story_id"] for row in flags.select(db)] == [2]
    flags.mark_exported(db, [1])
    commit(db, fingerprinted(2, 0xFFFF))
    assert list(flags.select(db)) == []
    commit(db, fingerprinted(2, 1), pairs={(1, 2)})
    verify_pending(db)
    assert [row["flag_id"] for row in flags.select(db)] == [1], "the flag is the same one, open again"
    assert [row["flag_id"] for row in flags.select(db, Selection(only_new=True))] == [1], "and news again"


def test_a_finding_on_an_old_text_is_not_kept(db: sqlite3.Connection) -> None:
    commit(db, fingerprinted(1, 1), fingerprinted(2, 1), pairs={(1, 2)})
    judged = [(pair, judge(pair, None, None, Thresholds())) for pair in candidates.pending(db, BEFORE_ALL, 9)]
    commit(db, fingerprinted(2, 0xFFFFFF), pairs={(1, 2)})  # edited while the verifier was at work
    assert not flags.decide(db, judged, "v")
    assert candidates.pending_count(db) == 1, "the pair waits to be judged by its new text"


def test_a_pair_of_which_one_has_gone_is_not_nominated(db: sqlite3.Connection) -> None:
    commit(db, fingerprinted(1, 1))
    commit(db, Skipped(Story(1, HINDI), Skip.EMPTY), fingerprinted(2, 1), pairs={(1, 2)})
    assert candidates.pending_count(db) == 0


def test_forget_leaves_nothing(db: sqlite3.Connection) -> None:
    commit(db, fingerprinted(1, 1), fingerprinted(2, 1), pairs={(1, 2)})
    verify_pending(db)
    commit(db, DeadLettered(Story(3, HINDI), Dead.STORE_ERROR, "why"))
    assert all(stories.forget(db, n) for n in (2, 3))
    assert not stories.forget(db, 99)
    assert db.execute("SELECT count(*) FROM flags").fetchone() == (0,)
    assert runs.dead_letters(db) == {}
    assert set(stories.fingerprints(db, [1, 2])) == {1}


def test_a_dead_letter_counts_attempts_and_ends_with_recovery(db: sqlite3.Connection) -> None:
    for _ in range(2):
        commit(
            db,
            DeadLettered(Story(3, HINDI), Dead.STORE_ERROR, "why"),
            DeadLettered(BadRow("row:x", Dead.BAD_ID, "no id"), Dead.BAD_ID, "no id"),
        )
    assert db.execute("SELECT attempts FROM dead_letters ORDER BY key").fetchall() == [(2,), (2,)]
    commit(db, fingerprinted(3, 3))
    assert runs.dead_letters(db) == {"bad_id": 1}


def test_a_run_that_ended_well_moves_the_watermark_forward_only(db: sqlite3.Connection) -> None:
    for status, mark, expected in (("failed", 50, None), ("done", 100, 100), ("done", 70, 100), ("stopped", 900, 100)):
        runs.finish(db, runs.begin(db, "daily"), status, counts={}, watermark=mark)
        assert runs.watermark(db) == expected, status


def test_a_daily_run_does_not_take_a_backfills_checkpoint_away(db: sqlite3.Connection) -> None:
    runs.put_checkpoint(db, Checkpoint("query", 7))
    runs.finish(db, runs.begin(db, "daily"), "done", counts={})
    assert runs.checkpoint(db) == Checkpoint("query", 7)
    runs.finish(db, runs.begin(db, "backfill"), "done", counts={})
    assert runs.checkpoint(db) is None


def test_a_run_that_never_ended_is_marked(db: sqlite3.Connection) -> None:
    runs.begin(db, "backfill")
    runs.begin(db, "daily")
    assert [run["status"] for run in runs.latest(db, 2)] == ["running", "crashed"]


def test_a_second_pipeline_command_is_told_who_is_at_work(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with (
        lock.only_one(path, "backfill"),
        pytest.raises(Transient, match=r"backfill, process [0-9]+, since 20") as caught,
        lock.only_one(path, "daily"),
    ):
        pass
    assert caught.value.exit_code == 75
    assert lock.holder(path) is None


def test_a_lock_that_is_half_written_names_nobody(tmp_path: Path) -> None:
    with lock.only_one(tmp_path / "l.db", "backfill"):
        [path] = tmp_path.glob("l.db?*lock*")
        path.write_text('{"command": "back')
        assert lock.holder(tmp_path / "l.db") == {"command": "another command"}


def test_readers_are_welcome_while_a_batch_is_written(tmp_path: Path) -> None:
    db = connect(tmp_path / "ledger.db")
    commit(db, fingerprinted(1, 1))
    db.execute("BEGIN IMMEDIATE")
    db.execute("DELETE FROM stories")
    assert stories.known_many(read(tmp_path / "ledger.db"), [1]).get(1) is not None


def test_a_ledger_of_a_newer_schema_is_refused(tmp_path: Path) -> None:
    db = connect(tmp_path / "ledger.db")
    db.execute("PRAGMA user_version = 99")
    for opened in (connect, read):
        with pytest.raises(Fatal, match="newer neardup"):
            opened(tmp_path / "ledger.db")


def test_what_is_no_ledger_is_refused_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").write_text("this is not a database, and it is long enough to be looked at\n" * 20)
    with pytest.raises(Fatal, match="cannot open the ledger"):
        connect(tmp_path / "ledger.db")
    with pytest.raises(Fatal, match="neardup backfill"):
        read(tmp_path / "none.db")


@pytest.mark.parametrize("schema", range(1, UNRELEASED + 1))
def test_a_trial_versions_ledger_is_refused_and_left_as_it_is(tmp_path: Path, schema: int) -> None:
    path = tmp_path / "ledger.db"
    connect(path).execute(f"PRAGMA user_version = {schema}")
    for opening in (connect, read):
        with pytest.raises(Fatal, match="move it away"):
            opening(path)


def test_what_is_known_of_many_stories_is_what_is_known_of_each(db: sqlite3.Connection) -> None:
    commit(db, *(fingerprinted(n, n, language) for n, language in enumerate(Language)))
    one_by_one = {n: stories.known_many(db, [n]).get(n) for n in range(len(Language))}
    assert stories.known_many(db, [*range(len(Language)), 99]) == one_by_one


def test_what_is_told_again_of_a_story_is_not_written(db: sqlite3.Connection) -> None:
    commit(db, fingerprinted(1, 1))
    again = Skipped(fingerprinted(1, 1).story, Skip.UNCHANGED)
    before = db.total_changes
    stories._touch(db, [again, replace(again, etag='"e"')])
    assert db.total_changes == before
    stories._touch(db, [replace(again, etag='"f"')])
    assert db.total_changes == before + 1


def test_a_ledger_of_the_schema_before_the_verdicts_is_migrated(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    db = sqlite3.connect(path, isolation_level=None)
    for statement in MIGRATIONS[0].split(";\n"):
        db.execute(statement)
    db.execute(f"PRAGMA user_version = {UNRELEASED + 1}")
    columns = "id, language, simhash, text_hash, words, shingles, author_id"
    story = f"INSERT INTO stories ({columns}) VALUES (?, ?, '', '', 9, 9, 7)"
    db.executemany(story, [(1, 4), (2, 4), (3, 8), (4, 8)])
    flag = (
        "INSERT INTO flags (a, b, kind, hamming, jaccard, containment_a, containment_b, status, flagged_at,"
        " fingerprint_version) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1, 'v')"
    )
    db.execute(flag, (3, 4, "partial", 60, 0.2, 0.25, 0.75, "open"))
    db.execute(flag, (1, 2, "near", 3, None, None, None, "open"))
    db.execute(flag, (1, 99, "exact", 0, 1, 1, 1, "withdrawn"))
    db.close()
    with pytest.raises(Fatal, match="the next run will bring it"):
        read(path)
    db = connect(path)
    assert [
        (row["language"], row["story_id"], row["matched_id"], row["story_author_id"]) for row in flags.select(db)
    ] == [
        ("TAMIL", 2, 1, "7"),
        ("ODIA", 4, 3, "7"),
    ]
    assert flags.count(db, Selection(author="7")) == 2
    assert flags.count(db, Selection(score=0.8)) == flags.count(db, Selection(languages=(Language.TAMIL,))) == 1
    assert flags.count(db, Selection(statuses=())) == 2, "a flag of a story that has gone is on record, and not shown"
    verdicts.judge(db, [1], Verdict.QUOTATION, "", "Asha", verdicts.state(db, [1]))
    connect(path).close()
    assert flags.counts(read(path)) == {"TAMIL": {"near": 1}}
