"""The progress of a job: what a bar, a log line and `neardup status` show while it works.

A job keeps one `Progress` up to date and gives it to a `Watch`.  Whatever may take more than two seconds shows what it
does: on a terminal as a bar (neardup.cli.console), otherwise as a log line every 30 seconds.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import asdict

from neardup.pipeline.summary import Counts
from neardup.telemetry.log import log, log_meanwhile

Phase = Literal[
    "starting",
    "bringing the index up to date",
    "reading passages again",
    "reading",
    "importing",
    "building the index",
    "comparing",
    "comparing passages",
    "verifying",
    "looking up canaries",
    "finishing",
]


class Progress(Struct):
    """The counts of a job so far, its phase, and its position in it.

    A position and a size are in bytes of the listing while `reading`, in stories while `reading passages again`,
    `importing`, `building the index`, `comparing` or `comparing passages`, and in pairs while `verifying`.  A size of 0
    is unknown.
    """

    counts: Counts = field(default_factory=Counts)
    position: int = 0
    size: int = 0
    phase: Phase = "starting"
    _began: float = field(default_factory=time.monotonic)  # the phase, with the two below
    _first_position: int = 0
    _listed_before: int = 0

    def enter(self, phase: Phase, size: int = 0, position: int = 0) -> None:
        """Begin a phase, or go on with it."""
        if phase != self.phase:
            self._began, self._first_position, self._listed_before = time.monotonic(), position, self.counts.listed
        self.phase, self.size, self.position = phase, size, position

    def resume_at(self, position: int) -> None:
        """Begin the present phase at a position that an earlier run has reached."""
        self.position = self._first_position = position

    def report(self) -> "Report":
        """What an operator asks of it now."""
        seconds, moved = time.monotonic() - self._began, self.position - self._first_position
        worked = self.counts.listed - self._listed_before if self.phase == "reading" else moved
        left = (self.size - self.position) * seconds / moved if self.size and moved > 0 else None
        return Report(
            self.phase,
            self.counts.listed,
            round(min(self.position / self.size, 1.0), 4) if self.size else None,
            round(worked / seconds, 1) if seconds else 0.0,
            None if left is None else max(round(left), 0),
        )


class Report(Struct, frozen=True):
    """A job's phase, the rows it has listed, and of the phase: the share that is `done`, the stories (or pairs, while
    verifying) a second, and how many seconds it still takes.  None is not known.
    """

    phase: str
    listed: int
    done: float | None
    per_second: float
    seconds_left: int | None


Watch = Callable[[Progress], None]


def ignore_progress(_: Progress) -> None:
    """Ignore the progress."""


def describe_counts(progress: Progress) -> str:
    """Format the counts that are not zero, such as "1,024 listed, 3 skipped, 17 flagged"."""
    counts = progress.counts
    numbers = (
        (counts.listed, "listed"),
        (counts.skipped.total(), "skipped"),
        (counts.dead_lettered.total(), "dead-lettered"),
    )
    parts = [f"{n:,} {word}" for n, word in numbers if n]
    return ", ".join([*parts, f"{counts.flagged.total():,} flagged"])


@contextmanager
def log_progress(command: str) -> Iterator[Watch]:
    """Log from time to time what a command does, also while nothing calls the `Watch` that this yields."""
    shown, context = Progress(), copy_context()

    def watch(progress: Progress) -> None:
        nonlocal shown, context
        shown, context = progress, copy_context()  # which has the id of the run

    def log_line() -> None:
        facts = {"command": command, "so_far": describe_counts(shown), **asdict(shown.report())}
        context.run(log.info, "progress", **facts)

    with log_meanwhile(log_line):
        yield watch
