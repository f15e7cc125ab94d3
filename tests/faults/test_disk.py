"""A full, small or read-only disk: one clear error line, nothing lost, and the next run ends as if undisturbed.

CHAOS=N fills the disk at N times as many sizes.

A disk that fails or becomes read-only: one line that names the file, and the next run ends as if undisturbed.

CHAOS=N lets N times as many calls fail.
"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from neardup.errors import Fatal
from neardup.ledger import connect, files, runs, schema, transaction
from neardup.pipeline.quarantine import InFlight

from tests.support.command import Ended, Neardup, embedded
from tests.support.faults.fault_table import AssertSameState, Row, find_said, make_row
from tests.support.faults.small_disks import Disk, mounted
from tests.support.generated_stories import configuration, generate
from tests.support.moderated_samples import lay_out_oldest
from tests.support.paths import ROOT
from tests.support.samples import state
from tests.support.sampling import CHAOS
from tests.support.servers import free_port
from tests.support.service import Systemd, get

STORIES = 600
LEAST_KIB, MOST_KIB = 500, 1700  # the disk is full while the tables are made, or at some batch
SIZES_KIB = [LEAST_KIB + (MOST_KIB - LEAST_KIB) * n // (3 * CHAOS) for n in range(3 * CHAOS)]
IMPATIENT = (
    "from datetime import timedelta; from neardup.ops import service;"
    " service.RETRY_FIRST = timedelta(seconds=0.2); from neardup.cli import main; main()"
)
COMMITS = 50
COMMITTING = f"""
import sys
from pathlib import Path
from neardup.ledger import connect, runs
db = connect(Path(sys.argv[1]))
for n in range({COMMITS}):
    runs.put(db, "n", str(n))
"""
Make = Callable[..., Neardup]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    generate(folder, STORIES)
    return folder


def test_a_full_disk_is_named_also_to_those_who_only_read(corpus: Path, tmp_path: Path, make_neardup: Make) -> None:
    """To read a ledger, SQLite makes a file beside it."""
    neardup = make_neardup(configuration(corpus))
    with mounted(tmp_path / "disk", "2m") as disk:
        ledger = disk.folder / "neardup.db"
        connect(ledger).close()
        with (disk.folder / "filling").open("wb", buffering=0) as filling, suppress(OSError):
            while True:
                filling.write(bytes(4096))
        ended = neardup("export", "--format", "csv", NEARDUP_LEDGER__PATH=str(ledger))
    assert_one_error_line(ended, "its disk is full; free some disk space")


@pytest.fixture(scope="module")
def undisturbed(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[object, ...]]]:
    neardup = Neardup(tmp_path_factory.mktemp("undisturbed"), dict(os.environ))
    neardup.configure(configuration(corpus))
    assert neardup("backfill").code == 0
    return state(neardup)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with mounted(tmp_path / "disk", f"{LEAST_KIB}k") as disk:
        yield disk


def test_a_disk_that_is_full_during_an_upgrade_leaves_the_former_ledger(make_neardup: Make, tmp_path: Path) -> None:
    neardup, ended, failures = make_neardup(""), None, 0
    lay_out_oldest(neardup)
    former = neardup.ledger.read_bytes()
    with mounted(tmp_path / "disk", f"{len(former) // 1024 + 200}k") as disk:
        ledger, filling = disk.folder / "neardup.db", disk.folder / "filling"
        ledger.write_bytes(former)
        neardup.env["NEARDUP_LEDGER__PATH"] = str(ledger)
        for free in range(4, 100, 8):  # KiB
            filling.write_bytes(bytes(os.statvfs(disk.folder).f_bavail * 4096 - free * 1024))
            ended = neardup("forget", "--undo", "1")
            if "the ledger was upgraded" in ended.err:
                break
            assert_one_error_line(ended, "disk is full", "No space left")
            filling.unlink()
            with closing(sqlite3.connect(ledger)) as db:
                assert schema.read_version(db) == schema.OLDEST, f"{free} KiB free: the upgrade is half done"
                assert not files.find_faults(ledger), f"{free} KiB free"
            failures += 1
    assert ended is not None and ended.code == 0 and failures >= 3, f"after {failures} failures: {ended}"


def on_disk(make: Make, corpus: Path, disk: Disk) -> tuple[Neardup, Path]:
    """The command with its ledger on a disk, and the path of that ledger."""
    neardup, ledger = make(configuration(corpus)), disk.folder / "neardup.db"
    neardup.env["NEARDUP_LEDGER__PATH"] = str(ledger)
    neardup.ledger.symlink_to(ledger)  # `state` reads this path
    return neardup, ledger


def assert_one_error_line(ended: Ended, *words: str) -> None:
    """The command failed with one clear line on stderr, after log lines in JSON."""
    *lines, last = ended.err.strip().splitlines()
    assert (ended.code, "Traceback" in ended.err) == (1, False), ended.err
    assert all(json.loads(line) for line in lines)
    assert any(word in last for word in words), last


@pytest.mark.parametrize("kib", SIZES_KIB)
def test_a_full_disk_loses_nothing(  # noqa: PLR0917
    kib: int,
    corpus: Path,
    disk: Disk,
    make_neardup: Make,
    undisturbed: dict[str, list[tuple[object, ...]]],
    assert_same_state: AssertSameState,
) -> None:
    neardup, _ = on_disk(make_neardup, corpus, disk)
    disk.remount(f"size={kib}k")
    full = neardup("backfill")
    assert_one_error_line(full, "disk is full; free some disk space", "No space left on device")
    disk.remount("size=16m")
    again = neardup("backfill", "--json")
    assert again.code == 0, again.err
    words = "disk is full" if "disk is full" in full.err else "No space left on device"
    said = find_said(words, full.err)
    assert_same_state("disk full", 1, again.facts["fingerprinted"], state(neardup), undisturbed, said=said)
    assert neardup("status", "--json").facts["index"]["lag"] == 0


@pytest.mark.parametrize("kib", SIZES_KIB[:2])
def test_a_file_size_limit_loses_nothing(
    kib: int, corpus: Path, make_neardup: Make, undisturbed: dict[str, list[tuple[object, ...]]]
) -> None:
    """As with a full disk, but without mounting one."""
    neardup = make_neardup(configuration(corpus))
    command = ["prlimit", f"--fsize={kib * 1024}", *neardup.command("backfill")]
    full = subprocess.run(command, capture_output=True, text=True, env=neardup.env, cwd=ROOT, check=False)
    assert_one_error_line(Ended(full.returncode, full.stdout, full.stderr), "disk I/O error", "File too large")
    assert neardup("backfill").code == 0
    assert state(neardup) == undisturbed


def test_the_daemon_resumes_when_there_is_room(
    corpus: Path, disk: Disk, make_neardup: Make, undisturbed: dict[str, list[tuple[object, ...]]]
) -> None:
    neardup, _ = on_disk(make_neardup, corpus, disk)
    disk.remount("size=1200k")
    listen, systemd = f"127.0.0.1:{free_port()}", Systemd(neardup.folder / "notify.sock")
    extra = {"NEARDUP_METRICS__LISTEN": listen, "NOTIFY_SOCKET": str(systemd.path)}
    command = [sys.executable, "-c", IMPATIENT, "--config", str(neardup.folder / "config.toml"), "run"]
    with subprocess.Popen(command, env=neardup.env | extra, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        try:
            while "full" not in str(json.loads(get(listen, "healthz")[1])["last_failure"] if systemd.lines else ""):
                systemd.wait_for("STATUS=")
            assert get(listen, "healthz")[0] == 503
            disk.remount("size=16m")
            while get(listen, "healthz")[0] == 503:
                systemd.wait_for("STATUS=")
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
            assert process.stderr is not None
            assert "Traceback" not in process.stderr.read()
        finally:
            process.kill()
            systemd.close()
    assert state(neardup) == undisturbed
    ended = neardup("status", "--json").facts["runs"]
    assert ended.pop(0)["status"] == "done"
    assert {run["status"] for run in ended} <= {"failed", "crashed"}


def test_a_read_only_disk_can_be_read(corpus: Path, disk: Disk, make_neardup: Make) -> None:
    neardup, ledger = on_disk(make_neardup, corpus, disk)
    disk.remount("size=16m")
    assert neardup("backfill").code == 0
    before = ledger.read_bytes()
    disk.remount("ro")
    for command in (["backfill"], ["daily"], ["run"], ["sweep"], ["forget", "1"], ["reindex"]):
        assert_one_error_line(neardup(*command), "read-only", "Read-only")
    assert neardup("status", "--json").facts["stories"] == {"HINDI": STORIES}
    assert len(neardup("compare", "0", "1").out) > 0, "compare needs no write access"
    copy = neardup.folder / "copy.db"
    assert neardup("backup", str(copy)).code == 0, "a backup from a read-only disk failed"
    disk.remount("rw")
    assert ledger.read_bytes() == before
    assert neardup("daily").code == 0


def test_a_full_disk_is_the_reported_error_after_a_rollback(tmp_path: Path) -> None:
    with closing(connect(tmp_path / "neardup.db")) as db:
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        db.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(sqlite3.OperationalError, match="disk is full"), transaction(db):
            db.execute("INSERT INTO meta VALUES ('large', zeroblob(1000000))")
        with transaction(db):
            runs.put(db, "small", "1")


def test_the_in_flight_file_is_allocated_at_the_start(disk: Disk) -> None:
    with pytest.raises(OSError, match="No space left"):
        (disk.folder / "large").write_bytes(bytes(2 * LEAST_KIB * 1024))
    with pytest.raises(Fatal, match="No space left on device"):
        InFlight(disk.folder / "neardup.db", 1000)


def test_each_commit_is_synced(tmp_path: Path) -> None:
    """A power cut loses no commit, provided that the disk honours fsync."""
    trace = tmp_path / "trace"
    command = ["strace", "-f", "-o", str(trace), "-e", "trace=fsync,fdatasync", "-e", "signal=none"]
    command += [sys.executable, "-c", COMMITTING, str(tmp_path / "neardup.db")]
    subprocess.run(command, cwd=ROOT, check=True)
    assert trace.read_text(encoding="utf-8").count("sync(") >= COMMITS


@pytest.mark.parametrize("command", [["backfill"], ["run"], ["status"], ["doctor"], ["backup", "copy.db"], ["export"]])
def test_a_ledger_of_a_newer_neardup_is_not_changed(neardup: Neardup, command: list[str]) -> None:
    db = connect(neardup.ledger)
    db.execute("PRAGMA user_version = 99")
    db.close()
    before = neardup.ledger.read_bytes()
    ended = neardup(*command)
    if command == ["doctor"]:
        assert (ended.code, "written by a newer neardup" in ended.out) == (1, True), ended.out
    else:
        assert_one_error_line(ended, "written by a newer neardup (schema 99")
    assert neardup.ledger.read_bytes() == before


SOURCE = Path(__file__).parents[1] / "support" / "faults" / "failing_disk.c"
LEDGER, LOG, PASSAGES = "neardup.db", "neardup.db-wal", "neardup.db.passages"
# The call that fails, the name of the file, and from which call on
FAILURES = [
    ("write", PASSAGES, 1),
    ("remount", LEDGER, 60),
    ("sync", LOG, 9),
    ("write", LOG, 1),
    ("write", LOG, 60),
    ("write", LOG, 200),
    ("read", LOG, 20),
    ("sync", PASSAGES, 1),
    ("sync", LOG, 3),
    ("sync", LOG, 14),
    ("remount", LEDGER, 1),
    ("remount", LEDGER, 20),
    ("remount", LEDGER, 250),
    ("remount", PASSAGES, 1),
]
CHOSEN = FAILURES[: 2 * CHAOS]


@pytest.fixture(scope="module")
def failing_disk(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library, by which the calls of a process fail."""
    library = tmp_path_factory.mktemp("library") / "failing_disk.so"
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, "-o", library, SOURCE, "-ldl"], check=True)
    return str(library)


@pytest.mark.parametrize(("call", "name", "first"), CHOSEN)
def test_a_failing_disk_is_one_line_and_loses_nothing(  # noqa: PLR0917 - each is a part of its own
    make_neardup: Callable[[str], Neardup],
    failing_disk: str,
    record_row: Callable[[Row], None],
    call: str,
    name: str,
    first: int,
) -> None:
    neardup = make_neardup(embedded())
    env = {"FAILING_CALL": call, "FAILING_PATH": name, "FAILING_FROM": str(first)}
    failed = subprocess.run(
        neardup.command("backfill", "--json"),
        env=os.environ | neardup.env | env | {"LD_PRELOAD": failing_disk},
        cwd=neardup.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    said = failed.stderr.splitlines()[-1]
    assert (failed.returncode, failed.stdout) == (1, ""), failed.stderr
    assert said.startswith("neardup: ") and LEDGER in said, f"the line names no file: {said}"
    assert "Traceback" not in failed.stderr
    whole = neardup("backfill", "--json")
    assert whole.code == 0 and whole.facts["dead_lettered"] == {}
    lost, error = 61 - len(state(neardup)["stories"]), "EROFS" if call == "remount" else "EIO"
    record_row(make_row(f"disk: {call} fails, {error}", 1, find_said(LEDGER, said), in_flight=61, lost=lost))
    assert len(state(neardup)["stories"]) == 61, "stories are lost"
