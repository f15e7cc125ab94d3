"""The table of faults, and how many of them: NEARDUP_CHAOS multiplies what a test injects, 1 if it is not set."""

import os
from dataclasses import dataclass

CHAOS = int(os.environ.get("NEARDUP_CHAOS", "1"))
HEAD = (
    "| fault | times injected | stories in flight | lost | flagged twice | seconds to recover |",
    "|---|---|---|---|---|---|",
)


@dataclass(frozen=True, order=True, slots=True)
class Row:
    """A fault, and what became of the stories; `seconds` from its end, or a restart, until all was as it should be."""

    fault: str
    injected: int
    in_flight: int
    lost: int
    flagged_twice: int
    seconds: tuple[float, ...]

    def __str__(self) -> str:
        longest = max(self.seconds, default=0.0)
        middle = sorted(self.seconds)[len(self.seconds) // 2] if self.seconds else 0.0
        took = f"{middle:.1f}, at most {longest:.1f}"
        return f"| {self.fault} | {self.injected} | {self.in_flight} | {self.lost} | {self.flagged_twice} | {took} |"
