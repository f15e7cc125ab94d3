"""The ledger at a size: bytes a story by table and index, and what its calls cost a story.

`python -m tests.bench.ledger_size --stories N [--order listing|random] [--folder DIR]`.  The ledger is
filled with stories that were never written, by the calls of a run, the last of them in its batches.  Ids
and author ids have 16 digits, ETags are MD5s, paths are none, titles have 2 to 6 words and 48 bytes (the
samples' have 41).  `beside a busy thread` is for a run's event loop: every step of a statement lets go of
the interpreter, and may wait to have it back.  Figures are printed, never asserted.
"""

import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import click
import numpy as np
from neardup.index.redis.commands import batches
from neardup.ledger import changes, connect, fingerprint_arrays, read, stories
from neardup.records import Skip, Skipped

from tests.support.module_process import machine
from tests.support.resource_meter import cpu_seconds, peak_rss_mb
from tests.support.synthetic_stories import (
    FIRST_ID,
    ID_STEP,
    MICRO,
    commit,
    draw,
    fill,
)

BATCH = 256  # as a run's
BATCHES = 40
FRESH = BATCH * BATCHES  # stories that are committed by and by
BESIDE = 300  # earlier stories that a batch of lookups brings up
READ_PAGE = 50_000
PAGE = bytes(20_000)  # long enough for its checksum to be made without the interpreter
SEED = 1

T = TypeVar("T")


def show_bytes(db: sqlite3.Connection, count: int) -> None:
    """By table and index: all bytes, those of the rows, those that are free in the pages."""
    click.echo(f"{'bytes a story':38}{'all':>9}{'rows':>9}{'free':>9}")
    rows = db.execute("SELECT name, sum(pgsize), sum(payload), sum(unused) FROM dbstat GROUP BY 1 ORDER BY 2 DESC")
    sizes = {name: [size / count for size in of] for name, *of in rows}
    for name in list(sizes)[:3]:
        click.echo(f"  {name:36}" + "".join(f"{size:9.2f}" for size in sizes[name]))
    click.echo(f"  {'all':36}{sum(size for size, *_ in sizes.values()):9.2f}")


def show_cost(name: str, work: Callable[[Sequence[T]], object], given: Sequence[Sequence[T]]) -> None:
    """What each of the items given takes, in CPU and on the clock."""
    began, spent = time.perf_counter(), cpu_seconds()
    for portion in given:
        work(portion)
    items = sum(map(len, given)) / MICRO
    cpu, wall = (cpu_seconds() - spent) / items, (time.perf_counter() - began) / items
    click.echo(f"{name + ', us a story':42}{cpu:9.2f} CPU {wall:9.2f} wall")


def show_reads(path: Path, ids: Sequence[int], fresh: Sequence[int]) -> None:
    rng = np.random.default_rng(SEED)
    some = [rng.choice(ids, BESIDE).tolist() for _ in range(BATCHES)]
    numbers = [rng.integers(1, len(ids), BESIDE).tolist() for _ in range(BATCHES)]
    with closing(read(path)) as db:
        show_cost("known_many", lambda portion: stories.known_many(db, portion), some)
        show_cost("known_many, not there", lambda portion: stories.known_many(db, portion), [*batches(fresh, BATCH)])
        show_cost("held by id", lambda portion: fingerprint_arrays.held(db, portion, ()), some)
        show_cost("held by number", lambda portion: fingerprint_arrays.held(db, (), portion), numbers)
        show_cost("describe", lambda portion: stories.describe(db, portion), some)
        pages = [range(at, min(at + READ_PAGE, len(ids))) for at in range(0, len(ids), READ_PAGE)]
        show_cost("columns.after, all", lambda page: fingerprint_arrays.after(db, page[0], len(page)), pages)


def show_writes(path: Path, ids: Sequence[int], fresh: Sequence[int]) -> None:
    old = np.random.default_rng(SEED).choice(ids, FRESH, replace=False).tolist()
    edits, half = [*batches(draw(old, 6), BATCH)], len(fresh) // 2
    with closing(connect(path)) as db:
        show_cost("commit, fresh", lambda batch: commit(db, batch), [*batches(draw(fresh[:half], 7), BATCH)])
        with busy_thread():
            show_cost(
                "  beside a busy thread", lambda batch: commit(db, batch), [*batches(draw(fresh[half:], 8), BATCH)]
            )
        show_cost("commit, edited", lambda batch: commit(db, batch), edits)
        again = [[Skipped(one.story, Skip.UNCHANGED, one.etag) for one in batch] for batch in edits]
        show_cost("commit, unchanged", lambda batch: commit(db, batch), again)
        last = changes.last_seq(db)
        seqs = [range(at, at + BATCH) for at in range(last - FRESH, last, BATCH)]
        show_cost("changes.after, edited", lambda part: changes.after(db, part[0], len(part)), seqs)


@contextmanager
def busy_thread() -> Iterator[None]:
    """Another thread that computes, half a millisecond at a time."""
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            until = time.perf_counter() + 0.0005
            while time.perf_counter() < until:
                pass
            zlib.crc32(PAGE)  # lets go of the interpreter, as a thread does that parses and fetches

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@click.command()
@click.option("--stories", "count", default=1_000_000, show_default=True)
@click.option("--order", type=click.Choice(["listing", "random"]), default="listing", show_default=True, help="Of ids.")
@click.option("--folder", type=click.Path(path_type=Path, exists=True), help="For the ledger while it is measured.")
def main(count: int, order: str, folder: Path | None) -> None:
    """Fill a ledger, and show what it takes."""
    drawn = np.arange(count + FRESH) * ID_STEP + FIRST_ID
    if order == "random":
        np.random.default_rng(SEED).shuffle(drawn)
    ids, fresh = drawn[:count].tolist(), drawn[count:].tolist()
    click.echo(f"{machine()}; SQLite {sqlite3.sqlite_version}; {count:,} stories, ids in {order} order")
    with TemporaryDirectory(prefix="neardup-bench-", dir=folder) as temporary:
        path = Path(temporary) / "neardup.db"
        with closing(connect(path)) as db:
            fill(db, ids)
            show_bytes(db, count)
        show_reads(path, ids, fresh)
        show_writes(path, ids, fresh)
    click.echo(f"peak RSS {peak_rss_mb():.0f} MB")


if __name__ == "__main__":
    main()
