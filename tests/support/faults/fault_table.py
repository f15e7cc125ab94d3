"""The fault table: what each kind of fault did to the stories."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby
from typing import Protocol

from msgspec import Struct

State = Mapping[str, Sequence[tuple[object, ...]]]
FAULT = "fault"  # the name of a row among the properties of a test's report
HEAD = (
    "| fault | times injected | stories in flight | lost | flagged twice | seconds to recover |",
    "|---|---|---|---|---|---|",
)


class Row(Struct, frozen=True, order=True):
    """A fault and its effect on the stories.

    `seconds` are the times to recover: from the end of the fault, or from a restart, until the run has ended.
    """

    fault: str
    injected: int
    in_flight: int
    lost: int
    flagged_twice: int
    seconds: tuple[float, ...]

    def __str__(self) -> str:
        ascending = sorted(self.seconds)
        recovery = f"{ascending[len(ascending) // 2]:.1f}, at most {ascending[-1]:.1f}" if ascending else "at once"
        return (
            f"| {self.fault} | {self.injected} | {self.in_flight} | {self.lost} | {self.flagged_twice} | {recovery} |"
        )


class AssertSameState(Protocol):
    """Asserts that the state after a fault equals the undisturbed state, and adds a row to the table."""

    def __call__(self, fault: str, injected: int, in_flight: int, actual: State, expected: State) -> None: ...


def compared(fault: str, injected: int, in_flight: int, actual: State, expected: State) -> Row:
    """The row of a fault, from the state after it and the undisturbed state."""
    lost = set(expected["stories"]) - set(actual["stories"])
    pairs = Counter(flag[:2] for flag in actual["flags"])
    return Row(fault, injected, in_flight, len(lost), pairs.total() - len(pairs), ())


def table(rows: Iterable[Row]) -> list[str]:
    """The table in Markdown, with one line for each fault; rows of the same fault are added up."""
    out = list(HEAD)
    for fault, group in groupby(sorted(rows), lambda row: row.fault):
        of_fault = list(group)
        injected, in_flight, lost, twice = (
            sum(numbers)
            for numbers in zip(*((r.injected, r.in_flight, r.lost, r.flagged_twice) for r in of_fault), strict=True)
        )
        seconds = tuple(chain.from_iterable(row.seconds for row in of_fault))
        out.append(str(Row(fault, injected, in_flight, lost, twice, seconds)))
    return out
