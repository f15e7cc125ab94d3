"""The circuit breaker: a run ends when it is the store that fails, and not its pages.

`with_answer` and `stop_reason` decide, on tallies alone; `CircuitBreaker` asks them after each answer of the store.
"""

from dataclasses import dataclass
from typing import Literal

from neardup.errors import Fatal, StoreDown
from neardup.pages.results import PageResult, ReadFailed, ReadPage
from neardup.records import Dead, Story

Answer = Literal["fine", "failed", "refused"]
ANSWERS: dict[Dead, Answer] = {Dead.FORBIDDEN: "refused", Dead.STORE_ERROR: "failed"}
TALLY_SPAN = 10  # times breaker_after: so many stories back an outage late in a run is not diluted by the rest
MIN_REFUSALS = 10  # refusals and nothing else are no odd pages


@dataclass(frozen=True, slots=True)
class Tally:
    """Pages that the store was asked for recently; those that it failed to give, some of them refused."""

    asked: int = 0
    failed: int = 0
    refused: int = 0


def with_answer(tally: Tally, answer: Answer, after: int) -> Tally:
    """One more answer.  The tally is halved when it reaches TALLY_SPAN times `after`, by which it forgets."""
    asked, failed, refused = tally.asked + 1, tally.failed + (answer != "fine"), tally.refused + (answer == "refused")
    if asked >= TALLY_SPAN * after:
        asked, failed, refused = asked // 2, failed // 2, refused // 2
    return Tally(asked, failed, refused)


def stop_reason(tally: Tally, share: float, after: int) -> Literal["failing", "refusing"] | None:
    """Whether a run should go on: until `after` pages were asked for only a store that refuses each of them ends it."""
    if tally.refused == tally.asked >= MIN_REFUSALS:
        return "refusing"
    if tally.asked >= after and tally.failed > share * tally.asked:
        return "refusing" if 2 * tally.refused > tally.failed else "failing"
    return None


class CircuitBreaker:
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
        self._tally = with_answer(self._tally, answer, self._after)
        if failure is not None and answer != "fine":
            self._check(failure.error)
        return result

    def _check(self, error: str) -> None:
        """Raise what ends the run, should the store have failed too often; `error` is its last."""
        failed, asked = self._tally.failed, self._tally.asked
        of = f"all of {asked:,} pages" if failed == asked else f"{failed:,} of the last {asked:,} pages"
        match stop_reason(self._tally, self._share, self._after):
            case "refusing":
                raise Fatal(f"the object store refused {of}, the last time: {error}")
            case "failing":
                raise StoreDown(f"the object store failed at {of} (run.breaker_share), the last time: {error}")
