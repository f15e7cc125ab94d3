"""Measures CPU time and memory of a process and its children, runs a benchmark in a process of its own, and describes
the machine.
"""

import json
import os
import platform
import resource
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from neardup.pages.fork_server import end_server

SAMPLE_SECONDS = 0.5  # reading the memory takes a few milliseconds


class Measured(Struct):
    """One run of a flow; times in seconds, without the start-up of the process, but with that of its children.

    `children_cpu` is the part of `cpu` that is the children's.  `peak_mb` is the peak memory of the process and its
    children in MiB, with shared pages counted once.  `roads` are the shares of the pages of which only the
    story was looked at, that the library in C rendered, and that Python did; None where no page is rendered.
    """

    stories: int
    pairs: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    children_cpu: float = 0.0
    peak_mb: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)
    roads: tuple[float, float, float] | None = None


@asynccontextmanager
async def metered(measured: Measured) -> AsyncIterator[None]:
    """Fill in the wall time, CPU time and peak memory of the enclosed work, including all threads and children."""
    with ThreadPoolExecutor(1) as thread:
        stop = threading.Event()
        peak = thread.submit(peak_until, stop)
        wall_start, cpu_start, children_start = time.perf_counter(), cpu_seconds(), children_cpu_seconds()
        try:
            yield
        finally:
            stop.set()
        measured.seconds = time.perf_counter() - wall_start
        end_server()  # until then the CPU time of the processes that it forked does not count
        measured.peak_mb, sampling = peak.result()
        measured.cpu = cpu_seconds() - cpu_start - sampling
        measured.children_cpu = children_cpu_seconds() - children_start


def peak_until(stop: threading.Event) -> tuple[float, float]:
    """The peak memory of this process and its children in MiB, sampled until `stop` is set, and the CPU time of that.

    On a loaded machine a run lasts longer, and more samples are taken.
    """
    peak, start = 0.0, time.thread_time()
    while not stop.wait(SAMPLE_SECONDS):
        peak = max(peak, pss_mb_of_all(os.getpid()))
    return peak, time.thread_time() - start


def pss_mb_of_all(pid: int) -> float:
    """The current memory of a process and its children in MiB, with shared pages counted once."""
    return sum(memory_mb(process)[0] for process in (str(pid), *descendants(pid)))


def descendants(pid: int) -> Iterator[str]:
    """The ids of a process's children, their children, and so on."""
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            for child in children.read_text(encoding="ascii").split():
                yield child
                yield from descendants(int(child))


def memory_mb(pid: str) -> tuple[float, float]:
    """The proportional set size of a process (shared pages divided among their processes) in MiB, and what of it is
    of no file; 0 for a process that ended.
    """
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
        sizes = {name: int(value.split()[0]) / 1024 for name, _, value in (line.partition(":") for line in lines)}
        return sizes["Pss"], sizes["Pss_Anon"]
    return 0.0, 0.0


def cpu_seconds() -> float:
    """User and system time so far of this process and of its children that have ended."""
    return _cpu_seconds(resource.RUSAGE_SELF) + children_cpu_seconds()


def children_cpu_seconds() -> float:
    """User and system time so far of the children of this process that have ended."""
    return _cpu_seconds(resource.RUSAGE_CHILDREN)


def _cpu_seconds(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


class CpuTimes:
    """User and system time of this process and its descendants, with those that ended after a call of `seconds`.

    What such a process used between the last call and its end is missed.
    """

    def __init__(self) -> None:
        self._ticks: dict[tuple[str, str], int] = {}  # by the id of a process and the time of its start

    def seconds(self) -> float:
        """The time so far, to a tick."""
        for pid in (str(os.getpid()), *descendants(os.getpid())):
            with suppress(FileNotFoundError, ProcessLookupError):
                fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
                self._ticks[pid, fields[19]] = sum(map(int, fields[11:13]))
        return sum(self._ticks.values()) / os.sysconf("SC_CLK_TCK")


def peak_rss_mb() -> float:
    """The peak memory of this process in MiB.  ru_maxrss will not do: it survives exec, so it may be the parent's."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmHWM in /proc/self/status")


def run_module(name: str, *arguments: object) -> Any:
    """Run `python -m name arguments`; the JSON on the last line of its output."""
    command = [sys.executable, "-m", name, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment(), check=True)
    return json.loads(done.stdout.splitlines()[-1])


def environment() -> dict[str, str]:
    """The variables of a process that reads a store on this machine."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("NEARDUP_", "AWS_"))}
    return inherited | {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "NO_PROXY": "127.0.0.1"}


def machine() -> str:
    """The CPU, the number of cores and the Python version of this machine."""
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    model = models[0].partition(":")[2].strip() if models else platform.machine()
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"
