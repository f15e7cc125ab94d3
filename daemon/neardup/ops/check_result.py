"""The results of the checks of `neardup doctor`."""

from dataclasses import dataclass
from enum import StrEnum

from neardup.errors import NeardupError


class Level(StrEnum):
    """The result of a check: a warning is a part that works, but whose data need a repair."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class NeedsRepair(NeardupError):
    """A part works, but its data need a repair."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check; `message` describes the part, or says what to repair."""

    part: str
    level: Level
    message: str

    @property
    def good(self) -> bool:
        return self.level is Level.OK
