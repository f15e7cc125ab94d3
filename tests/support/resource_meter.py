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

WATCH_SECONDS = 0.5  # reading the memory of all processes takes a few milliseconds


@dataclass(slots=True)
class Measured:
    """The measurements of one run; times in seconds, memory in MiB.

    Times include the start-up of child processes, but not that of the process itself.  Memory is the peak of the
    process and its children together; shared pages count once.
    """

    stories: int
    pairs: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    peak_mb: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)


@asynccontextmanager
async def metered(measured: Measured) -> AsyncIterator[None]:
    """Measure the wall time, the CPU time of all threads and children, and the peak memory of the enclosed work."""
    with ThreadPoolExecutor(1) as thread:
        ended = threading.Event()
        peak = thread.submit(_peak_of_all, ended)
        began, cpu_before = time.perf_counter(), cpu_seconds()
        try:
            yield
        finally:
            ended.set()
        measured.seconds = time.perf_counter() - began
        measured.cpu = cpu_seconds() - cpu_before
        measured.peak_mb = peak.result()


def _peak_of_all(ended: threading.Event) -> float:
    """Sample the memory of this process and its children until `ended` is set; returns the peak in MiB."""
    peak = 0.0
    while not ended.wait(WATCH_SECONDS):
        peak = max(peak, pss_mb_of_all(os.getpid()))
    return peak


def pss_mb_of_all(pid: int) -> float:
    """The current memory of a process and its children in MiB; pages that they share count once."""
    return sum(map(_pss_mb, (str(pid), *descendants(pid))))


def descendants(pid: int) -> Iterator[str]:
    """The ids of all descendants of a process."""
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            for child in children.read_text(encoding="ascii").split():
                yield child
                yield from descendants(int(child))


def _pss_mb(pid: str) -> float:
    """The proportional set size of a process in MiB; 0 if the process has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


def cpu_seconds() -> float:
    """The user and system time of this process and of its ended children so far."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def peak_rss_mb() -> float:
    """The peak resident memory of this program in MiB; ru_maxrss may include the parent's, from before exec."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmHWM in /proc/self/status")
