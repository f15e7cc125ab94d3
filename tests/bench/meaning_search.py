"""The search for translated and retold copies among many stories with vectors: seconds by part, and the peak memory.

    python -m tests.bench.meaning_search FOLDER [--stories 15800000] [--cached]

writes random vectors of as many stories and of 200,000 works of the reference to FOLDER, 1.5 KB each, once.  Without
`--cached` the file is dropped from the page cache first.  Random vectors cost a search more than those of texts: their
candidates are anywhere in the file.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from zlib import crc32

import click
import numpy as np
from neardup.ledger import transaction
from neardup.meaning import search
from neardup.meaning.codes import scale_to_unit
from neardup.meaning.vectors import bind_to_model, connect

from tests.support.languages import SAMPLED
from tests.support.resource_meter import cpu_seconds, peak_rss_mb

WORKS = 200_000
SEARCHED_FOR = 10_000  # the last stories
DIMENSIONS, CHUNKS = 384, 3
AT_ONCE = 20_000
BACKGROUNDS = json.dumps(dict.fromkeys(SAMPLED, 0.2345))  # of each story that was searched for before

Row = tuple[int, bytes, bytes, str, bytes, str | None]


def write(path: Path, stories: int) -> None:
    """Write the vectors and codes of works, which have ids below 0, and of stories."""
    rng = np.random.default_rng(1)
    with closing(connect(path)) as db:
        bind_to_model(db, "random", scale_to_unit(np.ones((1, DIMENSIONS), np.float32))[0], "ledger", 0)
        db.execute("PRAGMA synchronous = OFF")
        for first in range(-WORKS, stories, AT_ONCE):
            rows = list(_rows(rng, range(first, min(first + AT_ONCE, stories)), stories - SEARCHED_FOR))
            with transaction(db):
                db.executemany("INSERT INTO vectors VALUES (?, ?, ?, ?)", [(*row[:3], crc32(row[2])) for row in rows])
                codes = [(row[0], *row[3:]) for row in rows]
                db.executemany("INSERT INTO codes (story_id, language, code, backgrounds) VALUES (?, ?, ?, ?)", codes)


def _rows(rng: np.random.Generator, ids: range, searched: int) -> Iterator[Row]:
    """Rows of stories; those with ids from `searched` on are still to be searched for."""
    chunks, codes, hashes = (rng.bytes(len(ids) * size) for size in (DIMENSIONS * CHUNKS, DIMENSIONS // 8, 16))
    for n, story_id in enumerate(ids):
        story_hash = hashes[n * 16 : (n + 1) * 16]
        of_chunks = chunks[n * DIMENSIONS * CHUNKS : (n + 1) * DIMENSIONS * CHUNKS]
        code = codes[n * DIMENSIONS // 8 : (n + 1) * DIMENSIONS // 8]
        language = SAMPLED[story_id % len(SAMPLED)]
        yield story_id, story_hash, of_chunks, language, code, BACKGROUNDS if story_id < searched else None


def drop_from_cache(path: Path) -> None:
    """Drop a file from the page cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--stories", default=15_800_000)
@click.option("--cached", is_flag=True)
def main(folder: Path, stories: int, cached: bool) -> None:
    """Write the vectors if they are not there, and search for the last 10,000 stories among all."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stories}.vectors"
    if not path.exists():
        write(unfinished := folder / "unfinished.vectors", stories)
        unfinished.rename(path)
    if not cached:
        drop_from_cache(path)
    with closing(connect(path)) as db:
        began, used = time.perf_counter(), cpu_seconds()
        candidates = search.nominate(db, search.read_unsearched(db, SEARCHED_FOR))
        _show("nominate by codes", began, used)
        between, used = time.perf_counter(), cpu_seconds()
        search.compare_all(db, candidates)
        _show("compare by chunks", between, used)
    click.echo(f"{len(candidates):,} stories: {time.perf_counter() - began:.1f} s, at most {peak_rss_mb():.0f} MiB")


def _show(what: str, began: float, used: float) -> None:
    click.echo(f"{what}: {time.perf_counter() - began:.1f} s, {cpu_seconds() - used:.1f} core-s")


if __name__ == "__main__":
    main()
