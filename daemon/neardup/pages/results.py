"""The results of reading a page, and the one table of the errors that become results.

An error that concerns one page becomes a result; one that ends the whole run stays an exception.
"""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from msgspec import Struct

from neardup.core.columns import NO_PAGES, PackedPages, StoryColumns
from neardup.core.page import PageFingerprinted, Unreadable
from neardup.core.verify.text import Text
from neardup.errors import Forbidden, Gone, NeardupError, OverBudget, Transient
from neardup.records import Dead, Skip, Story


class NotModified(Struct, frozen=True):
    """The page still has the given ETag."""


class ReadFailed(Struct, frozen=True):
    """The page could not be read, for a named reason; `error` is the message in full."""

    reason: Dead
    error: str


Failure = Unreadable | ReadFailed
PageResult = PageFingerprinted | NotModified | Failure
TextResult = Text | Failure
ReadPage = Callable[[Story, str | None], Awaitable[PageResult]]  # a story, and the last known ETag of its page


class PagesRead(Struct, frozen=True):
    """The results of reading some pages: those of `stories` were fingerprinted, in columns; `others` are objects."""

    stories: StoryColumns
    pages: PackedPages
    others: Sequence[tuple[Story, PageResult]]

    @property
    def ids(self) -> list[int]:
        """The stories whose pages were read."""
        return [*self.stories.ids, *(story.id for story, _ in self.others)]


Deliver = Callable[[PagesRead], Awaitable[None]]
# Reads the pages of stories, with the last known ETag of each, and delivers each result once, as it arrives.
ReadPages = Callable[[StoryColumns, Sequence[str | None], Deliver], Coroutine[Any, Any, None]]
DeliverText = Callable[[Story, TextResult], None]
# Reads what the texts of stories are compared by, and delivers each result once, as it arrives.
ReadTexts = Callable[[Sequence[Story], DeliverText], Awaitable[None]]


def read_singly(read: ReadPage) -> ReadPages:
    """A ReadPages that reads pages one after another, by `read`."""

    async def read_all(stories: StoryColumns, etags: Sequence[str | None], deliver: Deliver) -> None:
        for story, etag in zip(stories.stories(), etags, strict=True):
            await deliver(make_results([(story, await read(story, etag))]))

    return read_all


def make_results(results: Sequence[tuple[Story, PageResult]]) -> PagesRead:
    """The results of single pages."""
    made = [(story, result) for story, result in results if isinstance(result, PageFingerprinted)]
    return PagesRead(
        StoryColumns.of(story for story, _ in made),
        PackedPages.of(result for _, result in made) if made else NO_PAGES,
        [(story, result) for story, result in results if not isinstance(result, PageFingerprinted)],
    )


REASONS: dict[type[NeardupError], Skip | Dead] = {
    Gone: Skip.MISSING,
    OverBudget: Skip.OVER_BUDGET,
    Forbidden: Dead.FORBIDDEN,
    Transient: Dead.STORE_ERROR,  # after the last attempt
}


def make_failure(error: NeardupError) -> Failure:
    """The result for a page whose reading raised this error.  Raises the error if it ends the whole run."""
    match REASONS.get(type(error)):
        case Skip() as reason:
            return Unreadable(reason)
        case Dead() as reason:
            return ReadFailed(reason, str(error))
    raise error


def make_crash(error: Exception) -> ReadFailed:
    """The result for a page whose reading raised an unexpected error."""
    return ReadFailed(Dead.CRASHED, f"{type(error).__name__}: {error}")


def explain(failure: Failure) -> str:
    """Why a page has no text, in words for people."""
    match failure:
        case ReadFailed(error=error):
            return error
        case Unreadable(reason=Skip.MISSING):
            return "its page is gone"
        case Unreadable(reason=reason):
            return f"nothing to compare: {reason}"
