"""`neardup backup` writes a consistent snapshot, whatever happens meanwhile, or keeps the previous copy.

A copy made of a damaged ledger never replaces a good one, whichever page or index is damaged.

A damaged ledger is refused at the start with advice, and a copy restores it without loss.
"""

import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.errors import Fatal, NeardupError
from neardup.ledger import connect, files, outbox, read, runs
from neardup.ops.backup import back_up

from tests.faults.test_disk import assert_one_error_line
from tests.support.builders import commit, fill_ledger, fingerprinted
from tests.support.command import Neardup, assert_one_line
from tests.support.faults.fault_table import Row, Said, find_said, make_row
from tests.support.faults.small_disks import mounted
from tests.support.generated_stories import configuration, generate
from tests.support.paths import ROOT
from tests.support.samples import state
from tests.support.sampling import count_examples

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


PAGE = 4096
INDEX_PAGES = "pagetype = 'leaf' AND name IN ('candidates_b', 'candidates_pending')"  # full of entries to their end


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed, undamaged ledger."""
    path = tmp_path_factory.mktemp("small") / "ledger.db"
    fill_ledger(path, 1_500, 1200)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged")


def ledger_of(data: bytes, folder: Path) -> Path:
    """A ledger with these bytes, and without the log of the one that was there before."""
    for stale in folder.glob("ledger.db*"):
        stale.unlink()
    path = folder / "ledger.db"
    path.write_bytes(data)
    return path


def pages_of(ledger: Path, which: str) -> list[int]:
    """The numbers of pages; `which` is an SQL filter of dbstat."""
    with closing(sqlite3.connect(ledger)) as db:
        return [number for (number,) in db.execute(f"SELECT pageno FROM dbstat WHERE {which}")]


def flip(path: Path, page: int, rng: random.Random, bits: int) -> None:
    """Flip bits of one page, anywhere in it."""
    with path.open("r+b") as file:
        for _ in range(bits):
            at = (page - 1) * PAGE + rng.randrange(PAGE)
            file.seek(at)
            (byte,) = file.read(1)
            file.seek(at)
            file.write(bytes([byte ^ 1 << rng.randrange(8)]))


def assert_the_copy_is_sound(ledger: Path, copy: Path, previous: bytes) -> None:
    """After a backup the copy is small: the previous one if the backup failed, or a new one."""
    copy.write_bytes(previous)
    failures = []
    try:
        back_up(ledger, copy)
    except NeardupError as error:
        failures = [str(error)]
    assert "\n" not in "".join(failures)
    if failures:
        assert copy.read_bytes() == previous, f"the copy was replaced although the backup failed: {failures}"
    with closing(sqlite3.connect(copy)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)], "a damaged copy replaced a good one"
    assert [path.name for path in copy.parent.glob("*copy*")] == [copy.name], "the backup left files behind"


@settings(max_examples=count_examples(60), deadline=None)
@given(rng=st.randoms(use_true_random=False), bits=st.integers(1, 40), index=st.booleans())
def test_flipped_bits_never_replace_a_good_copy(
    small: Path, folder: Path, rng: random.Random, bits: int, index: bool
) -> None:
    ledger = ledger_of(small.read_bytes(), folder)
    flip(ledger, rng.choice(pages_of(small, INDEX_PAGES if index else "ncell > 0")), rng, bits)
    assert_the_copy_is_sound(ledger, folder / "copy.db", small.read_bytes())


@pytest.mark.parametrize("command", [("status",), ("backup", "copy.db"), ("daily",)], ids=" ".join)
def test_a_definition_that_is_no_text_is_one_line(neardup: Neardup, small: Path, command: tuple[str, ...]) -> None:
    """SQLite quotes a damaged definition in its message, which Python then cannot decode."""
    neardup.ledger.write_bytes(small.read_bytes().replace(b"CREATE TABLE stories", b"CREAT\xd3 TABLE stories"))
    assert_one_error_line(neardup(*command), "malformed database schema", "neardup doctor")
    diagnosis = neardup("doctor")
    assert "malformed database schema; to restore it, stop neardup" in diagnosis.out, diagnosis.err


@settings(max_examples=count_examples(40), deadline=None)
@given(size=st.integers(0, 400_000), zeros=st.booleans())
def test_a_torn_ledger_never_replaces_a_good_copy(small: Path, folder: Path, size: int, zeros: bool) -> None:
    whole = small.read_bytes()
    torn = size % len(whole)
    ledger = ledger_of(whole[:torn] + bytes(len(whole) - torn if zeros else 0), folder)
    assert_the_copy_is_sound(ledger, folder / "copy.db", whole)


@pytest.mark.parametrize("which", range(2))
def test_a_lost_index_entry_is_found_in_the_copy(small: Path, folder: Path, which: int) -> None:
    """SQLite's quick_check does not compare indexes with their tables."""
    previous = small.read_bytes()
    ledger, copy = ledger_of(previous, folder), folder / "copy.db"
    copy.write_bytes(previous)
    page = pages_of(small, INDEX_PAGES)[which]
    with ledger.open("r+b") as file:
        file.seek(page * PAGE - 3)
        (byte,) = file.read(1)
        file.seek(page * PAGE - 3)
        file.write(bytes([byte ^ 1]))
    with pytest.raises(Fatal, match="the copy is damaged"):
        back_up(ledger, copy)
    assert copy.read_bytes() == previous


def test_the_command_says_in_one_line_that_a_copy_is_damaged(
    neardup: Neardup, small: Path, record_row: Callable[[Row], None]
) -> None:
    shutil.copy(small, neardup.ledger)
    copy = neardup.folder / "copy.db"
    assert neardup("backup", str(copy)).code == 0
    previous = copy.read_bytes()
    [first, *_] = pages_of(neardup.ledger, INDEX_PAGES)
    with neardup.ledger.open("r+b") as file:
        file.seek(first * PAGE - 3)
        file.write(b"\x55")
    failed = neardup("backup", str(copy))
    assert_one_error_line(failed, "the copy is damaged", "neardup doctor")
    assert copy.read_bytes() == previous
    record_row(make_row("backup: a bit of the ledger flipped", 1, find_said("the copy is damaged", failed.err)))


PROBES = 16


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed, undamaged ledger."""
    path = tmp_path_factory.mktemp("sound") / "ledger.db"
    fill_ledger(path, 3_000, 2500)
    return path


def copy_of(ledger: Path, folder: Path, which: str = "") -> tuple[Path, int, list[int]]:
    """A copy of a ledger to damage, its page size, and the numbers of its pages; `which` is an SQL filter of dbstat."""
    path = Path(shutil.copy(ledger, folder / "damaged.db"))
    with closing(sqlite3.connect(path)) as db:
        (size,) = db.execute("PRAGMA page_size").fetchone()
        pages = [number for (number,) in db.execute(f"SELECT pageno FROM dbstat {which}")]
    return path, size, pages


def overwrite(path: Path, size: int, page: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(data)


@settings(max_examples=count_examples(60), deadline=None)
@given(rng=st.randoms(use_true_random=False), garbage=st.booleans())
def test_a_lost_page_is_found_at_the_start(sound: Path, folder: Path, rng: random.Random, garbage: bool) -> None:
    path, size, pages = copy_of(sound, folder)
    page = rng.choice(pages)
    overwrite(path, size, page, rng.randbytes(size) if garbage else bytes(size))
    with pytest.raises(Fatal, match="neardup doctor"):
        connect(path)


@settings(max_examples=count_examples(30), deadline=None)
@given(rng=st.randoms(use_true_random=False))
def test_a_lost_stretch_of_a_large_ledger_is_found(sound: Path, folder: Path, rng: random.Random) -> None:
    path, size, pages = copy_of(sound, folder, "WHERE name = 'stories' AND pagetype = 'leaf' ORDER BY path")
    stretch = 2 * len(pages) // PROBES + 1
    first = rng.randrange(len(pages) - stretch)
    for page in pages[first : first + stretch]:
        overwrite(path, size, page, bytes(size))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(files, "SMALL_PAGES", 0)
        patched.setattr(files, "PROBES", PROBES)
        connect(sound).close()
        with pytest.raises(Fatal, match="neardup doctor"):
            connect(path)


@pytest.mark.parametrize("size", [100, 5_000, 100_000])
def test_a_truncated_ledger_is_refused(sound: Path, folder: Path, size: int) -> None:
    path, _, _ = copy_of(sound, folder)
    with path.open("r+b") as file:
        file.truncate(size)
    with pytest.raises(Fatal, match="neardup doctor"):
        connect(path)


def rows_until(corpus: Path, name: str, count: int) -> Path:
    """A manifest of the first `count` stories, each updated a minute after the previous one."""
    head, *lines = (corpus / "manifest.csv").read_text(encoding="utf-8").splitlines()
    path = corpus / name
    rows = [
        f"{story},{language},{published},2026-01-0{2 + n // 1440}T{n // 60 % 24:02}:{n % 60:02}:00Z"
        for n, (story, language, published, _) in enumerate(line.split(",") for line in lines[:count])
    ]
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("index", ["sqlite:", "redis"])
def test_a_copy_replaces_a_damaged_ledger(
    index: str, make_neardup: Make, tmp_path: Path, request: pytest.FixtureRequest, record_row: Callable[[Row], None]
) -> None:
    """With an older ledger and a newer index, the index is rebuilt and the later stories are listed again."""
    url = request.getfixturevalue("redis_url") if index == "redis" else index
    generate(tmp_path, 300)
    some, everything = (rows_until(tmp_path, f"{count}.csv", count) for count in (150, 300))
    undisturbed, neardup = (
        make_neardup(configuration(tmp_path), "undisturbed"),
        make_neardup(configuration(tmp_path, url)),
    )
    assert undisturbed("backfill", NEARDUP_SOURCE__MANIFEST=str(everything)).code == 0
    neardup.env["NEARDUP_SOURCE__MANIFEST"] = str(some)
    copy = neardup.folder / "copy.db"
    assert neardup("backfill").code == 0
    assert neardup("backup", str(copy)).code == 0
    neardup.env["NEARDUP_SOURCE__MANIFEST"] = str(everything)
    assert neardup("daily", "--json").facts["fingerprinted"] == 150

    overwrite(neardup.ledger, 4096, 2, bytes(4096))
    before = neardup.ledger.read_bytes()
    commands = ["daily"], ["sweep"], ["backup", str(copy)], ["export"]
    refused = [neardup(*command) for command in commands]
    for ended in refused:
        assert_one_error_line(ended, "is damaged", "malformed")
    report = neardup("doctor")
    [line] = [line for line in report.out.splitlines() if line.startswith("FAIL ledger")]
    assert (report.code, "to restore it, stop neardup, move" in line) == (1, True), report.out
    assert neardup.ledger.read_bytes() == before, "the damaged ledger was changed"

    for path in neardup.folder.glob("neardup.db*"):
        path.rename(path.with_name(f"damaged-{path.name}"))
    shutil.copy(copy, neardup.ledger)
    restored = neardup("daily", "--json")
    assert restored.code == 0, restored.err
    assert restored.facts["fingerprinted"] == 150, "the later stories were not listed again"
    assert without_index(neardup) == without_index(undisturbed)
    status = neardup("status", "--json").facts["index"]
    assert (status["lag"], status["stories"]) == (0, 300)
    if index == "redis":
        assert "the index has lost data, rebuilding it from the ledger" in restored.err
    said = Said("malformed", sum("malformed" in ended.err for ended in refused))
    lost = 300 - sum(neardup("status", "--json").facts["stories"].values())
    record_row(make_row("ledger: a page lost, restored from a copy", len(commands), said, in_flight=150, lost=lost))


def without_index(neardup: Neardup) -> dict[str, list[tuple[Any, ...]]]:
    """The state without the index: the widths of its buckets depend on the sizes of the languages when it was built."""
    return {name: rows for name, rows in state(neardup).items() if name != "index"}
