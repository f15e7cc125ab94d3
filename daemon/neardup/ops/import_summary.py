"""What an import did, and the time that each part of it took."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

from neardup.pipeline.summary import Summary


@dataclass(frozen=True, slots=True)
class Seconds:
    """A time, and how much of it the process computed, on all threads."""

    wall: float = 0.0
    cpu: float = 0.0

    @classmethod
    def now(cls) -> Self:
        return cls(time.perf_counter(), time.process_time())

    def __add__(self, other: "Seconds") -> "Seconds":
        return Seconds(self.wall + other.wall, self.cpu + other.cpu)

    def __sub__(self, other: "Seconds") -> "Seconds":
        return Seconds(self.wall - other.wall, self.cpu - other.cpu)


@dataclass(slots=True)
class ImportSummary(Summary):
    """What an import did.

    `stories` were added.  Of the others, `known` are on record with the same text, `changed` with another text or
    language, and `forgotten` were forgotten on request.  `sweep_owed` says that pairs are still to be found.
    `parts` has the seconds of each part, and those of them that the process computed.
    """

    stories: int = 0
    known: int = 0
    changed: int = 0
    forgotten: int = 0
    flags: int = 0
    candidates: int = 0
    sweep_owed: bool = False
    parts: dict[str, Seconds] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        return {**self.record(), "warnings": self.warnings}

    def record(self) -> dict[str, object]:
        names = ("stories", "known", "changed", "forgotten", "flags", "candidates", "sweep_owed")
        parts = {part: {"seconds": round(n.wall, 3), "cpu": round(n.cpu, 3)} for part, n in self.parts.items()}
        seconds = {"seconds": round(self.seconds, 3), "parts": parts}
        return {name: getattr(self, name) for name in names} | seconds

    @contextmanager
    def timed(self, part: str, within: str | None = None) -> Iterator[None]:
        """Add the time that this takes to a part, and take it from the part `within` which it happens."""
        began = Seconds.now()
        try:
            yield
        finally:
            taken = Seconds.now() - began
            self.parts[part] = self.parts.get(part, Seconds()) + taken
            if within is not None:
                self.parts[within] = self.parts.get(within, Seconds()) - taken
