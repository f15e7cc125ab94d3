"""`neardup spark`: seconds, core-seconds and memory by stage, of synthetic stories; and the daemon on the same ones.

python -m tests.bench.spark_job FOLDER [--stories 100000] [--compare]
"""

import json
import os
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, Self

import click
import pyarrow as pa  # type: ignore[import-untyped]
from neardup.config import Config, Content, Source
from neardup.source.documents import Columns
from neardup.spark.job import Input, Job
from neardup.spark.session import open_session
from pyarrow import dataset, parquet

from tests.bench.prose import Text, texts
from tests.support.command import Neardup, embedded
from tests.support.languages import CODES
from tests.support.resource_meter import SAMPLE_SECONDS, CpuTimes, pss_mb_of_all

CHUNK = 5_000
FLAG = ("story_id", "matched_id")
COMPARED = ("kind", "hamming", "jaccard", "containment", "matched_containment", "copied_words", "cluster_id", "status")


class Meter:
    """Prints a line for each stage: its seconds, the core-seconds of all processes, and their peak memory in MiB."""

    def __init__(self, stories: int) -> None:
        self._stories = stories
        self._thread = ThreadPoolExecutor(1)
        self._cpu = CpuTimes()
        self._used = self._cpu.seconds()
        self._begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.shutdown()

    def _begin(self) -> None:
        self._began, self._end = time.monotonic(), threading.Event()
        self._sampled = self._thread.submit(self._sample, self._end)

    def _sample(self, end: threading.Event) -> tuple[float, float]:
        """The peak memory until `end` is set, and the CPU seconds so far: Spark ends its idle Python workers."""
        peak = 0.0
        while not end.wait(SAMPLE_SECONDS):
            peak = max(peak, pss_mb_of_all(os.getpid()))
            self._cpu.seconds()
        return peak, self._cpu.seconds()

    def show(self, line: str) -> None:
        self._end.set()
        seconds, before = time.monotonic() - self._began, self._used
        peak, self._used = self._sampled.result()
        cores = self._used - before
        click.echo(
            f"{line:45} {seconds:8.1f} s {cores:8.1f} core-s {1e6 * cores / self._stories:8.0f} a million"
            f" {peak:6.0f} MiB"
        )
        self._begin()


def write_table(path: Path, stories: int) -> None:
    """Write the stories to a Parquet file."""
    columns = pa.schema(
        [
            ("id", pa.int64()),
            ("language", pa.string()),
            ("author_id", pa.string()),
            ("published_at", pa.timestamp("ms", tz="UTC")),
            ("text", pa.string()),
        ]
    )
    rows = texts(stories)
    with parquet.ParquetWriter(path, columns, compression="zstd") as out:
        while chunk := list(islice(rows, CHUNK)):
            out.write_table(pa.Table.from_pylist([row._asdict() for row in chunk], columns))


def write_pages(folder: Path, rows: Iterator[Text]) -> None:
    """Write the stories as pages with a manifest."""
    shutil.rmtree(folder / "html", ignore_errors=True)
    with (folder / "manifest.csv").open("w", encoding="utf-8") as manifest:
        manifest.write("id,language,author_id,published_at,path\n")
        for row in rows:
            path = folder / "html" / row.language / f"{row.id}.html"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"<html><body><p>{row.text}</p></body></html>", encoding="utf-8")
            when = f"{pa.scalar(row.published_at, pa.timestamp('ms')).as_py().isoformat()}Z"
            manifest.write(f"{row.id},{CODES[row.language]},{row.author_id},{when},{row.language}/{path.name}\n")


def compare(folder: Path, output: Path, stories: int) -> None:
    """Run `backfill --fresh` on the same stories, and say what differs."""
    write_pages(folder, texts(stories))
    neardup = Neardup(folder, dict(os.environ), is_forked=False)
    for old in folder.glob("neardup.db*"):
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    text = embedded(folder / "manifest.csv", folder / "html").replace('body = "article .story, div.post-body"', "")
    neardup.configure(text)
    began = time.monotonic()
    for command in (
        ["backfill", "--fresh"],
        ["export", "-o", "f.parquet"],
        ["export", "--by", "story", "-o", "s.parquet"],
    ):
        done = neardup(*command)
        assert done.code == 0, done.err
    click.echo(f"daemon: {time.monotonic() - began:.0f} s")
    done = neardup("export", "--fingerprints", str(folder / "p.parquet"))
    assert done.code == 0, done.err
    prints = ("language", "text_hash", "simhash", "signature", "passages", "words", "shingles")
    _difference("fingerprints", ("id",), prints, output / "fingerprints", folder / "p.parquet")
    _difference("flags", FLAG, COMPARED, output / "flags", folder / "f.parquet")
    _difference(
        "similarities",
        ("story_id",),
        ("similarity", "copied_words", "sources"),
        output / "stories",
        folder / "s.parquet",
    )


def _difference(what: str, key: tuple[str, ...], columns: tuple[str, ...], ours: Path, theirs: Path) -> None:
    found = [_by_key(path, key, columns) for path in (ours, theirs)]
    first, second = found
    differing = [name for name in first.keys() & second.keys() if first[name] != second[name]]
    click.echo(
        f"{what}: Spark {len(first):,}, daemon {len(second):,}; only Spark {len(first.keys() - second.keys())},"
        f" only daemon {len(second.keys() - first.keys())}, differing {len(differing)}"
        + "".join(f"\n  {name}: {first[name]} {second[name]}" for name in differing[:3])
    )


def _by_key(path: Path, key: tuple[str, ...], columns: tuple[str, ...]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    rows = dataset.dataset(path).to_table(columns=[*key, *columns]).to_pylist()
    return {tuple(row[name] for name in key): tuple(row[name] for name in columns) for row in rows}


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--stories", default=100_000)
@click.option("--master", default="local[2]")
@click.option("--compare", "compared", is_flag=True)
def main(folder: Path, stories: int, master: str, compared: bool) -> None:
    """Write the stories if they are not there, and run the job on them."""
    folder.mkdir(parents=True, exist_ok=True)
    table, output = folder / f"{stories}.parquet", folder / f"output_{stories}"
    if not table.exists():
        write_table(table, stories)
    config = Config(source=Source(kind="scan"), content=Content(url="file:/"))
    os.environ["SPARK_LOCAL_DIRS"] = str(folder / "spark")
    with open_session(master) as spark, Meter(stories) as meter:
        Job(spark, config, str(output), Input(str(table), Columns(), None), meter.show).run()
    counts: Counter[str] = Counter()
    for row in dataset.dataset(output / "counts").to_table().to_pylist():
        counts[f"{row['what']} {row['reason'] or ''}".strip()] += row["count"]
    click.echo(json.dumps(counts, indent=1))
    if compared:
        compare(folder, output, stories)


if __name__ == "__main__":
    sys.exit(main())
