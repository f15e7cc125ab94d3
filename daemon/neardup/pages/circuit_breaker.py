"""The circuit breaker: a run ends when it is the store that fails, and not its pages.

`told` and `why_stop` decide, on tallies alone; `Breaker` asks them after each answer of the store.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from neardup.errors import Fatal, Forbidden, StoreDown, Transient
from neardup.pages.reader_process import Read
from neardup.records import Story

ReadPage = Callable[[Story, str | None], Awaitable[Read | None]]
Answer = Literal["fine", "failed", "refused"]
HORIZON = 10  # times breaker_after: so many stories back an outage late in a run is not diluted by the rest
FROM_THE_START = 10  # refusals and nothing else are no odd pages


@dataclass(frozen=True, slots=True)
class Tally:
    """Pages that the store was asked for, of late; those that it failed to give, of which some it refused."""

    asked: int = 0
    failed: int = 0
    refused: int = 0


def told(tally: Tally, answer: Answer, after: int) -> Tally:
    """One more answer.  The tally is halved when it reaches HORIZON times `after`, by which it forgets."""
    asked, failed, refused = tally.asked + 1, tally.failed + (answer != "fine"), tally.refused + (answer == "refused")
    if asked >= HORIZON * after:
        asked, failed, refused = asked // 2, failed // 2, refused // 2
    return Tally(asked, failed, refused)


def why_stop(tally: Tally, share: float, after: int) -> Literal["failing", "refusing"] | None:
    """Whether a run should go on: until `after` pages were asked for only a store that refuses each of them ends it."""
    if tally.refused == tally.asked >= FROM_THE_START:
        return "refusing"
    if tally.asked >= after and tally.failed > share * tally.asked:
        return "refusing" if 2 * tally.refused > tally.failed else "failing"
    return None


class Breaker:
    """`read`, until the share of its store errors passes `share`."""

    def __init__(self, read: ReadPage, share: float, after: int) -> None:
        self._read = read
        self._share = share
        self._after = after
        self._tally = Tally()

    async def __call__(self, story: Story, etag: str | None) -> Read | None:
        """Read a page.  Raises what `read` raises, and what ends the run: StoreDown or Fatal."""
        try:
            read = await self._read(story, etag)
        except (Forbidden, Transient) as error:
            stop = self._tell("refused" if isinstance(error, Forbidden) else "failed", error)
            if stop is None:
                raise
            raise stop from error
        except Exception:
            self._tell("fine")  # the page's own fault
            raise
        self._tell("fine")
        return read

    def _tell(self, answer: Answer, error: Exception | None = None) -> Fatal | None:
        """Count an answer; what is to end the run for it."""
        self._tally = told(self._tally, answer, self._after)
        if answer == "fine":
            return None
        failed, asked = self._tally.failed, self._tally.asked
        of = f"all of {asked:,} pages" if failed == asked else f"{failed:,} of the last {asked:,} pages"
        match why_stop(self._tally, self._share, self._after):
            case "refusing":
                return Fatal(f"the object store refused {of}, the last time: {error}")
            case "failing":
                return StoreDown(f"the object store failed at {of} (run.breaker_share), the last time: {error}")
        return None
