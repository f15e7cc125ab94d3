"""The progress of a run, for a progress bar or a log line."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from neardup.pipeline.summary import Counts

Phase = Literal[
    "reading passages again",
    "reading",
    "importing",
    "building the index",
    "comparing",
    "comparing passages",
    "verifying",
]


@dataclass(slots=True)
class Progress:
    """The counts of a run so far, its phase, and its position in it.

    A position and a size are in bytes of the listing while `reading`, in stories while `reading passages again`,
    `importing`, `building the index`, `comparing` or `comparing passages`, and in pairs while `verifying`.  A size of 0
    is unknown.
    """

    counts: Counts = field(default_factory=Counts)
    position: int = 0
    size: int = 0
    phase: Phase = "reading"

    def enter(self, phase: Phase, size: int = 0, position: int = 0) -> None:
        """Begin a phase."""
        self.phase, self.size, self.position = phase, size, position


Watch = Callable[[Progress], None]


def ignore_progress(_: Progress) -> None:
    """Ignore the progress."""
