"""The errors neardup raises: foreign ones are translated into these once, at the border."""

from typing import Self


class NeardupError(Exception):
    """Anything an operator can act on; its text is one clear line."""

    exit_code = 1
    run: int | None = None  # the id of the run that it ended


class Transient(NeardupError):
    """May work when tried again: the network, a busy server, another command at work.

    `reason` is a short, bounded word: a metric label.
    """

    exit_code = 75  # EX_TEMPFAIL of sysexits.h

    def __init__(self, message: str, reason: str = "unavailable") -> None:
        super().__init__(message)
        self.reason = reason

    def __reduce__(self) -> tuple[type[Self], tuple[str, str]]:
        return type(self), (str(self), self.reason)


class Stopped(NeardupError):
    """Told to stop before there was anything to drain."""

    exit_code = 0


class Conflict(NeardupError):
    """Somebody else has judged meanwhile what was about to be judged."""


class Interrupted(NeardupError):
    """The process that read a page ended, and not of anything that is to be tried less often for it.

    `over_it`: it was computing this very page.
    """

    def __init__(self, *, over_it: bool) -> None:
        super().__init__("a reading process ended")
        self.over_it = over_it


class Crashed(NeardupError):
    """Reading a page ends the process that reads it, each time."""


class Gone(NeardupError):
    """What was asked for is not there, and asking again will not bring it."""


class TooLarge(NeardupError):
    """The page is larger than content.max_bytes."""


class Fatal(NeardupError):
    """Trying again cannot help: somebody has to mend something first."""


class Forbidden(Fatal):
    """The store refuses access with these credentials."""


class StoreDown(Fatal):
    """The store does not work for any object now, which ends the run; a later run may succeed."""

    exit_code = 75  # EX_TEMPFAIL


class Misuse(Fatal):
    """A wrong command line or a wrong configuration."""

    exit_code = 2
