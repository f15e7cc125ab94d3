"""A soak: a backfill and a burst of new stories in real processes, with faults injected all along.

    python -m tests.faults.soak [STORIES]

Four fifths of the stories are backfilled, the rest come at once in a daily run.  Meanwhile the store fails at some
of its answers, Redis at one thing after the other, and the process is killed now and then; what was dead-lettered is
retried when all is well again.  Every 50th story is a copy, so the flags are known.
"""

import csv
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

from neardup.errors import NeardupError, Transient
from neardup.ledger import read

from tests.support.command import Neardup
from tests.support.faults.bed import BUCKET, configuration
from tests.support.faults.consistency import given, index_faults
from tests.support.faults.fault_proxy import Fault, Proxy, proxied
from tests.support.faults.fault_table import Row, table
from tests.support.faults.redis_faults import FAULTS, Box, OtherPassword, Slow
from tests.support.faults.soak_stories import expected, write_stories
from tests.support.resource_meter import pss_mb_of_all
from tests.support.s3_server import object_server

STORIES = 500_000
BACKFILLED = 0.8
ONE_FAULT_IN = 100  # answers of the store
ONE_SILENCE_IN = 50_000  # which takes a timeout of half a minute
ONE_LETTER_IN = 2_000  # stories whose page is not to be had before all is well
PASSING = (Fault.INTERNAL, Fault.SLOW_DOWN, Fault.TRUNCATED, Fault.RESET, Fault.RESET_INSIDE, Fault.WRONG_ETAG)
PASSING_OF_REDIS = [fault for fault in FAULTS if fault is not OtherPassword]  # which at a start is somebody's to mend
REDIS_SECONDS = 2.0  # a fault of Redis's lasts
TENTHS = 10


@dataclass(slots=True)
class Soaked:
    """What a soak came to; memory in MiB, of the daemon and its children, at its peak in each tenth of the stories."""

    listed: int
    in_flight: int = 0
    held: int = 0
    expected: int = 0
    given: Counter[tuple[int, int]] = field(default_factory=Counter)
    store: Counter[Fault] = field(default_factory=Counter)
    redis: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    retried: int = 0
    seconds: float = 0.0
    memory_mb: list[float] = field(default_factory=lambda: [0.0] * TENTHS)
    wrong: list[str] = field(default_factory=list)

    def rows(self) -> list[Row]:
        """Its lines of the table."""
        injected = sum(self.store.values()) + sum(self.redis.values()) + self.kills
        twice = sum(n - 1 for n in self.given.values() if n > 1)
        return [
            Row("soak: store, Redis and kills at once", injected, self.in_flight, self.listed - self.held, twice, ())
        ]


def _failing(proxy: Proxy) -> None:
    """From now on some of the store's answers are faults: which, is told by the path and how often it was asked for."""

    def fault(path: str) -> Fault:
        if crc32(path.encode()) % ONE_LETTER_IN == 0:
            return Fault.INTERNAL
        drawn = crc32(f"{path} {proxy.requests[path]}".encode())
        if drawn % ONE_SILENCE_IN == 0:
            return Fault.SILENT
        return PASSING[drawn // ONE_FAULT_IN % len(PASSING)] if drawn % ONE_FAULT_IN == 0 else Fault.NONE

    proxy.always = fault


@contextmanager
def _troubled(box: Box, every: float, told: Counter[str], ledger: Path) -> Iterator[None]:
    """Meanwhile Redis has one fault after the other, each some seconds after the last, when the run goes on again."""
    over = threading.Event()

    def trouble() -> None:
        n, held = 0, -1
        while not over.wait(every):
            if held == (held := _held(ledger)):  # the index of so many stories takes its time to be rebuilt
                continue
            fault = PASSING_OF_REDIS[n % len(PASSING_OF_REDIS)]()
            n += 1
            fault.prepare(box)
            fault.strike(box)
            over.wait(3 * REDIS_SECONDS if isinstance(fault, Slow) else REDIS_SECONDS)
            fault.mend(box)
            told[fault.told] += 1
            held = _held(ledger)

    with ThreadPoolExecutor(1, "trouble") as thread:
        troubling = thread.submit(trouble)
        try:
            yield
        finally:
            over.set()
        troubling.result()


def _held(ledger: Path) -> int:
    with suppress(NeardupError, sqlite3.OperationalError), closing(read(ledger)) as db:
        return int(db.execute("SELECT coalesce(sum(stories), 0) FROM languages").fetchone()[0])
    return 0  # there is none yet, or no more than its file


@dataclass(slots=True)
class _Soak:
    neardup: Neardup
    soaked: Soaked

    def run(self, command: str, upto: int, kills: int) -> None:
        """Run a command to its end, killed so many times on its way to a number of stories."""
        begun = _held(self.neardup.ledger)
        marks = [begun + (upto - begun) * (n + 1) // (kills + 1) for n in range(kills)]
        out, err = (self.neardup.folder / f"{command}.{kind}" for kind in ("out", "err"))
        while True:
            with out.open("w") as stdout, err.open("a") as stderr:
                process = subprocess.Popen(
                    self.neardup.command(command, "--json"),
                    cwd=self.neardup.folder,
                    env=self.neardup.env,
                    stdout=stdout,
                    stderr=stderr,
                )
            if self._watched(process, marks):
                continue
            if process.returncode == Transient.exit_code:  # Redis is away at its start: systemd tries again
                continue
            if process.returncode:
                self.soaked.wrong.append(f"{command} ended with {process.returncode}")
                return
            facts = json.loads(out.read_text(encoding="utf-8").splitlines()[-1])
            told = facts["fingerprinted"] + sum(facts["skipped"].values()) + sum(facts["dead_lettered"].values())
            if told != facts["listed"]:
                self.soaked.wrong.append(f"{command} listed {facts['listed']} and tells of {told}")
            return

    def _watched(self, process: "subprocess.Popen[bytes]", marks: list[int]) -> bool:
        """Until it ends; whether it was killed, at the first of the marks."""
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
                self.soaked.kills += 1
                self.soaked.in_flight += self._in_flight()
                return True
        return False

    def _in_flight(self) -> int:
        """Stories that were being read when it died."""
        path = self.neardup.ledger.with_name("neardup.db.reading")
        if not path.exists():  # it was about to begin, or to end
            return 0
        words = memoryview(path.read_bytes()).cast("Q")
        return sum(who > 0 for who in words[1::2])

    def export(self) -> None:
        ended = self.neardup("export", "--new", "--format", "jsonl")
        assert ended.code == 0, ended.err
        self.soaked.given += Counter((max(pair), min(pair)) for pair in given(ended.out).elements())


def soak(folder: Path, count: int, *, kills: int, redis_every: float) -> Soaked:
    """Soak a ledger of its own, with so many kills, and so many seconds between two faults of Redis."""
    rows = write_stories(folder / "stories", count)
    soaked, first = Soaked(count, expected=len(expected(count))), int(count * BACKFILLED)
    box = Box(folder / "redis")
    try:
        with object_server(folder / "stories", BUCKET) as endpoint, proxied(endpoint) as proxy:
            env = {key: value for key, value in os.environ.items() if not key.startswith(("NEARDUP_", "AWS_"))}
            env |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
            neardup, manifest = Neardup(folder, env), folder / "manifest.csv"
            neardup.configure(configuration(proxy.endpoint, manifest, box.url))
            work, began = _Soak(neardup, soaked), time.monotonic()
            _failing(proxy)
            with _troubled(box, redis_every, soaked.redis, neardup.ledger):
                for command, upto, share in (("backfill", first, kills - kills // 4), ("daily", count, kills // 4)):
                    _list(manifest, rows[:upto])
                    work.run(command, upto, share)
                    work.export()
            soaked.store = Counter({fault: n for fault, n in proxy.injected.items() if fault is not Fault.NONE})
            proxy.plan({})
            before = _held(neardup.ledger)
            work.run("retry", count, 0)
            work.export()
            soaked.seconds = time.monotonic() - began
            soaked.held = _held(neardup.ledger)
            soaked.retried = soaked.held - before
            _compare(work, box.url)
    finally:
        box.stop()
    return soaked


def _compare(work: _Soak, url: str) -> None:
    soaked, pairs = work.soaked, expected(work.soaked.listed)
    missing, others = pairs - soaked.given.keys(), soaked.given.keys() - pairs
    soaked.wrong += [f"{pair} was not flagged" for pair in missing] + [f"{pair} was flagged" for pair in others]
    if left := work.neardup("dead-letters", "--json").facts["by_reason"]:
        soaked.wrong.append(f"dead letters are left: {left}")
    soaked.wrong += index_faults(work.neardup.ledger, "documented", url)


def _list(manifest: Path, rows: list[dict[str, str]]) -> None:
    with manifest.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Soak, and tell."""
    count = int(sys.argv[1]) if sys.argv[1:] else STORIES
    with tempfile.TemporaryDirectory() as folder:
        soaked = soak(Path(folder), count, kills=20, redis_every=20.0)
    sys.stdout.write("\n".join(table(soaked.rows())) + "\n")
    for name in ("listed", "held", "expected", "store", "redis", "kills", "retried", "seconds", "memory_mb"):
        sys.stdout.write(f"{name}: {getattr(soaked, name)}\n")
    sys.stdout.write("\n".join(soaked.wrong[:50]) + "\n")
    sys.exit(bool(soaked.wrong or soaked.held != soaked.listed))


if __name__ == "__main__":
    main()
