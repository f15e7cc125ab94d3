"""The progress of a run, for a progress bar or a log line."""

from collections.abc import Callable
from dataclasses import dataclass, field

from neardup.pipeline.summary import Counts


@dataclass(slots=True)
class Progress:
    """The counts of a run so far, and its position: in bytes of the listing, or for a sweep in stories."""

    counts: Counts = field(default_factory=Counts)
    position: int = 0
    size: int = 0


Watch = Callable[[Progress], None]


def ignore_progress(_: Progress) -> None:
    """Ignore the progress."""
