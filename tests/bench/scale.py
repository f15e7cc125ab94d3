"""`make bench-scale`: ledger and indexes at full size, 15.8 million synthetic stories, or at a part of it.

The ledger is filled to a sixteenth, to a quarter and to all of the size.  Each time the sweep is measured,
then index by index: built from the ledger, its bytes, lookups of strangers and of planted copies, inserts,
and what a daily run does of new stories.  Each is measured in a process of its own, beside a Redis on the
same machine; SQLite's index has a file of its own, so that its bytes can be told from the ledger's.  The
documented layout takes the longest, and is left out at the quarter; uniform stories are measured there alone.
Figures are printed, never asserted.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TextIO

import click
import numpy as np
import redis
from neardup.core.candidates.fingerprint_arrays import FingerprintArrays
from neardup.ledger import connect, fingerprint_arrays, read
from neardup.records import Fingerprinted

from tests.bench import scale_bytes, scale_lookups, scale_report, scale_stages
from tests.bench.ledger_size import BATCH
from tests.bench.scale_corpus import ALL, Corpus
from tests.bench.scale_lookups import Lookups
from tests.bench.scale_stages import INDEXES, LAYOUTS, Bed, Figures, alone
from tests.support.module_process import machine
from tests.support.servers import redis_server
from tests.support.synthetic_stories import commit

SWEEP = "sweep"
PARTS = (SWEEP, *INDEXES)
PLAN: dict[str, dict[int, Sequence[str]]] = {  # at which parts of the size what is measured
    "prose": {16: PARTS, 4: (SWEEP, "compact", "sqlite"), 1: PARTS},
    "uniform": {4: LAYOUTS},
}
FEWEST = 5000
MOST, SHARE = 10_000, 16  # so many stories are looked up or come in, or such a share of those that are there
CONF = Path(__file__).parents[2] / "deploy" / "redis.conf"
MEMORY = ("set-max-", "hash-max-", "list-max-", "active", "lazyfree-", "hz ")  # settings that decide about bytes

Stories = Sequence[Fingerprinted]


def measure(folder: Path, kind: str, size: int, only: Sequence[str]) -> Iterator[Figures]:
    """What the ledger and the indexes show at each step towards a size."""
    corpus, ledger = Corpus(kind), folder / "neardup.db"
    for step, all_parts in PLAN[kind].items():
        if not (parts := [part for part in all_parts if part in only]):
            continue
        stories = fill(ledger, corpus, size // step)
        click.echo(f"{kind}: {stories:,} stories", err=True)
        figures: Figures = {"kind": kind, "stories": stories, "ledger": scale_bytes.of_ledger(ledger)}
        if SWEEP in parts:
            figures[SWEEP] = alone(scale_stages.sweep, Bed(ledger))
        few = min(MOST, stories // SHARE)
        probes = corpus.probes(sample(ledger, stories, few))
        indexes = [part for part in parts if part != SWEEP]
        coming = corpus.take(2 * few * len(indexes))
        for nth, name in enumerate(indexes):
            click.echo(f"  {name}", err=True)
            start = 2 * few * nth
            mine = coming[start : start + few], coming[start + few : start + 2 * few]
            figures[name] = _of_index(folder, name, Lookups(probes, stories), *mine)
        yield figures


def _of_index(folder: Path, name: str, lookups: Lookups, inserted: Stories, daily: Stories) -> Figures:
    with index(folder, name) as (bed, client):
        empty = scale_bytes.used(client) if client else 0
        built = alone(scale_stages.reindex, bed)
        return {
            "reindex": built,
            "bytes": scale_bytes.of_redis(client, empty) if client else scale_bytes.of_sqlite(bed.file),
            "look_up": alone(scale_lookups.look_up, bed, lookups),
            "insert": alone(scale_stages.insert, bed, inserted),
            "daily": alone(scale_stages.daily, bed, daily),
        }


def fill(ledger: Path, corpus: Corpus, upto: int) -> int:
    """Fill the ledger up to so many stories; how many it has."""
    with closing(connect(ledger)) as db:
        for page in corpus.pages(max(upto - corpus.given, 0)):
            commit(db, page)
    return corpus.given


def sample(ledger: Path, stories: int, size: int) -> FingerprintArrays:
    """So many of the ledger's stories, or a few less."""
    numbers = np.random.default_rng(size).integers(1, stories + 1, size)
    with closing(read(ledger)) as db:
        return fingerprint_arrays.held(db, (), np.unique(numbers).tolist())


@contextmanager
def index(folder: Path, name: str) -> Iterator[tuple[Bed, redis.Redis | None]]:
    """One of the indexes, empty, and a client of the Redis that holds it."""
    ledger = folder / "neardup.db"
    for layout in LAYOUTS:
        if layout == name:
            with redis_server(folder, *memory_settings()) as url, redis.Redis.from_url(url) as client:
                yield Bed(ledger, layout, url), client
            return
    bed = Bed(ledger)
    yield bed, None
    bed.file.unlink()


def memory_settings() -> list[str]:
    """As a server's arguments what deploy/redis.conf sets, but for its limit."""
    settings = [line.split() for line in CONF.read_text(encoding="utf-8").splitlines() if line.startswith(MEMORY)]
    return [word for name, value in settings for word in (f"--{name}", value)]


class Size(click.ParamType[int]):
    """A number of stories, or the part of the platform's that a fraction tells."""

    name = "size"

    def convert(self, value: str, param: click.Parameter | None, context: click.Context | None) -> int:
        try:
            stories = round(ALL * Fraction(value)) if "/" in value else int(value)
        except (ValueError, ZeroDivisionError):
            self.fail(f"{value!r} is neither a number nor a fraction", param, context)
        if stories < FEWEST:
            self.fail(f"{stories:,} stories are too few, {FEWEST:,} is the least", param, context)
        return stories


@click.command()
@click.option("--size", default="1/1", show_default=True, type=Size(), help="Stories, or a fraction of 15.8 million.")
@click.option("--only", multiple=True, type=click.Choice([*PLAN, *PARTS]), help="Leave out the others.")
@click.option("--json", "into", type=click.File("w"), is_flag=False, flag_value="-", help="Figures, for a program.")
def main(size: int, only: Sequence[str], into: TextIO | None) -> None:
    """Measure ledger, sweep and indexes with synthetic stories, as uneven as prose and uniform ones.

    All of it takes 15 GB of disk, where TMPDIR says, and 12 GB of memory.
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
