"""What one page may cost the process that reads it, and how its owner sees that.

A parser cannot be interrupted, and markup can make it work for hours: 32 KB of unclosed formatting take 2.3 GB,
1 MB of nested blocks more than a minute.  So a reader process computes one page at a time and keeps on record, in
memory that its owner sees, which; the owner looks, and ends a process whose page takes too much.
"""

import mmap
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path

CPU_SECONDS = 10.0  # twenty times what the costliest 5 MB of prose take, on a slow core
PAGE_BYTES = 300_000_000  # three times what 5 MB of prose take
LOOK_SECONDS = 0.05  # in which 30 MB are built up at most

NONE_COMPUTED = -1
WORD = struct.Struct("q")
NUMBER_AT, HELD_AT, RECORD_BYTES = 0, 8, 16
PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")


class Record:
    """Which page a process computes, and what others hold, in memory that it shares with its owner."""

    def __init__(self, descriptor: int) -> None:
        self._shared = mmap.mmap(descriptor, RECORD_BYTES)

    def begin(self, number: int) -> None:
        """Its process computes this page, and will not begin another before `end`."""
        WORD.pack_into(self._shared, NUMBER_AT, number)

    def end(self) -> None:
        """The page is computed."""
        WORD.pack_into(self._shared, NUMBER_AT, NONE_COMPUTED)

    def hold(self, size: int) -> None:
        """Its process holds so many bytes of pages, fetched or being fetched."""
        WORD.pack_into(self._shared, HELD_AT, size)

    @property
    def number(self) -> int:
        """The page that is computed, or was when the process died; NONE_COMPUTED between two."""
        return int(WORD.unpack_from(self._shared, NUMBER_AT)[0])

    @property
    def held(self) -> int:
        """The bytes of pages that its process holds."""
        return int(WORD.unpack_from(self._shared, HELD_AT)[0])


def new_record() -> int:
    """The descriptor of a record of nobody."""
    descriptor = os.memfd_create("neardup")
    os.pwrite(descriptor, WORD.pack(NONE_COMPUTED), 0)
    os.ftruncate(descriptor, RECORD_BYTES)
    return descriptor


@dataclass(slots=True)
class Watched:
    """A process as its owner watches it; `idle` is the memory that it has without a page."""

    pid: int
    record: Record
    idle: int
    number: int = NONE_COMPUTED  # of the page that the last look saw, and when it was first seen:
    memory: int = 0
    seconds: float = 0.0

    def over(self) -> str | None:
        """What the process has too much of for one page, "time" or "memory"."""
        memory, seconds, number = self._own(), cpu_seconds(self.pid), self.record.number
        if number != self.number:
            self.number, self.memory, self.seconds = number, memory, seconds
        if memory - self.idle > PAGE_BYTES:
            return "memory"
        return "time" if number != NONE_COMPUTED and seconds - self.seconds > CPU_SECONDS else None

    @property
    def to_blame(self) -> int:
        """The page that made its memory grow; NONE_COMPUTED where most of it was there before."""
        return self.number if self._own() - self.memory > PAGE_BYTES / 2 else NONE_COMPUTED

    def _own(self) -> int:
        """The process's memory but for the pages that it holds."""
        return resident(self.pid) - self.record.held


def watched(pid: int, record: Record) -> Watched:
    """A process that has no page yet.  Raises OSError where there is none."""
    return Watched(pid, record, resident(pid))


def resident(pid: int) -> int:
    """Bytes of memory that a process has now.  Raises OSError where there is none."""
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * PAGE_SIZE


def cpu_seconds(pid: int) -> float:
    """What `time.process_time()` says in that process.  Raises OSError where there is none."""
    return time.clock_gettime(~pid << 3 | 2)  # clock_getcpuclockid(3), which Python does not have
