"""The circuit breaker: a run ends when it is the store that fails, and not its pages.

`counted` and `why_stop` decide, on tallies alone; `Breaker` asks them after each answer of the store.
"""

from dataclasses import dataclass
from typing import Literal

from neardup.errors import Fatal, StoreDown
from neardup.pages.results import PageResult, ReadFailed, ReadPage
from neardup.records import Dead, Story

Answer = Literal["fine", "failed", "refused"]
ANSWERS: dict[Dead, Answer] = {Dead.FORBIDDEN: "refused", Dead.STORE_ERROR: "failed"}
HORIZON = 10  # times breaker_after: so many stories back an outage late in a run is not diluted by the rest
FROM_THE_START = 10  # refusals and nothing else are no odd pages


@dataclass(frozen=True, slots=True)
class Tally:
    """Pages that the store was asked for recently; those that it failed to give, some of them refused."""

    asked: int = 0
    failed: int = 0
    refused: int = 0


def counted(tally: Tally, answer: Answer, after: int) -> Tally:
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

    async def __call__(self, story: Story, etag: str | None) -> PageResult:
        """Read a page.  Raises what `read` raises, and what ends the run: StoreDown or Fatal."""
        result = await self._read(story, etag)
        failure = result if isinstance(result, ReadFailed) else None
        answer = "fine" if failure is None else ANSWERS.get(failure.reason, "fine")  # or the page's own fault
        self._tally = counted(self._tally, answer, self._after)
        if failure is not None and answer != "fine":
            self._check(failure.error)
        return result

    def _check(self, error: str) -> None:
        """Raise what ends the run, should the store have failed too often; `error` is its last."""
        failed, asked = self._tally.failed, self._tally.asked
        of = f"all of {asked:,} pages" if failed == asked else f"{failed:,} of the last {asked:,} pages"
        match why_stop(self._tally, self._share, self._after):
            case "refusing":
                raise Fatal(f"the object store refused {of}, the last time: {error}")
            case "failing":
                raise StoreDown(f"the object store failed at {of} (run.breaker_share), the last time: {error}")
