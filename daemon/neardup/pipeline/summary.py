"""What a run did, counted; the one object that `--json` ends with."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from neardup.records import DeadLettered, Fingerprinted, Kind, Language, Outcome, Skipped


@dataclass(slots=True)
class Counts:
    """Counts of one run, while it goes on."""

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


@dataclass(frozen=True, slots=True)
class Summary:
    """A run that has ended: `done`, or `stopped` by a signal before its source ended."""

    command: str
    status: str
    counts: Counts
    started_at: int
    seconds: float
    working_seconds: float

    def as_dict(self) -> dict[str, object]:
        rate = self.counts.listed / self.working_seconds if self.working_seconds else 0.0
        return {
            **self.counts.as_dict(),
            "seconds": round(self.seconds, 3),
            "stories_per_second": round(rate, 1),
        }
