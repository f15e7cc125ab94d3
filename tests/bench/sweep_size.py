"""Measures finding all pairs among many stories of one language, by tier and by kind of stories.

`python -m tests.bench.sweep_size --stories N [LEDGER]`.  Every twentieth story is a copy.  With a LEDGER, the benchmark
also reads all its fingerprints as a sweep does.  Each part runs in a process of its own; figures are printed, never
asserted.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import click
import numpy as np
from neardup.config import Detection
from neardup.core.candidates.all_pairs import LanguageFingerprints, PairChunk, find_near_pairs, find_nominated_pairs
from neardup.ledger import read, versions
from neardup.pipeline.sweep import STORIES_PER_READ

from tests.bench import report
from tests.support import synthetic
from tests.support.resource_meter import cpu_seconds, machine, peak_rss_mb, run_module
from tests.support.synthetic import FIRST_ID, LANGUAGE, Distribution

MODULE = "tests.bench.sweep_size"
KINDS: dict[str, Callable[[], Distribution]] = {
    "uniform": synthetic.uniform,
    "prose": lambda: synthetic.prose(LANGUAGE),
}
COPY_SHARE = 0.05
SEED = 1
WARM_UP = 100
DETECTION = Detection()

Find = Callable[[LanguageFingerprints], Iterator[PairChunk]]


def near(stories: LanguageFingerprints) -> Iterator[PairChunk]:
    return find_near_pairs(stories.simhashes, DETECTION.hamming)


def both(stories: LanguageFingerprints) -> Iterator[PairChunk]:
    return find_nominated_pairs(stories, DETECTION.banding(LANGUAGE), DETECTION.of(LANGUAGE).agreeing_rows)


TIERS: dict[str, Find] = {"SimHashes": near, "both": both}


def draw_stories(kind: str, count: int) -> LanguageFingerprints:
    stories = LanguageFingerprints.zeros(count)
    stories.ids[:] = FIRST_ID + np.arange(count)
    stories.signed[:] = True
    start = 0
    for part in synthetic.draw_chunks(np.random.default_rng(SEED), KINDS[kind](), count, COPY_SHARE):
        chunk = slice(start, start := start + len(part))
        stories.simhashes[chunk] = np.ascontiguousarray(part.simhashes).view(np.uint64)
        stories.signatures[chunk] = part.signatures
    return stories


def measure(find: Find, stories: LanguageFingerprints) -> dict[str, float]:
    """Find all pairs; returns the seconds, CPU seconds, pairs and the peak memory in MiB."""
    wall_start, cpu_start = time.perf_counter(), cpu_seconds()
    pairs = 0
    for portion in find(stories):
        pairs += len(portion.left)
    return {
        "seconds": time.perf_counter() - wall_start,
        "cpu": cpu_seconds() - cpu_start,
        "pairs": pairs,
        "rss": peak_rss_mb(),
    }


def measure_reading(ledger: Path) -> dict[str, float]:
    """Read all fingerprints; returns the seconds, CPU seconds, stories and the peak memory in MiB."""
    wall_start, cpu_start, number, stories = time.perf_counter(), cpu_seconds(), 0, 0
    with closing(read(ledger)) as db:
        while len(page := versions.list_fingerprints_after(db, number, STORIES_PER_READ)):
            number, stories = int(page.numbers[-1]), stories + len(page)
    return {
        "seconds": time.perf_counter() - wall_start,
        "cpu": cpu_seconds() - cpu_start,
        "stories": stories,
        "rss": peak_rss_mb(),
    }


@click.command()
@click.option("--stories", default=1_000_000, show_default=True, type=click.IntRange(min=WARM_UP))
@click.option("--part", nargs=2, type=(click.Choice(list(KINDS)), click.Choice(list(TIERS))), hidden=True)
@click.argument("ledger", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def main(stories: int, part: tuple[str, str] | None, ledger: Path | None) -> None:
    """Measure finding all pairs among synthetic stories, and reading the fingerprints of LEDGER."""
    if part:
        kind, tier = part
        measure(TIERS[tier], draw_stories(kind, WARM_UP))  # the first call loads compiled code
        click.echo(json.dumps(measure(TIERS[tier], draw_stories(kind, stories))))
        return
    click.echo(f"{machine()}; {stories:,} stories of one language, one run each")
    table = report.table_of("", "seconds", "CPU s", "pairs", "peak RSS, MiB")
    for tier in TIERS:
        for kind in KINDS:
            figures = run_module(MODULE, "--stories", stories, "--part", kind, tier)
            table.add_row(
                f"{tier}, {kind}",
                *(f"{figures[name]:,.1f}" for name in ("seconds", "cpu")),
                *(f"{figures[name]:,.0f}" for name in ("pairs", "rss")),
            )
    report.out.print(table)
    if ledger:
        figures = measure_reading(ledger)
        click.echo(f"reading {figures['stories']:,} stories: {figures['seconds']:.1f} s, {figures['cpu']:.1f} s of CPU")


if __name__ == "__main__":
    main()
