"""A soak test: a backfill and a burst of new stories in real processes, with faults injected throughout.

    python -m tests.faults.test_soak [STORIES]

Four fifths of the stories are backfilled, and one daily run takes in the rest.  Meanwhile a share of the store's
answers fails, Redis has one fault after another, and the process is killed several times; dead letters are retried
once the faults have ended.  Every 50th story is a copy, so the expected flags are known.
"""

import csv
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from zlib import crc32

from msgspec import Struct, field
from neardup.errors import NeardupError, Transient
from neardup.ledger import read

from tests.support.command import Neardup
from tests.support.faults.bed import BUCKET, configuration
from tests.support.faults.consistency import exported_pairs, index_faults
from tests.support.faults.fault_proxy import Fault, InjectedFault, Proxy, find_messages, proxied
from tests.support.faults.fault_table import Row, Said, find_crashed, make_row, table
from tests.support.faults.redis_faults import FAULTS, OtherPassword, RedisServer
from tests.support.forked_command import ForkedProcess
from tests.support.languages import SAMPLED
from tests.support.resource_meter import pss_mb_of_all
from tests.support.s3_server import object_server

COPY_EVERY, COPY_OF = 50, 25  # the original of a copy comes COPY_OF stories before it
WORDS, VOCABULARY = 100, 20_000


def write_stories(folder: Path, count: int) -> list[dict[str, str]]:
    """Write `count` pages below a folder; returns the rows of their manifest."""
    rng = random.Random(count)
    vocabulary = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9))) for _ in range(VOCABULARY)]
    for name in SAMPLED:
        (folder / name).mkdir(parents=True)
    rows: list[dict[str, str]] = []
    texts: list[str] = []
    for n in range(count):
        copy = n % COPY_EVERY == COPY_EVERY - 1
        text = texts[n - COPY_OF] if copy else " ".join(rng.choices(vocabulary, k=WORDS))
        texts.append(text)
        language = rows[n - COPY_OF]["language"] if copy else str(SAMPLED[n % len(SAMPLED)])
        path = f"{language}/{n + 1}.html"
        (folder / path).write_text(f'<article><div class="story"><p>{text}</p></div></article>', encoding="ascii")
        updated_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_700_000_000 + n))
        rows.append({"id": str(n + 1), "language": language, "title": f"Story {n + 1}", "updated_at": updated_at})
    return rows


def expected_pairs(count: int) -> set[tuple[int, int]]:
    """The pairs (copy, original) among `count` stories."""
    return {(n + 1, n + 1 - COPY_OF) for n in range(COPY_EVERY - 1, count, COPY_EVERY)}


STORIES = 500_000
BACKFILLED = 0.8
FAULT_EVERY = 100  # answers of the store
SILENCE_EVERY = 50_000  # answers; each silence costs a timeout of half a minute
DEAD_LETTER_EVERY = 2_000  # stories; the page of one fails until the faults have ended
TRANSIENT = (Fault.INTERNAL, Fault.SLOW_DOWN, Fault.TRUNCATED, Fault.RESET, Fault.RESET_INSIDE, Fault.WRONG_ETAG)
REDIS_FAULTS = [fault for fault in FAULTS if fault is not OtherPassword]  # a wrong password ends a run that starts
POLL_SECONDS = 0.1  # of the log, during a Redis fault
LONGEST_SILENCE_SECONDS = 60.0  # a run asks Redis for every batch
WAIT_EVENTS = {"run started", "waiting", "no longer waiting"}
TENTHS = 10


class Soaked(Struct):
    """The results of a soak; `memory_mb` is the peak in MiB of the daemon and its children in each tenth of the run."""

    listed: int
    in_flight: int = 0
    held: int = 0
    expected: int = 0
    exported: Counter[tuple[int, int]] = field(default_factory=Counter)
    store: Counter[Fault] = field(default_factory=Counter)
    redis: Counter[str] = field(default_factory=Counter)
    killed: list[tuple[float, float]] = field(default_factory=list)  # when these processes began and ended
    retried: int = 0
    seconds: float = 0.0
    memory_mb: list[float] = field(default_factory=lambda: [0.0] * TENTHS)
    unsaid: list[str] = field(default_factory=list)  # the faults of which nothing was said
    wrong: list[str] = field(default_factory=list)

    @property
    def row(self) -> Row:
        """The row of the fault table."""
        injected = self.store.total() + self.redis.total() + len(self.killed)
        return make_row(
            "soak: store, Redis and kills at once",
            injected,
            Said("trying again, dead letter, waiting, run crashed", injected - len(self.unsaid)),
            in_flight=self.in_flight,
            lost=self.listed - self.held,
            flagged_twice=sum(n - 1 for n in self.exported.values() if n > 1),
        )


def _inject_store_faults(proxy: Proxy) -> None:
    """Make some answers of the store fail; the path and the number of its requests determine the fault."""

    def fault(path: str) -> Fault:
        if crc32(path.encode()) % DEAD_LETTER_EVERY == 0:
            return Fault.INTERNAL
        drawn = crc32(f"{path} {proxy.requests[path]}".encode())
        if drawn % SILENCE_EVERY == 0:
            return Fault.SILENT
        return TRANSIENT[drawn // FAULT_EVERY % len(TRANSIENT)] if drawn % FAULT_EVERY == 0 else Fault.NONE

    proxy.always = fault


def _held(ledger: Path) -> int:
    with suppress(NeardupError, sqlite3.OperationalError), closing(read(ledger)) as db:
        return int(db.execute("SELECT coalesce(sum(stories), 0) FROM languages").fetchone()[0])
    return 0  # the ledger does not exist yet, or has no tables


class _Soak(Struct):
    neardup: Neardup
    soaked: Soaked
    ended: int = 0  # processes
    refused: int = 0  # those that could not start, as Redis was away

    def lines(self) -> list[dict[str, Any]]:
        """The lines of the logs, in their order; the names of the commands happen to ascend."""
        paths = sorted(self.neardup.folder.glob("*.err"))
        lines = (line for path in paths for line in path.read_bytes().splitlines())
        return [json.loads(line) for line in lines if line.startswith(b"{") and line.endswith(b"}")]

    def count_waits(self) -> int:
        """How often a run has said that it waits, or could not start because Redis was away."""
        return [line["event"] for line in self.lines()].count("waiting") + self.refused

    def is_waiting(self) -> bool:
        """Whether a run waits for Redis now; another fault would make its wait longer, without another line."""
        events = [line["event"] for line in self.lines() if line["event"] in WAIT_EVENTS]
        return events[-1:] == ["waiting"]

    def run(self, command: str, upto: int, kills: int) -> None:
        """Run a command until it completes, and kill it `kills` times before the ledger holds `upto` stories."""
        begun = _held(self.neardup.ledger)
        marks = [begun + (upto - begun) * (n + 1) // (kills + 1) for n in range(kills)]
        out, err = (self.neardup.folder / f"{command}.{kind}" for kind in ("out", "err"))
        while True:
            began = time.monotonic()
            with (
                out.open("wb") as stdout,
                err.open("ab") as stderr,
                self.neardup.start(command, "--json", env={}, output=stdout, errors=stderr) as process,
            ):
                was_killed = self._watched(process, marks)
            self.refused += process.returncode == Transient.exit_code
            self.ended += 1
            if was_killed:
                self.soaked.killed.append((began, time.monotonic()))
                continue
            if process.returncode == Transient.exit_code:  # systemd would restart it
                continue
            if process.returncode:
                self.soaked.wrong.append(f"{command} ended with {process.returncode}")
                return
            facts = json.loads(out.read_text(encoding="utf-8").splitlines()[-1])
            counted = facts["fingerprinted"] + sum(facts["skipped"].values()) + sum(facts["dead_lettered"].values())
            if counted != facts["listed"]:
                self.soaked.wrong.append(f"{command} listed {facts['listed']} but counts {counted} outcomes")
            return

    def _watched(self, process: ForkedProcess, marks: list[int]) -> bool:
        """Wait for the process to end; returns whether it was killed at the first of the marks."""
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.5)
            held = _held(self.neardup.ledger)
            tenth = min(held * TENTHS // self.soaked.listed, TENTHS - 1)
            self.soaked.memory_mb[tenth] = max(self.soaked.memory_mb[tenth], pss_mb_of_all(process.pid))
            if marks and held >= marks[0] and process.poll() is None:
                marks.pop(0)
                process.send_signal(signal.SIGKILL)
                process.wait()
                self.soaked.in_flight += self._in_flight()
                return True
        return False

    def _in_flight(self) -> int:
        """The number of stories that were being read when the process died."""
        path = self.neardup.ledger.with_name("neardup.db.reading")
        if not path.exists():  # it died before or after reading stories
            return 0
        words = memoryview(path.read_bytes()).cast("Q")
        return sum(slot > 0 for slot in words[1::2])

    def export(self) -> None:
        ended = self.neardup("export", "--new", "--format", "jsonl")
        assert ended.code == 0, ended.err
        self.soaked.exported += Counter((max(pair), min(pair)) for pair in exported_pairs(ended.out).elements())


@contextmanager
def _redis_faults(work: "_Soak", server: RedisServer, every: float) -> Iterator[None]:
    """Inject one Redis fault after another, each `every` seconds after the last, once the run has made progress.

    A fault lasts until the run says that it waits for Redis, or ends before it has asked Redis.
    """
    ended = threading.Event()

    def inject_faults() -> None:
        n, held = 0, -1
        while not ended.wait(every):
            if held == (held := _held(work.neardup.ledger)) or work.is_waiting():  # rebuilding takes a while
                continue
            fault = REDIS_FAULTS[n % len(REDIS_FAULTS)]()
            n += 1
            fault.prepare(server)
            waits, processes = work.count_waits(), work.ended
            fault.inject(server)
            latest = time.monotonic() + LONGEST_SILENCE_SECONDS
            while not (said := work.count_waits() > waits) and work.ended == processes and not ended.wait(POLL_SECONDS):
                if time.monotonic() > latest:
                    work.soaked.unsaid.append(f"Redis: {fault.label}")
                    break
            fault.repair(server)
            work.soaked.redis[fault.label] += said or time.monotonic() > latest
            held = _held(work.neardup.ledger)

    with ThreadPoolExecutor(1, "redis faults") as thread:
        injecting = thread.submit(inject_faults)
        try:
            yield
        finally:
            ended.set()
        injecting.result()


def soak(folder: Path, count: int, *, kills: int, redis_every: float) -> Soaked:
    """Soak a new ledger, with `kills` kills and `redis_every` seconds between two Redis faults."""
    rows = write_stories(folder / "stories", count)
    soaked, first = Soaked(count, expected=len(expected_pairs(count))), int(count * BACKFILLED)
    server = RedisServer(folder / "redis")
    try:
        with object_server(folder / "stories", BUCKET) as endpoint, proxied(endpoint) as proxy:
            env = {key: value for key, value in os.environ.items() if not key.startswith(("NEARDUP_", "AWS_"))}
            env |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
            neardup, manifest = Neardup(folder, env), folder / "manifest.csv"
            neardup.configure(configuration(proxy.endpoint, manifest, server.url))
            work, began = _Soak(neardup, soaked), time.monotonic()
            _inject_store_faults(proxy)
            with _redis_faults(work, server, redis_every):
                for command, upto, share in (("backfill", first, kills - kills // 4), ("daily", count, kills // 4)):
                    _write_manifest(manifest, rows[:upto])
                    work.run(command, upto, share)
                    work.export()
            soaked.store = Counter(fault.kind for fault in proxy.injected)
            proxy.plan({})
            before = _held(neardup.ledger)
            work.run("retry", count, 0)
            work.export()
            soaked.seconds = time.monotonic() - began
            soaked.held = _held(neardup.ledger)
            soaked.retried = soaked.held - before
            soaked.unsaid += _list_unsaid(proxy.injected, find_messages(work.lines()), soaked.killed)
            soaked.unsaid += ["a kill"] * (len(soaked.killed) - find_crashed(neardup.ledger, len(soaked.killed)).faults)
            _compare(work, server.url)
    finally:
        server.stop()
    return soaked


def _list_unsaid(
    injected: Sequence[InjectedFault], messages: Sequence[str], killed: Sequence[tuple[float, float]]
) -> list[str]:
    """The faults of the store that no message with the path speaks of, nor a kill before there could be one."""
    by_path = defaultdict[str, list[InjectedFault]](list)
    for fault in injected:
        by_path[fault.path].append(fault)
    unsaid = list[str]()
    for path, faults in by_path.items():
        found = [message for message in messages if path in message]
        cut_off = sum(any(began <= fault.time <= ended for fault in faults) for began, ended in killed)
        kinds = [fault.kind.value for fault in faults]
        unsaid += [f"{path}: {kinds}, and only {found}"] * (len(faults) - len(found) - cut_off)
    return unsaid


def _compare(work: _Soak, url: str) -> None:
    soaked, pairs = work.soaked, expected_pairs(work.soaked.listed)
    missing, others = pairs - soaked.exported.keys(), soaked.exported.keys() - pairs
    soaked.wrong += [f"{pair} was not flagged" for pair in missing] + [f"{pair} was flagged" for pair in others]
    if left := work.neardup("dead-letters", "--json").facts["by_reason"]:
        soaked.wrong.append(f"dead letters remain: {left}")
    soaked.wrong += index_faults(work.neardup.ledger, "documented", url)


def _write_manifest(manifest: Path, rows: list[dict[str, str]]) -> None:
    with manifest.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def test_nothing_is_lost_or_flagged_twice(tmp_path: Path, record_row: Callable[[Row], None]) -> None:
    soaked = soak(tmp_path, 1_500, kills=3, redis_every=1.0)
    assert soaked.wrong == []
    assert soaked.held == soaked.listed
    assert soaked.retried > 0, "no dead letter was retried"
    assert (len(soaked.killed), len(soaked.redis) > 1, len(soaked.store) > 4) == (3, True, True), soaked
    assert soaked.unsaid == []
    assert soaked.row.lost == soaked.row.flagged_twice == 0
    record_row(soaked.row)


def main() -> None:
    """Run the soak and print its results."""
    count = int(sys.argv[1]) if sys.argv[1:] else STORIES
    with tempfile.TemporaryDirectory() as folder:
        soaked = soak(Path(folder), count, kills=20, redis_every=20.0)
    sys.stdout.write("\n".join(table([soaked.row])) + "\n")
    for name in ("listed", "held", "expected", "store", "redis", "killed", "retried", "seconds", "memory_mb"):
        sys.stdout.write(f"{name}: {getattr(soaked, name)}\n")
    sys.stdout.write("\n".join(soaked.wrong[:50]) + "\n")
    sys.exit(bool(soaked.wrong or soaked.held != soaked.listed))


if __name__ == "__main__":
    main()
