"""How much CPU time and memory one page may cost its reader process, and how the pool checks that.

A parser cannot be interrupted, and hostile markup can keep it busy for hours: 32 KB of unclosed formatting tags take
2.3 GB, 1 MB of nested blocks more than a minute.  So a reader process computes one page at a time and records the
number of the page in shared memory; the pool checks the process every CHECK_SECONDS, and kills one whose page exceeds
its budget, and one that stands still.
"""

import mmap
import os
import struct
import time
from pathlib import Path

from msgspec import Struct

CPU_SECONDS = 10.0  # twenty times what the costliest 5 MB of prose take on a slow core
MOST_MEMORY_BYTES = 300_000_000  # three times what 5 MB of prose take
CHECK_SECONDS = 0.05  # memory grows by at most 30 MB in that time
# Pages that cost this much are on record as suspects, in case the daemon dies.  A page takes milliseconds, and one that
# crashes the parser kills only its reader process.  What kills the daemon takes longer: memory runs out, or systemd's
# watchdog expires.  A page that has only begun is not the cause.
COSTLY_SECONDS = 1.0  # of CPU
STILL_SECONDS = 60.0  # twice as long as a request to the store may take, after which a process wakes up
MOST_SECONDS_BETWEEN = 2.0  # between two checks; after a longer pause it was the daemon that stood still

NO_PAGE = -1
WORD = struct.Struct("q")
NUMBER_AT, BODY_BYTES_AT, PID_AT, RECORD_BYTES = 0, 8, 16, 24
KERNEL_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Record:
    """What a reader process is doing, in memory that it shares with its pool."""

    def __init__(self, descriptor: int) -> None:
        self._shared = mmap.mmap(descriptor, RECORD_BYTES)

    def begin(self, number: int) -> None:
        """Record that the process computes the page of this number; it begins no other before `end`."""
        WORD.pack_into(self._shared, NUMBER_AT, number)

    def end(self) -> None:
        """Record that the page is computed."""
        WORD.pack_into(self._shared, NUMBER_AT, NO_PAGE)

    def set_body_bytes(self, size: int) -> None:
        """Record how many bytes of page bodies the process holds, complete or not."""
        WORD.pack_into(self._shared, BODY_BYTES_AT, size)

    @property
    def number(self) -> int:
        """The number of the page being computed, or of that when the process died; NO_PAGE between two pages."""
        return int(WORD.unpack_from(self._shared, NUMBER_AT)[0])

    @property
    def body_bytes(self) -> int:
        """The bytes of page bodies that the process holds."""
        return int(WORD.unpack_from(self._shared, BODY_BYTES_AT)[0])

    @property
    def pid(self) -> int | None:
        """The id of the process; None before it is forked."""
        return int(WORD.unpack_from(self._shared, PID_AT)[0]) or None


def create_record() -> int:
    """Create an empty record; returns its file descriptor."""
    descriptor = os.memfd_create("neardup")
    os.pwrite(descriptor, WORD.pack(NO_PAGE), 0)
    os.ftruncate(descriptor, RECORD_BYTES)
    return descriptor


def record_pid(descriptor: int, pid: int) -> None:
    """Write the id of the process into the record with this descriptor."""
    os.pwrite(descriptor, WORD.pack(pid), PID_AT)


class Stillness(Struct):
    """For how many `seconds` a process has used no CPU time, by the checks of it so far."""

    pid: int
    seconds: float = 0.0
    cpu: float = -1.0
    checked_at: float = 0.0

    def lasts(self, *, idle: bool = False) -> bool:
        """Check whether the process has stood still for STILL_SECONDS; it does not while it is `idle`.

        Raises OSError if it ended.
        """
        now, cpu = time.monotonic(), read_cpu_seconds(self.pid)
        still = cpu == self.cpu and not idle
        self.seconds = self.seconds + min(now - self.checked_at, MOST_SECONDS_BETWEEN) if still else 0.0
        self.cpu, self.checked_at = cpu, now
        return self.seconds >= STILL_SECONDS


class WatchedProcess(Struct):
    """A reader process and its last check; `idle_bytes` is its memory before its first page.

    `number` is that of the page that the last check saw, and `spent_seconds` the CPU time spent on it by then;
    `start_bytes` and `start_seconds` are the memory and the CPU time of the process when a check first saw that page.
    """

    pid: int
    record: Record
    idle_bytes: int
    number: int = NO_PAGE
    start_bytes: int = 0
    start_seconds: float = 0.0
    spent_seconds: float = 0.0

    def check_budgets(self) -> str | None:
        """Check the process: the budget that it exceeds, "time" or "memory", or None.  Raises OSError if it ended."""
        memory, seconds, number = self._measure_memory(), read_cpu_seconds(self.pid), self.record.number
        if number != self.number:
            self.number, self.start_bytes, self.start_seconds = number, memory, seconds
        self.spent_seconds = seconds - self.start_seconds
        if memory - self.idle_bytes > MOST_MEMORY_BYTES:
            return "memory"
        return "time" if number != NO_PAGE and self.spent_seconds > CPU_SECONDS else None

    @property
    def costly(self) -> int:
        """The number of the page that the process computes, if that has taken COSTLY_SECONDS by the last check."""
        return self.number if self.spent_seconds >= COSTLY_SECONDS else NO_PAGE

    @property
    def to_blame(self) -> int:
        """The number of the page that made the memory grow; NO_PAGE if most of the growth is older than that page."""
        return self.number if self._measure_memory() - self.start_bytes > MOST_MEMORY_BYTES / 2 else NO_PAGE

    def _measure_memory(self) -> int:
        """The process's memory without the page bodies that it holds."""
        return read_resident_bytes(self.pid) - self.record.body_bytes


def watch(pid: int, record: Record) -> WatchedProcess:
    """Watch a process that has computed no page yet.  Raises OSError if it has ended."""
    return WatchedProcess(pid, record, read_resident_bytes(pid))


def read_resident_bytes(pid: int) -> int:
    """The resident memory of a process.  Raises OSError if it has ended."""
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * KERNEL_PAGE_BYTES


def read_cpu_seconds(pid: int) -> float:
    """The CPU time of a process, as `time.process_time()` returns it there.  Raises OSError if it has ended."""
    return time.clock_gettime(~pid << 3 | 2)  # clock_getcpuclockid(3), which Python lacks
