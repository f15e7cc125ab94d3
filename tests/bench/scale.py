"""`make bench-scale`: measures ledger and indexes with 15.8 million synthetic stories, or a fraction of them.

The ledger is filled to a sixteenth, a quarter and all of the size.  At each of these steps the benchmark measures the
sweep; then for each index the rebuild from the ledger, the bytes, lookups of unrelated stories and of planted copies,
inserts, and the work of a daily run on new stories.  The passage index is measured on passage hashes of its own.  Each
stage runs in a process of its own; Redis runs on the same machine.  The SQLite index has a file of its own, so its
bytes are not mixed with the ledger's.  The documented layout is the slowest and is not measured at a quarter, except
with uniform stories, which are measured only there.  Figures are printed, never asserted.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from fractions import Fraction
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TextIO

import click
import numpy as np
import redis
from neardup.core.candidates.banding import FingerprintArrays
from neardup.ledger import connect, read, versions
from neardup.records import Fingerprinted

from tests.bench import scale_bytes, scale_lookups, scale_passages, scale_report, scale_stages
from tests.bench.ledger_size import BATCH
from tests.bench.scale_corpus import ALL, Corpus
from tests.bench.scale_lookups import Lookups
from tests.bench.scale_stages import INDEXES, LAYOUTS, Figures, Setup, in_own_process
from tests.support.module_process import machine
from tests.support.servers import redis_server
from tests.support.synthetic_stories import commit

SWEEP, PASSAGES = "sweep", "passages"
PARTS = (SWEEP, PASSAGES, *INDEXES)
PLAN: dict[str, dict[int, Sequence[str]]] = {  # kind of stories -> divisor of the size -> the parts measured there
    "prose": {16: PARTS, 4: (SWEEP, "compact", "sqlite"), 1: PARTS},
    "uniform": {4: LAYOUTS},
}
MIN_SIZE = 5000
MAX_PROBES, PROBE_DIVISOR = 10_000, 16  # a sixteenth of the stories are looked up, inserted and added, at most 10,000
CONF = Path(__file__).parents[2] / "deploy" / "redis.conf"
MEMORY = ("set-max-", "hash-max-", "list-max-", "active", "lazyfree-", "hz ")  # prefixes of settings that affect memory

Stories = Sequence[Fingerprinted]


def measure(folder: Path, kind: str, size: int, only: Sequence[str]) -> Iterator[Figures]:
    """The figures of the ledger and the indexes at each step towards `size` stories."""
    corpus, ledger = Corpus(kind), folder / "neardup.db"
    for divisor, all_parts in PLAN[kind].items():
        if not (parts := [part for part in all_parts if part in only]):
            continue
        stories = fill(ledger, corpus, size // divisor)
        click.echo(f"{kind}: {stories:,} stories", err=True)
        figures: Figures = {"kind": kind, "stories": stories, "ledger": scale_bytes.of_ledger(ledger)}
        if SWEEP in parts:
            figures[SWEEP] = in_own_process(scale_stages.sweep, Setup(ledger))
        if PASSAGES in parts:
            figures[PASSAGES] = scale_passages.measure(ledger, stories)
        count = min(MAX_PROBES, stories // PROBE_DIVISOR)
        probes = corpus.probes(sample(ledger, stories, count))
        indexes = [part for part in parts if part in INDEXES]
        new_stories = iter(corpus.take(2 * count * len(indexes)))
        for name in indexes:
            click.echo(f"  {name}", err=True)
            inserted, daily = list(islice(new_stories, count)), list(islice(new_stories, count))
            figures[name] = _of_index(folder, name, Lookups(probes, stories), inserted, daily)
        yield figures


def _of_index(folder: Path, name: str, lookups: Lookups, inserted: Stories, daily: Stories) -> Figures:
    with empty_index(folder, name) as (setup, client):
        empty = scale_bytes.used_memory(client) if client else 0
        built = in_own_process(scale_stages.reindex, setup)
        return {
            "reindex": built,
            "bytes": scale_bytes.of_redis(client, empty) if client else scale_bytes.of_sqlite(setup.file),
            "look_up": in_own_process(scale_lookups.look_up, setup, lookups),
            "insert": in_own_process(scale_stages.insert, setup, inserted),
            "daily": in_own_process(scale_stages.daily, setup, daily),
        }


def fill(ledger: Path, corpus: Corpus, target: int) -> int:
    """Fill the ledger up to `target` stories; returns how many it has."""
    with closing(connect(ledger)) as db:
        for page in corpus.pages(max(target - corpus.drawn, 0)):
            commit(db, page)
    return corpus.drawn


def sample(ledger: Path, stories: int, size: int) -> FingerprintArrays:
    """About `size` random stories of the ledger: duplicates are dropped."""
    numbers = np.random.default_rng(size).integers(1, stories + 1, size)
    with closing(read(ledger)) as db:
        return versions.read_existing_fingerprints(db, (), np.unique(numbers).tolist())


@contextmanager
def empty_index(folder: Path, name: str) -> Iterator[tuple[Setup, redis.Redis | None]]:
    """One of the INDEXES, empty, and a client of its Redis if it has one."""
    ledger = folder / "neardup.db"
    for layout in LAYOUTS:
        if layout == name:
            with redis_server(folder, *memory_settings()) as url, redis.Redis.from_url(url) as client:
                yield Setup(ledger, layout, url), client
            return
    setup = Setup(ledger)
    yield setup, None
    setup.file.unlink()


def memory_settings() -> list[str]:
    """The settings of deploy/redis.conf that affect memory, as arguments of redis-server; `maxmemory` is not set."""
    settings = [line.split() for line in CONF.read_text(encoding="utf-8").splitlines() if line.startswith(MEMORY)]
    return [word for name, value in settings for word in (f"--{name}", value)]


class Size(click.ParamType[int]):
    """A number of stories, or a fraction of the platform's number."""

    name = "size"

    def convert(self, value: str, param: click.Parameter | None, context: click.Context | None) -> int:
        try:
            stories = round(ALL * Fraction(value)) if "/" in value else int(value)
        except (ValueError, ZeroDivisionError):
            self.fail(f"{value!r} is neither a number nor a fraction", param, context)
        if stories < MIN_SIZE:
            self.fail(f"{stories:,} stories are too few; the minimum is {MIN_SIZE:,}", param, context)
        return stories


@click.command()
@click.option("--size", default="1/1", show_default=True, type=Size(), help="Stories, or a fraction of 15.8 million.")
@click.option("--only", multiple=True, type=click.Choice([*PLAN, *PARTS]), help="Measure these kinds or parts only.")
@click.option("--json", "into", type=click.File("w"), is_flag=False, flag_value="-", help="Write the figures as JSON.")
def main(size: int, only: Sequence[str], into: TextIO | None) -> None:
    """Measure ledger, sweep and indexes with synthetic stories, uniform and as skewed as prose.

    The full size takes 15 GB of disk in TMPDIR and 12 GB of memory.
    """
    kinds = [kind for kind in PLAN if kind in only] or list(PLAN)
    parts = [part for part in PARTS if part in only] or PARTS
    rows: list[Figures] = []
    for kind in kinds:
        with TemporaryDirectory(prefix="neardup-bench-") as folder:
            rows += measure(Path(folder), kind, size, parts)
    click.echo(f"{machine()}; Redis and the client share the cores; one run each, batches of {BATCH}\n")
    scale_report.show(rows)
    if into is not None:
        measured = [row | {"languages": scale_report.by_language(row)} for row in rows]
        click.echo(json.dumps({"machine": machine(), "measured": measured}), into)


if __name__ == "__main__":
    main()
