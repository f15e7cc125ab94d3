"""What a flow is measured by: the CPU time and the memory of the process that it has to itself."""

import resource
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(slots=True)
class Measured:
    """One run of a flow; times in seconds, the start-up of the process left out."""

    stories: int
    pairs: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    peak_rss_mb: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)


@asynccontextmanager
async def metered(measured: Measured) -> AsyncIterator[None]:
    """Fill in what the enclosed work takes of the clock and of this process's CPU, all threads."""
    began, spent = time.perf_counter(), cpu_seconds()
    yield
    measured.seconds = time.perf_counter() - began
    measured.cpu = cpu_seconds() - spent
    measured.peak_rss_mb = peak_rss_mb()


def cpu_seconds() -> float:
    """User and system time of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_rss_mb() -> float:
    """The high-water mark of this program alone: ru_maxrss may be the parent's, left from before exec."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmHWM in /proc/self/status")
