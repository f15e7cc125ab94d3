"""The fault table: what each kind of fault did to the stories, and by what the operator learned of it."""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from itertools import chain, groupby
from pathlib import Path
from typing import Protocol

from msgspec import Struct
from prometheus_client import REGISTRY

State = Mapping[str, Sequence[tuple[object, ...]]]
FAULT = "fault"  # the name of a row among the properties of a test's report
HEAD = (
    "| scenario | injected | stories in flight | lost | flagged twice | silent | said | seconds to recover |",
    "|---|---|---|---|---|---|---|---|",
)


class Said(Struct, frozen=True):
    """What says that a fault happened: an outcome, words of a message, or an exit code; and of how many faults."""

    by: str
    faults: int


class Row(Struct, frozen=True, order=True):
    """A scenario and its effect on the stories; `silent` are the faults of which nothing was said.

    `seconds` are the times to recover: from the end of the fault, or from a restart, until the run has ended.
    """

    scenario: str
    injected: int
    in_flight: int
    lost: int
    flagged_twice: int
    silent: int
    said: str
    seconds: tuple[float, ...]

    def __str__(self) -> str:
        ascending = sorted(self.seconds)
        recovery = f"{ascending[len(ascending) // 2]:.1f}, at most {ascending[-1]:.1f}" if ascending else "at once"
        return (
            f"| {self.scenario} | {self.injected} | {self.in_flight} | {self.lost} | {self.flagged_twice} |"
            f" {self.silent} | {self.said} | {recovery} |"
        )


class AssertSameState(Protocol):
    """Asserts that the state after a fault equals the undisturbed state, and adds a row to the table."""

    def __call__(
        self, scenario: str, injected: int, in_flight: int, actual: State, expected: State, *, said: Said
    ) -> None: ...


def make_row(
    scenario: str,
    injected: int,
    said: Said,
    *,
    in_flight: int = 0,
    lost: int = 0,
    flagged_twice: int = 0,
    seconds: tuple[float, ...] = (),
) -> Row:
    """The row of a scenario."""
    silent = max(injected - said.faults, 0)
    return Row(scenario, injected, in_flight, lost, flagged_twice, silent, said.by, seconds)


def compared(scenario: str, injected: int, in_flight: int, actual: State, expected: State, *, said: Said) -> Row:
    """The row of a scenario, from the state after it and the undisturbed state."""
    lost = set(expected["stories"]) - set(actual["stories"])
    pairs = Counter(flag[:2] for flag in actual["flags"])
    twice = pairs.total() - len(pairs)
    return make_row(scenario, injected, said, in_flight=in_flight, lost=len(lost), flagged_twice=twice)


def find_said(words: str, output: str, faults: int = 1) -> Said:
    """A message that speaks of all these faults, as that of a wait does."""
    return Said(words, faults if words in output else 0)


def find_crashed(ledger: Path, kills: int) -> Said:
    """The runs of killed commands, once another one has begun: none of them may seem to be still running."""
    with closing(sqlite3.connect(ledger)) as db:
        [(running,)] = db.execute("SELECT count(*) FROM runs WHERE status = 'running'")
        [(crashed,)] = db.execute("SELECT count(*) FROM runs WHERE status = 'crashed'")
    return Said("exit code -9, run crashed" if crashed else "exit code -9", kills - running)


def count_retries() -> Counter[str]:
    """The attempts that this process has repeated, by the reason in the metric."""
    found = Counter[str]()
    for metric in REGISTRY.collect():
        for sample in metric.samples:
            if sample.name == "neardup_retries_total":
                found[sample.labels["reason"]] += int(sample.value)
    return found


def table(rows: Iterable[Row]) -> list[str]:
    """The table in Markdown, with one line for each scenario; rows of the same one are added up."""
    out = list(HEAD)
    for scenario, group in groupby(sorted(rows), lambda row: row.scenario):
        of_scenario = list(group)
        injected, in_flight, lost, twice, silent = (
            sum(numbers)
            for numbers in zip(
                *((r.injected, r.in_flight, r.lost, r.flagged_twice, r.silent) for r in of_scenario), strict=True
            )
        )
        said = "; ".join(dict.fromkeys(row.said for row in of_scenario))
        seconds = tuple(chain.from_iterable(row.seconds for row in of_scenario))
        out.append(str(Row(scenario, injected, in_flight, lost, twice, silent, said, seconds)))
    return out
