"""The errors that neardup raises.  Errors of libraries are translated into these where the library is called.

A library that only some commands or settings need is an extra of the package; one that is missing is a Misuse.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class NeardupError(Exception):
    """An error that an operator can act on; its message is one line."""

    exit_code = 1
    run: int | None = None  # the id of the run that the error ended


class Transient(NeardupError):
    """May succeed when repeated: the network failed, a server is busy, another command is running.

    `reason` is a metric label, one of a few fixed words.
    """

    exit_code = 75  # EX_TEMPFAIL of sysexits.h
    reason = "unavailable"

    def __init__(self, message: str, reason: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason or self.reason


class IndexDamaged(Transient):
    """The index holds what neardup did not write there.  Its position is dropped, so the next attempt rebuilds it."""

    reason = "index_damaged"


class PassagesDamaged(Transient):
    """A segment of the passage index is damaged.  Once it is dropped, its stories are read again.

    Their numbers in the ledger are `first` to `last`.
    """

    reason = "passages_damaged"

    def __init__(self, segment: str, first: int, last: int) -> None:
        super().__init__(f"the passage index is damaged: {segment}, stories with the numbers {first} to {last}")
        self.segment, self.first, self.last = segment, first, last


class VectorsDamaged(Transient):
    """The vectors of a story are not those that were written."""

    reason = "vectors_damaged"

    def __init__(self, story_id: int) -> None:
        super().__init__(f"the vectors of story {story_id} are damaged: the next `neardup embed` makes them again")
        self.story_id = story_id


class LedgerReplaced(Transient):
    """Another file has the name of the ledger, or none has: what is written to the open one is lost."""

    reason = "ledger_replaced"


class Stopped(NeardupError):
    """The command was asked to stop before it began its work."""

    exit_code = 0


class Conflict(NeardupError):
    """What a moderator asks for does not fit the present state, mostly because another was faster."""


class Forgotten(NeardupError):
    """The story was forgotten on request, and is not stored again unless that is asked for."""


class ReaderDied(NeardupError):
    """A reader process ended while it computed a page; `computing` says whether it was this one."""

    def __init__(self, *, computing: bool) -> None:
        super().__init__("a reader process ended")
        self.computing = computing


class OverBudget(NeardupError):
    """A request exceeds its limit of a `resource`, "time" or "memory"."""

    def __init__(self, resource: str) -> None:
        super().__init__(f"takes too much {resource}")
        self.resource = resource


class Gone(NeardupError):
    """The object or file does not exist; repeating the request does not help."""


class TooLarge(NeardupError):
    """The page is larger than content.max_bytes."""


class Fatal(NeardupError):
    """Ends the command: repeating within it does not help."""


class Forbidden(Fatal):
    """The store refuses access with these credentials."""


class StoreDown(Fatal):
    """The store currently fails for every object, which ends the run; a later run may succeed."""

    exit_code = 75  # EX_TEMPFAIL


class Misuse(Fatal):
    """A wrong command line or a wrong configuration."""

    exit_code = 2


@contextmanager
def needs_extra(extra: str, what: str) -> Iterator[None]:
    """Raise Misuse, which says how to install the extra, if a library that is imported inside is not installed."""
    try:
        yield
    except ImportError as error:
        raise Misuse(f"{what} needs {error.name or extra}: {explain_install(extra)}") from error


def explain_install(extra: str) -> str:
    return f"pip install 'neardup[{extra}]'"
