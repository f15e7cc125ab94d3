"""`neardup backup` writes a consistent snapshot, whatever happens meanwhile, or keeps the previous copy."""

import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from neardup.ledger import connect, files, outbox, read, runs
from neardup.ops.backup import back_up

from tests.faults.test_disk import assert_one_error_line
from tests.support.builders import commit, fingerprinted
from tests.support.command import Neardup, assert_one_line
from tests.support.faults.fault_table import Row, Said, find_said, make_row
from tests.support.faults.small_disks import mounted
from tests.support.generated_stories import configuration, generate
from tests.support.paths import ROOT
from tests.support.samples import state

STORIES = 2_000
STEPS = ["_copy_snapshot", "files.find_faults", "Path.replace", "sync_folder"]  # the steps of a copy
KILLED = """
import os
from neardup.cli import main
from neardup.ops import backup
backup.{step} = lambda *_: os.kill(os.getpid(), 9)
main()
"""
Make = Callable[..., Neardup]


def assert_whole(path: Path) -> int:
    """The file is a sound and consistent snapshot of a ledger; returns the number of its stories."""
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",), "the copy needs a log file"
        [(stories,)] = db.execute("SELECT count(*) FROM stories")
        assert db.execute("SELECT sum(stories) FROM languages").fetchone() == (stories,)
        assert outbox.read_last_seq(db) == stories
        known = "(SELECT id FROM stories)"
        orphans = f"SELECT count(*) FROM candidates WHERE a NOT IN {known} OR b NOT IN {known}"
        assert db.execute(orphans).fetchone() == (0,)
    return int(stories)


def test_a_copy_is_consistent_while_a_run_is_under_way(make_neardup: Make, tmp_path: Path) -> None:
    generate(tmp_path, STORIES)
    undisturbed, neardup = make_neardup(configuration(tmp_path), "undisturbed"), make_neardup(configuration(tmp_path))
    assert undisturbed("backfill").code == 0
    connect(neardup.ledger).close()
    copy, halfway = tmp_path / "copy.db", b""
    with subprocess.Popen(neardup.command("backfill"), env=neardup.env, cwd=ROOT, stdout=subprocess.DEVNULL) as run:
        while run.poll() is None:
            back_up(neardup.ledger, copy)
            if 0 < assert_whole(copy) < STORIES:
                halfway = copy.read_bytes()
        assert run.returncode == 0
    assert halfway, "no copy was made during the run"
    assert state(neardup) == state(undisturbed), "the copies changed the result of the run"
    shutil.rmtree(files.name_passages_folder(neardup.ledger))
    for path in neardup.folder.glob("neardup.db*"):
        path.unlink()
    neardup.ledger.write_bytes(halfway)
    assert neardup("backfill").code == 0
    assert state(neardup) == state(undisturbed), "a run that continued from a copy ended differently"


def test_a_copy_may_have_a_name_that_is_not_utf8(neardup: Neardup) -> None:
    connect(neardup.ledger).close()
    command = neardup.command("backup", "\udcff.db")
    env = neardup.env | {"PYTHONIOENCODING": "utf-8:strict"}  # as in most locales
    done = subprocess.run(command, env=env, cwd=neardup.folder, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.startswith(rb"\udcff.db, "), done.stdout
    assert assert_whole(neardup.folder / "\udcff.db") == 0


def test_later_writes_are_not_in_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, copy, last_seq = tmp_path / "neardup.db", tmp_path / "copy.db", outbox.read_last_seq
    with closing(connect(ledger)) as db:
        commit(db, fingerprinted(1, 1))

        def write_meanwhile(source: sqlite3.Connection) -> int:
            last = last_seq(source)
            monkeypatch.undo()
            commit(db, fingerprinted(2, 2))
            return last

        monkeypatch.setattr(outbox, "read_last_seq", write_meanwhile)
        back_up(ledger, copy)
        assert outbox.read_last_seq(db) == 2
    assert assert_whole(copy) == 1


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_backup_keeps_the_previous_copy(
    step: str, neardup: Neardup, record_row: Callable[[Row], None]
) -> None:
    with closing(connect(neardup.ledger)) as db:
        commit(db, fingerprinted(1, 1))
        copy = neardup.folder / "copy.db"
        assert neardup("backup", str(copy)).code == 0
        commit(db, fingerprinted(2, 2))
    command = [sys.executable, "-c", KILLED.format(step=step), *neardup.command("backup", str(copy))[5:]]
    killed = subprocess.run(command, env=neardup.env, cwd=ROOT, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert assert_whole(copy) == (2 if step == "sync_folder" else 1)
    assert neardup("backup", str(copy), "--json").facts == {"bytes": copy.stat().st_size, "passages": 0}
    assert assert_whole(copy) == 2
    assert sorted(path.name for path in neardup.folder.glob("*copy*")) == ["copy.db"], (
        "the killed backup left files behind"
    )
    record_row(make_row("SIGKILL, backup", 1, Said("exit code -9", int(killed.returncode == -signal.SIGKILL))))


def test_a_backup_without_room_keeps_the_previous_copy(
    neardup: Neardup, tmp_path: Path, record_row: Callable[[Row], None]
) -> None:
    with closing(connect(neardup.ledger)) as db:
        commit(db, fingerprinted(1, 1))
        [(pages,)], [(size,)] = db.execute("PRAGMA page_count"), db.execute("PRAGMA page_size")
        with mounted(tmp_path / "disk", f"{3 * pages * size // 2048}k") as disk:  # for one copy and a half
            copy = disk.folder / "copy.db"
            assert neardup("backup", str(copy)).code == 0
            commit(db, *(fingerprinted(n, n) for n in range(2, STORIES)))
            full = neardup("backup", str(copy))
            assert_one_error_line(full, f"cannot copy the ledger to {copy}: database or disk is full")
            assert assert_whole(copy) == 1
            assert [path.name for path in disk.folder.iterdir()] == ["copy.db"]
    record_row(make_row("backup: disk full", 1, find_said("cannot copy the ledger", full.err)))


def test_a_damaged_ledger_does_not_replace_a_copy(neardup: Neardup, record_row: Callable[[Row], None]) -> None:
    with closing(connect(neardup.ledger)) as db:
        commit(db, *(fingerprinted(n, n) for n in range(1, 500)))
        pages = [
            page for (page,) in db.execute("SELECT pageno FROM dbstat WHERE name = 'stories' AND pagetype = 'leaf'")
        ]
    copy = neardup.folder / "copy.db"
    assert neardup("backup", str(copy)).code == 0
    with neardup.ledger.open("r+b") as file:
        file.seek((pages[1] - 1) * 4096)
        file.write(bytes(4096))
    failed = neardup("backup", str(copy))
    assert_one_error_line(failed, "the copy is damaged")
    assert assert_whole(copy) == 499
    record_row(make_row("backup: a page of the ledger lost", 1, find_said("the copy is damaged", failed.err)))


def test_an_impossible_destination_is_a_wrong_argument(neardup: Neardup, tmp_path: Path) -> None:
    assert_one_line(neardup("backup", "copy.db"), 1, "run `neardup backfill` first")
    connect(neardup.ledger).close()
    for path, words in (
        (tmp_path, "is no regular file"),
        (neardup.ledger, "is the ledger itself"),
        (tmp_path / "nowhere" / "copy.db", "there is no folder"),
    ):
        assert_one_line(neardup("backup", str(path)), 2, words)


def test_the_time_of_the_backup_is_recorded(neardup: Neardup) -> None:
    connect(neardup.ledger).close()
    assert neardup("backup", str(neardup.folder / "copy.db")).code == 0
    with closing(read(neardup.ledger)) as db:
        assert runs.read_last_successes(db).keys() == {"backup"}
