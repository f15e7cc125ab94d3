"""Measures CPU time and memory of a process and its children."""

import os
import resource
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

WATCH_SECONDS = 0.5  # a look takes a few milliseconds


@dataclass(slots=True)
class Measured:
    """One run of a flow; times in seconds, the start-up of the process left out, that of its children not.

    Memory in MiB at its peak: of the process and its children, pages that they share counted once.
    """

    stories: int
    pairs: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    peak_mb: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)


@asynccontextmanager
async def metered(measured: Measured) -> AsyncIterator[None]:
    """Fill in what the enclosed work takes of the clock, of CPU, all threads and children, and of memory."""
    with ThreadPoolExecutor(1) as thread:
        over = threading.Event()
        watching = thread.submit(_peak_of_all, over)
        began, spent = time.perf_counter(), cpu_seconds()
        try:
            yield
        finally:
            over.set()
        measured.seconds = time.perf_counter() - began
        measured.cpu = cpu_seconds() - spent
        measured.peak_mb = watching.result()


def _peak_of_all(over: threading.Event) -> float:
    """Until it is over, every now and then: the memory of this process and its children, in MiB."""
    peak = 0.0
    while not over.wait(WATCH_SECONDS):
        peak = max(peak, pss_mb_of_all(os.getpid()))
    return peak


def pss_mb_of_all(pid: int) -> float:
    """The memory of a process and its children now, in MiB, pages that they share counted once."""
    return sum(map(_pss_mb, (str(pid), *descendants(pid))))


def descendants(pid: int) -> Iterator[str]:
    """The ids of a process's children, and of theirs."""
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # a thread that has ended
            for child in children.read_text(encoding="ascii").split():
                yield child
                yield from descendants(int(child))


def _pss_mb(pid: str) -> float:
    """Of pages shared with other processes only this one's share; 0 for a process that is gone."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


def cpu_seconds() -> float:
    """User and system time of this process and of its children that have ended, so far."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def peak_rss_mb() -> float:
    """The high-water mark of this program alone: ru_maxrss may be the parent's, left from before exec."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmHWM in /proc/self/status")
