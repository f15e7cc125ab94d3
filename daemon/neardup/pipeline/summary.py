"""What a run or a sweep did, counted."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from neardup.records import DeadLettered, Fingerprinted, Kind, Language, Outcome, Skipped


@dataclass(slots=True)
class Counts:
    """Counts of one run, so far."""

    fingerprinted: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    dead_lettered: Counter[str] = field(default_factory=Counter)
    flagged: Counter[str] = field(default_factory=Counter)

    @property
    def listed(self) -> int:
        """Every listed story ends in exactly one outcome."""
        return self.fingerprinted + self.skipped.total() + self.dead_lettered.total()

    def add(self, outcome: Outcome) -> None:
        match outcome:
            case Fingerprinted():
                self.fingerprinted += 1
            case Skipped():
                self.skipped[outcome.reason.value] += 1
            case DeadLettered():
                self.dead_lettered[outcome.reason.value] += 1

    def add_flags(self, news: Iterable[tuple[tuple[Language, Kind], int]]) -> None:
        for (_, kind), n in news:
            self.flagged[kind] += n

    def as_dict(self) -> dict[str, object]:
        return {
            "listed": self.listed,
            "fingerprinted": self.fingerprinted,
            "skipped": dict(sorted(self.skipped.items())),
            "dead_lettered": dict(sorted(self.dead_lettered.items())),
            "flagged": dict(sorted(self.flagged.items())),
        }


@dataclass(slots=True)
class Summary(ABC):
    """A run or a sweep: `done`, or `stopped` by a signal before its end.

    `started_at` is in milliseconds.  `warnings` maps each hook that failed to the reason.
    """

    command: str
    status: str = "stopped"
    started_at: int = 0
    seconds: float = 0.0
    warnings: dict[str, str] = field(default_factory=dict)

    @abstractmethod
    def as_dict(self) -> dict[str, object]:
        """The one object that `--json` ends with."""

    @abstractmethod
    def record(self) -> dict[str, object]:
        """The counts that the ledger keeps of the run."""


@dataclass(slots=True)
class RunSummary(Summary):
    """A run over a listing; `stages` are the latencies of its stages, as `metrics.latencies` gives them."""

    counts: Counts = field(default_factory=Counts)
    stages: dict[str, dict[str, float]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        rate = self.counts.listed / self.seconds if self.seconds else 0.0
        return {
            **self.counts.as_dict(),
            "seconds": round(self.seconds, 3),
            "stories_per_second": round(rate, 1),
            "warnings": self.warnings,
        }

    def record(self) -> dict[str, object]:
        return {**self.counts.as_dict(), "stages": self.stages}


@dataclass(slots=True)
class SweepSummary(Summary):
    """A sweep over the stories of the ledger.

    `candidates` are the pairs that it nominated, without those `left_out` by max_matches; of
    `capped_runs`, longer than max_bucket, not every pair was looked at.
    """

    stories: int = 0
    candidates: int = 0
    left_out: int = 0
    capped_runs: int = 0
    flagged: Counter[str] = field(default_factory=Counter)

    def as_dict(self) -> dict[str, object]:
        return {**self.record(), "warnings": self.warnings}

    def record(self) -> dict[str, object]:
        return {
            "stories": self.stories,
            "candidates": self.candidates,
            "left_out": self.left_out,
            "capped_runs": self.capped_runs,
            "flagged": dict(sorted(self.flagged.items())),
            "seconds": round(self.seconds, 3),
        }
