"""Runs neardup as it is deployed and measures it.

`python -m tests.bench.subject CONFIG [backfill|fresh|daily]` prints a `Measured`, as JSON.
"""

import asyncio
import json
import sys
from collections.abc import Iterable
from pathlib import Path

import click
from msgspec.structs import asdict
from neardup.app import open_app, run_once
from neardup.cli.command import run_async
from neardup.cli.console import set_up_logging
from neardup.config import Config, load
from neardup.telemetry.metrics import PAGES_RENDERED, STAGE_SECONDS
from prometheus_client.samples import Sample

from tests.support.resource_meter import Measured, metered

CONFIG = """
[source]
manifest = "{pages}/manifest.csv"
[content]
{content}
[extract]
body = "{body}"
[index]
url = "{index}"
[ledger]
path = "neardup.db"
"""
FILES = 'url = "file:{pages}"'
S3 = 'url = "s3://stories/"\nendpoint = "{endpoint}"\nregion = "us-east-1"\npath_style = true'


def embedded_config(pages: Path) -> str:
    """The configuration for pages in files and an index in SQLite."""
    return CONFIG.format(pages=pages, content=FILES.format(pages=pages), body="", index="sqlite:")


def served_config(pages: Path, endpoint: str, redis_url: str, body: str = "") -> str:
    """The configuration for pages in S3 over HTTP, with this selector of the story, and an index in Redis."""
    return CONFIG.format(pages=pages, content=S3.format(endpoint=endpoint), body=body, index=redis_url)


async def run(config: Config, command: str = "backfill") -> Measured:
    """Run `backfill`, `fresh` (a backfill that builds the index at the end) or `daily`.

    Raises RuntimeError unless every listed story is fingerprinted.
    """
    measured = Measured(0)
    async with open_app(config) as app, metered(measured):
        fresh = command == "fresh"
        summary = await run_once(app, "backfill" if fresh else command, asyncio.Event(), fresh=fresh)
    counts = summary.counts
    if counts.fingerprinted != counts.listed:
        raise RuntimeError(f"not every story was fingerprinted: {counts.as_dict()}")
    measured.stories, measured.pairs = counts.listed, counts.flagged.total()
    measured.stages, measured.roads = stage_seconds(), road_shares()
    return measured


def stage_seconds() -> dict[str, float]:
    """Stage -> the sum of its histogram, in seconds."""
    [histogram] = STAGE_SECONDS.collect()
    return {sample.labels["stage"]: sample.value for sample in histogram.samples if sample.name.endswith("_sum")}


def road_shares() -> tuple[float, float, float]:
    """The shares of pages of which only the story was looked at, that C rendered, and that Python rendered."""
    [histogram], [rendered] = STAGE_SECONDS.collect(), PAGES_RENDERED.collect()
    pages = _total(histogram.samples, "_count", stage="extract")
    native, python = (_total(rendered.samples, "_total", by=by) / pages for by in ("native", "python"))
    return 1 - native - python, native, python


def _total(samples: Iterable[Sample], suffix: str, **labels: str) -> float:
    chosen = [metric for metric in samples if metric.name.endswith(suffix) and labels.items() <= metric.labels.items()]
    return sum(sample.value for sample in chosen)


if __name__ == "__main__":
    set_up_logging()
    measured = run_async(lambda _: run(load(Path(sys.argv[1])), *sys.argv[2:]))
    click.echo(json.dumps(asdict(measured)))
