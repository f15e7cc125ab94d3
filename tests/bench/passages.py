"""Measures the passage index alone, on synthetic passage hashes: python -m tests.bench.passages --stories 1000000.

A story has 78 random hashes, as one of 1,000 words has; each tenth story has 20 of them from the story before it.  The
segments are flushed as by `backfill --fresh` and merged at the end, or as they come with --merging.  Each stage runs in
a process of its own, and says how much memory that process takes.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
from neardup.core.candidates.banding import Numbers
from neardup.index.passages.index import PassageIndex
from neardup.index.passages.postings import Row
from neardup.index.passages.segment import estimate_bytes
from neardup.index.redis.client import cut_batches

from tests.bench.report import out
from tests.support.resource_meter import cpu_seconds, peak_rss_mb

HASHES, COPIED, COPIES_ONE_IN = 78, 20, 10
FLUSHED = 100_000  # stories
BATCH = 512  # stories of a lookup
DAILY = 10_000  # stories
COMMON = 50
PAGE = 4096

Figures = dict[str, float]


def rows(first: int, last: int) -> Iterator[Row]:
    """The stories `first` to `last`; the same for the same numbers, if `first` follows a multiple of FLUSHED."""
    random = np.random.default_rng(first // FLUSHED)
    hashes = random.integers(0, 1 << 32, (last - first + 1, HASHES), np.uint32)
    copies = np.arange(1, len(hashes), COPIES_ONE_IN)
    hashes[copies, :COPIED] = hashes[copies - 1, :COPIED]
    hashes.sort(axis=1)
    return zip(range(first, last + 1), hashes, strict=True)


def all_live(numbers: Numbers) -> npt.NDArray[np.bool_]:
    """No number is dead."""
    return np.ones(len(numbers), np.bool_)


def build(folder: Path, stories: int, merging: bool) -> Figures:
    """Insert, flush and merge; the figures are of both together."""
    index, merge_seconds = PassageIndex(folder, "ledger", "1"), 0.0
    for first in range(1, stories + 1, FLUSHED):
        last = min(first + FLUSHED - 1, stories)
        for batch in cut_batches(list(rows(first, last)), BATCH):
            index.insert(batch)
        index.flush(first, last, last)
        if merging or last == stories:
            start = time.perf_counter()
            while index.merge(all_live, last):
                pass
            merge_seconds += time.perf_counter() - start
    projected = estimate_bytes(index.postings, stories)
    segments = len(index.list_files())
    return {
        "bytes a story": index.measure_size() / stories,
        "projected": projected / stories,
        "segments": segments,
        "merge s": merge_seconds,
    }


def lookups(folder: Path, stories: int, cold: bool) -> Figures:
    """Look up a day's stories; warm is the second of two times, cold is with no page of the index in memory."""
    before = _resident_mb()
    index = PassageIndex(folder, "ledger", "1")
    first = stories // 2 // FLUSHED * FLUSHED + 1
    probes = [hashes for _, hashes in rows(first, min(first + FLUSHED - 1, stories))][:DAILY]
    index.look_up(probes[:1], COMMON)  # reads the checksums
    if cold:
        for path in index.list_files():
            _evict(path)
    else:
        _look_up(index, probes)
    read, start, cpu = _read_bytes(), time.perf_counter(), cpu_seconds()
    found = _look_up(index, probes)
    seconds = time.perf_counter() - start
    return {
        "us a story": seconds / len(probes) * 1e6,
        "CPU us a story": (cpu_seconds() - cpu) / len(probes) * 1e6,
        "4 KiB pages read": (_read_bytes() - read) / PAGE,
        "stories found": found,
        "RSS MB": _resident_mb() - before,
    }


def join(folder: Path, stories: int) -> Figures:
    """Find all pairs."""
    index, pairs = PassageIndex(folder, "ledger", "1"), 0
    with TemporaryDirectory(dir=folder.parent) as scratch:
        numbers = np.arange(stories + 1, dtype=np.uint32)
        for step in index.join(numbers, np.zeros(stories + 1, np.uint8), numbers, COMMON, Path(scratch)):
            pairs += len(step.pairs.left)
    return {"pairs": pairs, "planted": stories / COPIES_ONE_IN}


def check(folder: Path, _: int) -> Figures:
    """Verify every block."""
    return {"damaged": len(list(PassageIndex(folder, "ledger", "1").check()))}


def _look_up(index: PassageIndex, probes: list[Any]) -> int:
    return sum(len(found.numbers) for batch in cut_batches(probes, BATCH) for found in index.look_up(batch, COMMON))


def _evict(path: Path) -> None:
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _read_bytes() -> int:
    """The bytes that this process has read from disk."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("read_bytes"))


def _resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / (1 << 20)


def _measured(stage: Callable[..., Figures], *arguments: object) -> Figures:
    start = time.perf_counter()
    figures = stage(*arguments)
    return {**figures, "s": time.perf_counter() - start, "CPU s": cpu_seconds(), "peak RSS MB": peak_rss_mb()}


def _report(name: str, stage: Callable[..., Figures], *arguments: object) -> None:
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        figures = process.submit(_measured, stage, *arguments).result()
    out.print(f"{name:13}" + "  ".join(f"{key} {value:,.1f}" for key, value in figures.items()), soft_wrap=True)


def main() -> None:
    """Build an index and measure it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stories", type=int, default=1_000_000)
    parser.add_argument("--merging", action="store_true", help="merge after each flush, as without --fresh")
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name, "passages")
        _report("build", build, folder, options.stories, options.merging)
        _report("lookup, cold", lookups, folder, options.stories, True)
        _report("lookup, warm", lookups, folder, options.stories, False)
        _report("join", join, folder, options.stories)
        _report("check", check, folder, options.stories)


if __name__ == "__main__":
    main()
