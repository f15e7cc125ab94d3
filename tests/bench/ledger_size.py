"""Measures the ledger at a given size: bytes per story by table and index, and the cost of its calls per story.

`python -m tests.bench.ledger_size --stories N [--order listing|random] [--folder DIR]`.  The ledger is filled with
synthetic stories by the calls that a run makes, the last stories in batches of a run's size.  Ids and author ids have
16 digits, ETags are MD5 digests, paths are absent, titles have 2 to 6 words and 48 bytes on average (41 in the
samples).  The row "with a busy thread" models a run's event loop: every step of a SQLite statement releases the
interpreter lock and may have to wait for it.  Figures are printed, never asserted.
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
from neardup.config.sections import Run
from neardup.index.redis.client import cut_batches
from neardup.ledger import connect, outbox, read, stories, story_rows, versions
from neardup.records import Skip, Skipped

from tests.support.resource_meter import cpu_seconds, machine, peak_rss_mb
from tests.support.synthetic import FIRST_LISTED_ID, ID_STEP, MICRO, commit, fill, random_stories

BATCH = Run().batch
BATCHES = 40
NEW_STORIES = BATCH * BATCHES
CANDIDATES = 300  # earlier stories that the lookups of a batch nominate
READ_PAGE = 50_000
CRC_INPUT = bytes(20_000)  # long enough for crc32 to release the interpreter lock
SEED = 1

T = TypeVar("T")


def show_bytes(db: sqlite3.Connection, count: int) -> None:
    """Print for the largest tables and indexes, and in total, the bytes of pages, of rows and of free space."""
    click.echo(f"{'bytes per story':38}{'total':>9}{'rows':>9}{'free':>9}")
    rows = db.execute("SELECT name, sum(pgsize), sum(payload), sum(unused) FROM dbstat GROUP BY 1 ORDER BY 2 DESC")
    sizes = {name: [size / count for size in figures] for name, *figures in rows}
    for name in list(sizes)[:3]:
        click.echo(f"  {name:36}" + "".join(f"{size:9.2f}" for size in sizes[name]))
    click.echo(f"  {'total':36}{sum(size for size, *_ in sizes.values()):9.2f}")


def show_cost(name: str, work: Callable[[Sequence[T]], object], batches_of_items: Sequence[Sequence[T]]) -> None:
    """Print the CPU time and the wall time of `work` per item."""
    wall_start, cpu_start = time.perf_counter(), cpu_seconds()
    for batch in batches_of_items:
        work(batch)
    items = sum(map(len, batches_of_items)) / MICRO
    cpu, wall = (cpu_seconds() - cpu_start) / items, (time.perf_counter() - wall_start) / items
    click.echo(f"{name + ', us/story':46}{cpu:9.2f} CPU {wall:9.2f} wall")


def show_reads(path: Path, ids: Sequence[int], new_ids: Sequence[int]) -> None:
    rng = np.random.default_rng(SEED)
    known = [rng.choice(ids, CANDIDATES).tolist() for _ in range(BATCHES)]
    numbers = [rng.integers(1, len(ids), CANDIDATES).tolist() for _ in range(BATCHES)]
    unknown = [*cut_batches(new_ids, BATCH)]
    with closing(read(path)) as db:
        show_cost("stored_versions", lambda batch: stories.read_stored_versions(db, batch), known)
        show_cost("stored_versions, unknown ids", lambda batch: stories.read_stored_versions(db, batch), unknown)
        show_cost(
            "existing_fingerprints, by id", lambda batch: versions.read_existing_fingerprints(db, batch, ()), known
        )
        show_cost(
            "existing_fingerprints, by number",
            lambda batch: versions.read_existing_fingerprints(db, (), batch),
            numbers,
        )
        show_cost("describe", lambda batch: story_rows.describe(db, batch), known)
        pages = [range(at, min(at + READ_PAGE, len(ids))) for at in range(0, len(ids), READ_PAGE)]
        show_cost(
            "fingerprints_after, all", lambda page: versions.list_fingerprints_after(db, page[0], len(page)), pages
        )


def show_writes(path: Path, ids: Sequence[int], new_ids: Sequence[int]) -> None:
    edited_ids = np.random.default_rng(SEED).choice(ids, NEW_STORIES, replace=False).tolist()
    edits, half = [*cut_batches(random_stories(edited_ids, 6), BATCH)], len(new_ids) // 2
    first_half, second_half = (
        [*cut_batches(random_stories(part, seed), BATCH)] for part, seed in ((new_ids[:half], 7), (new_ids[half:], 8))
    )
    with closing(connect(path)) as db:
        show_cost("commit, new stories", lambda batch: commit(db, batch), first_half)
        with busy_thread():
            show_cost("  with a busy thread", lambda batch: commit(db, batch), second_half)
        show_cost("commit, edited stories", lambda batch: commit(db, batch), edits)
        unchanged = [[Skipped(version.story, Skip.UNCHANGED, version.etag) for version in batch] for batch in edits]
        show_cost("commit, unchanged stories", lambda batch: commit(db, batch), unchanged)
        last = outbox.read_last_seq(db)
        seqs = [range(at, at + BATCH) for at in range(last - NEW_STORIES, last, BATCH)]
        show_cost("changes.after, edited stories", lambda part: outbox.list_changes(db, part[0], len(part)), seqs)


@contextmanager
def busy_thread() -> Iterator[None]:
    """Run a second thread that holds the interpreter lock for half a millisecond at a time."""
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            until = time.perf_counter() + 0.0005
            while time.perf_counter() < until:
                pass
            zlib.crc32(CRC_INPUT)  # releases the interpreter lock, as fetching and parsing do

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@click.command()
@click.option("--stories", "count", type=click.IntRange(NEW_STORIES), default=1_000_000, show_default=True)
@click.option(
    "--order", type=click.Choice(["listing", "random"]), default="listing", show_default=True, help="Order of the ids."
)
@click.option("--folder", type=click.Path(path_type=Path, exists=True), help="Where to put the temporary ledger.")
def main(count: int, order: str, folder: Path | None) -> None:
    """Fill a ledger, and print its size and the cost of its calls."""
    all_ids = np.arange(count + NEW_STORIES) * ID_STEP + FIRST_LISTED_ID
    if order == "random":
        np.random.default_rng(SEED).shuffle(all_ids)
    ids, new_ids = all_ids[:count].tolist(), all_ids[count:].tolist()
    click.echo(f"{machine()}; SQLite {sqlite3.sqlite_version}; {count:,} stories, ids in {order} order")
    with TemporaryDirectory(prefix="neardup-bench-", dir=folder) as temporary:
        path = Path(temporary) / "neardup.db"
        with closing(connect(path)) as db:
            fill(db, ids)
            show_bytes(db, count)
        show_reads(path, ids, new_ids)
        show_writes(path, ids, new_ids)
    click.echo(f"peak RSS {peak_rss_mb():.0f} MB")


if __name__ == "__main__":
    main()
