"""The table of faults, and how many of them: CHAOS multiplies what a test injects, 1 if it is not set."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Protocol

CHAOS = int(os.environ.get("CHAOS", "1"))
State = Mapping[str, Sequence[tuple[object, ...]]]
FAULT = "fault"  # the name of a row among the properties of a test's report
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
        ascending = sorted(self.seconds)
        took = f"{ascending[len(ascending) // 2]:.1f}, at most {ascending[-1]:.1f}" if ascending else "at once"
        return f"| {self.fault} | {self.injected} | {self.in_flight} | {self.lost} | {self.flagged_twice} | {took} |"


class Agree(Protocol):
    """Asserts that what is on record after a fault is what would be without it, and puts the row into the table."""

    def __call__(self, fault: str, injected: int, in_flight: int, mine: State, theirs: State) -> None: ...


def compared(fault: str, injected: int, in_flight: int, mine: State, theirs: State) -> Row:
    """The row of a fault, by what is on record after it and what would be without."""
    lost = set(theirs["stories"]) - set(mine["stories"])
    pairs = Counter(flag[:2] for flag in mine["flags"])
    return Row(fault, injected, in_flight, len(lost), pairs.total() - len(pairs), ())


def table(rows: Iterable[Row]) -> list[str]:
    """A line for each fault, whatever tests it came from, under a heading."""
    out = list(HEAD)
    for fault, some in groupby(sorted(rows), lambda row: row.fault):
        each = list(some)
        injected, in_flight, lost, twice = (
            sum(numbers)
            for numbers in zip(*((r.injected, r.in_flight, r.lost, r.flagged_twice) for r in each), strict=True)
        )
        seconds = tuple(chain.from_iterable(row.seconds for row in each))
        out.append(str(Row(fault, injected, in_flight, lost, twice, seconds)))
    return out
