"""`neardup backup` makes a whole copy of one moment, whatever happens meanwhile, or leaves what was there."""

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from neardup.ledger import changes, connect, read, runs
from neardup.ledger.backup import back_up

from tests.faults.test_disk import assert_told
from tests.support.builders import commit, fingerprinted
from tests.support.command import Neardup, assert_one_line
from tests.support.faults.small_disks import mounted
from tests.support.generated_stories import configuration, generate
from tests.support.ledger_state import state
from tests.support.paths import ROOT

STORIES = 2_000
AT = ["_copy", "damage.is_sound", "Path.replace", "_sync"]  # the steps of a copy
KILLED = """
import os
from neardup.cli import main
from neardup.ledger import backup
backup.{step} = lambda *_: os.kill(os.getpid(), 9)
main()
"""
Make = Callable[..., Neardup]


def assert_whole(path: Path) -> int:
    """A ledger of one moment: every page is sound, and what the tables say of each other is so; the stories in it."""
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",), "one file, without a log"
        [(stories,)] = db.execute("SELECT count(*) FROM stories")
        assert db.execute("SELECT sum(stories) FROM languages").fetchone() == (stories,)
        assert changes.last_seq(db) == stories
        known = "(SELECT id FROM stories)"
        strays = f"SELECT count(*) FROM candidates WHERE a NOT IN {known} OR b NOT IN {known}"
        assert db.execute(strays).fetchone() == (0,)
    return int(stories)


def test_a_copy_is_of_one_moment_while_a_run_is_under_way(make_neardup: Make, tmp_path: Path) -> None:
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
    assert halfway, "no copy was made half way"
    assert state(neardup) == state(undisturbed), "the run is not disturbed by it"
    for path in neardup.folder.glob("neardup.db*"):
        path.unlink()
    neardup.ledger.write_bytes(halfway)
    assert neardup("backfill").code == 0
    assert state(neardup) == state(undisturbed), "a copy made half way is gone on from"


def test_what_is_written_meanwhile_is_not_in_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, copy, last_seq = tmp_path / "neardup.db", tmp_path / "copy.db", changes.last_seq
    with closing(connect(ledger)) as db:
        commit(db, fingerprinted(1, 1))

        def meanwhile(source: sqlite3.Connection) -> int:
            last = last_seq(source)
            monkeypatch.undo()
            commit(db, fingerprinted(2, 2))
            return last

        monkeypatch.setattr(changes, "last_seq", meanwhile)
        back_up(ledger, copy)
        assert changes.last_seq(db) == 2
    assert assert_whole(copy) == 1


@pytest.mark.parametrize("step", AT)
def test_a_copy_that_is_killed_leaves_the_one_before(step: str, neardup: Neardup) -> None:
    with closing(connect(neardup.ledger)) as db:
        commit(db, fingerprinted(1, 1))
        copy = neardup.folder / "copy.db"
        assert neardup("backup", str(copy)).code == 0
        commit(db, fingerprinted(2, 2))
    command = [sys.executable, "-c", KILLED.format(step=step), *neardup.command("backup", str(copy))[5:]]
    killed = subprocess.run(command, env=neardup.env, cwd=ROOT, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert assert_whole(copy) == (2 if step == "_sync" else 1)
    assert neardup("backup", str(copy), "--json").facts == {"bytes": copy.stat().st_size}
    assert assert_whole(copy) == 2
    assert sorted(path.name for path in neardup.folder.glob("*copy*")) == ["copy.db"], "nothing is left of the other"


def test_a_copy_for_which_there_is_no_room_leaves_the_one_before(neardup: Neardup, tmp_path: Path) -> None:
    with closing(connect(neardup.ledger)) as db:
        commit(db, fingerprinted(1, 1))
        with mounted(tmp_path / "disk", "300k") as disk:
            copy = disk.folder / "copy.db"
            assert neardup("backup", str(copy)).code == 0
            commit(db, *(fingerprinted(n, n) for n in range(2, STORIES)))
            assert_told(neardup("backup", str(copy)), f"cannot copy the ledger to {copy}: database or disk is full")
            assert assert_whole(copy) == 1
            assert [path.name for path in disk.folder.iterdir()] == ["copy.db"]


def test_a_damaged_ledger_takes_no_good_copys_place(neardup: Neardup) -> None:
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
    assert_told(neardup("backup", str(copy)), "the copy is damaged")
    assert assert_whole(copy) == 499


def test_where_a_copy_cannot_be_is_a_wrong_argument(neardup: Neardup, tmp_path: Path) -> None:
    assert_one_line(neardup("backup", "copy.db"), 1, "run `neardup backfill` first")
    connect(neardup.ledger).close()
    for path, words in (
        (tmp_path, "is no regular file"),
        (neardup.ledger, "is the ledger itself"),
        (tmp_path / "nowhere" / "copy.db", "there is no folder"),
    ):
        assert_one_line(neardup("backup", str(path)), 2, words)


def test_when_it_was_copied_is_on_record(neardup: Neardup) -> None:
    connect(neardup.ledger).close()
    assert neardup("backup", str(neardup.folder / "copy.db")).code == 0
    with closing(read(neardup.ledger)) as db:
        assert runs.last_success(db).keys() == {"backup"}
