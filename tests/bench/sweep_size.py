"""The pairs among many stories of one language, by tier and kind of fingerprints, and reading them from a ledger.

`python -m tests.bench.sweep_size --stories N [LEDGER]`.  A copy is planted for every twentieth story.  Of a
LEDGER all fingerprints are read as a sweep reads them.  Each part runs in a process of its own; figures are
printed, never asserted.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import click
import numpy as np
from neardup.config import Detection
from neardup.core.candidates.all_pairs import Portion, near_pairs
from neardup.core.candidates.top_k import Held, nominated
from neardup.ledger import fingerprint_arrays, read
from neardup.pipeline.sweep import STORIES_A_READ

from tests.bench import report
from tests.support import synthetic
from tests.support.module_process import machine, run_module
from tests.support.resource_meter import cpu_seconds, peak_rss_mb
from tests.support.synthetic import FIRST_ID, LANGUAGE, Source

MODULE = "tests.bench.sweep_size"
SOURCES: dict[str, Callable[[], Source]] = {"uniform": synthetic.uniform, "prose": lambda: synthetic.prose(LANGUAGE)}
COPIES = 0.05
SEED = 1
WARM = 100
DETECTION = Detection()

Find = Callable[[Held], Iterator[Portion]]


def near(held: Held) -> Iterator[Portion]:
    return near_pairs(held.simhashes, DETECTION.hamming, DETECTION.max_bucket)


def both(held: Held) -> Iterator[Portion]:
    return nominated(held, DETECTION.banding(LANGUAGE), DETECTION.of(LANGUAGE).agreeing_rows)


TIERS: dict[str, Find] = {"SimHashes": near, "both": both}


def held_stories(kind: str, count: int) -> Held:
    held = Held.zeros(count)
    held.ids[:] = FIRST_ID + np.arange(count)
    held.signed[:] = True
    start = 0
    for part in synthetic.drawn(np.random.default_rng(SEED), SOURCES[kind](), count, COPIES):
        read = slice(start, start := start + len(part))
        held.simhashes[read] = np.ascontiguousarray(part.simhashes).view(np.uint64)
        held.signatures[read] = part.signatures
    return held


def measure(find: Find, held: Held) -> dict[str, float]:
    began, spent = time.perf_counter(), cpu_seconds()
    pairs = capped = 0
    for portion in find(held):
        pairs += len(portion.left)
        capped += len(portion.capped)
    return {
        "seconds": time.perf_counter() - began,
        "cpu": cpu_seconds() - spent,
        "pairs": pairs,
        "capped": capped,
        "rss": peak_rss_mb(),
    }


def measure_reading(ledger: Path) -> dict[str, float]:
    began, spent, number, stories = time.perf_counter(), cpu_seconds(), 0, 0
    with closing(read(ledger)) as db:
        while len(page := fingerprint_arrays.after(db, number, STORIES_A_READ)):
            number, stories = int(page.numbers[-1]), stories + len(page)
    return {
        "seconds": time.perf_counter() - began,
        "cpu": cpu_seconds() - spent,
        "stories": stories,
        "rss": peak_rss_mb(),
    }


@click.command()
@click.option("--stories", default=1_000_000, show_default=True, type=click.IntRange(min=WARM))
@click.option("--part", nargs=2, type=(click.Choice(list(SOURCES)), click.Choice(list(TIERS))), hidden=True)
@click.argument("ledger", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def main(stories: int, part: tuple[str, str] | None, ledger: Path | None) -> None:
    if part:
        kind, tier = part
        measure(TIERS[tier], held_stories(kind, WARM))  # compiles
        click.echo(json.dumps(measure(TIERS[tier], held_stories(kind, stories))))
        return
    click.echo(f"{machine()}; {stories:,} stories of one language, one run each")
    table = report.table_of("", "seconds", "CPU s", "pairs", "runs cut", "peak RSS, MB")
    for tier in TIERS:
        for kind in SOURCES:
            made = run_module(MODULE, "--stories", stories, "--part", kind, tier)
            table.add_row(
                f"{tier}, {kind}",
                *(f"{made[name]:,.1f}" for name in ("seconds", "cpu")),
                *(f"{made[name]:,.0f}" for name in ("pairs", "capped", "rss")),
            )
    report.out.print(table)
    if ledger:
        made = measure_reading(ledger)
        click.echo(f"reading {made['stories']:,} stories: {made['seconds']:.1f} s, {made['cpu']:.1f} s of CPU")


if __name__ == "__main__":
    main()
