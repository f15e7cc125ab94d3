"""What reading a page yields, and which error yields what: the one table of it.

An error that is of one page alone becomes a result; one that ends the whole run stays an exception.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from neardup.core.page import PageFingerprinted, PageShingled, PageText, Unreadable
from neardup.errors import Forbidden, Gone, NeardupError, OverBudget, TooLarge, Transient
from neardup.records import Dead, Skip, Story


@dataclass(frozen=True, slots=True)
class NotModified:
    """The page still has the ETag that was given."""


@dataclass(frozen=True, slots=True)
class ReadFailed:
    """The page could not be read, for a named reason; `error` says more."""

    reason: Dead
    error: str


Failure = Unreadable | ReadFailed
PageResult = PageFingerprinted | NotModified | Failure
ShingledResult = PageShingled | Failure
TextResult = PageText | Failure
ReadPage = Callable[[Story, str | None], Awaitable[PageResult]]  # a story, and the ETag that its page had

REASONS: dict[type[NeardupError], Skip | Dead] = {
    Gone: Skip.MISSING,
    TooLarge: Skip.TOO_LARGE,
    OverBudget: Skip.OVER_BUDGET,
    Forbidden: Dead.FORBIDDEN,
    Transient: Dead.STORE_ERROR,  # once the attempts are used up
}


def failure_of(error: NeardupError) -> Failure:
    """What an error makes of the page that it is about.  Raises the error where it ends the whole run."""
    match REASONS.get(type(error)):
        case Skip() as reason:
            return Unreadable(reason)
        case Dead() as reason:
            return ReadFailed(reason, str(error))
    raise error


def crash_of(error: Exception) -> ReadFailed:
    """What an error that nobody expected makes of the page that it is about."""
    return ReadFailed(Dead.CRASHED, f"{type(error).__name__}: {error}")


def explain(failure: Failure) -> str:
    """Why there is no text, for a person."""
    match failure:
        case ReadFailed(error=error):
            return error
        case Unreadable(reason=Skip.MISSING):
            return "its page is gone"
        case Unreadable(reason=Skip.TOO_LARGE):
            return "larger than content.max_bytes"
        case Unreadable(reason=reason):
            return f"nothing to compare: {reason}"
