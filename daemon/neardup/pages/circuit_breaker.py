"""The circuit breaker: it ends a run when the store fails, as opposed to single pages.

`with_answers` and `stop_reason` are pure functions of a tally; `CircuitBreaker` calls them after each answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from neardup.core.columns import StoryColumns
from neardup.errors import Fatal, StoreDown
from neardup.pages.results import Deliver, PageResult, PagesRead, ReadFailed, ReadPages
from neardup.records import Dead, Story, is_work

Answer = Literal["fine", "failed", "refused"]
ANSWERS: dict[Dead, Answer] = {Dead.FORBIDDEN: "refused", Dead.STORE_ERROR: "failed"}
TALLY_SPAN = 10  # times breaker_after: older answers fade, or they would dilute an outage late in a run
MIN_REFUSALS = 10  # with no other answer: so many are not a few odd pages


@dataclass(frozen=True, slots=True)
class Tally:
    """Recent requests for pages: all of them, those that failed, and those of the failed that were refused."""

    asked: int = 0
    failed: int = 0
    refused: int = 0


def with_answers(tally: Tally, answer: Answer, after: int, count: int = 1) -> Tally:
    """Count equal answers, one after another.

    A tally that reaches TALLY_SPAN times `after` is halved, so that old answers fade.
    """
    while count:
        step = min(count, max(TALLY_SPAN * after - tally.asked, 1))
        failed, refused = step * (answer != "fine"), step * (answer == "refused")
        tally = Tally(tally.asked + step, tally.failed + failed, tally.refused + refused)
        if tally.asked >= TALLY_SPAN * after:
            tally = Tally(tally.asked // 2, tally.failed // 2, tally.refused // 2)
        count -= step
    return tally


def stop_reason(tally: Tally, share: float, after: int) -> Literal["failing", "refusing"] | None:
    """Why a run should stop, or None.  Before `after` requests, only a store that refuses every one stops it."""
    if tally.refused == tally.asked >= MIN_REFUSALS:
        return "refusing"
    if tally.asked >= after and tally.failed > share * tally.asked:
        return "refusing" if 2 * tally.refused > tally.failed else "failing"
    return None


class CircuitBreaker:
    """Passes reads on to `read` until more than `share` of the recent answers are store errors."""

    def __init__(self, read: ReadPages, share: float, after: int) -> None:
        self._read = read
        self._share = share
        self._after = after
        self._tally = Tally()

    async def __call__(self, stories: StoryColumns, etags: Sequence[str | None], deliver: Deliver) -> None:
        """Read pages.  Raises what `read` and `deliver` raise, and StoreDown or Fatal when it ends the run."""

        async def judge(read: PagesRead) -> None:
            self._tally = with_answers(self._tally, "fine", self._after, len(read.stories))
            for story, result in read.others:
                self._judge(story, result)
            await deliver(read)

        await self._read(stories, etags, judge)

    def _judge(self, story: Story, result: PageResult) -> None:
        failure = result if isinstance(result, ReadFailed) else None
        answer = "fine" if failure is None else ANSWERS.get(failure.reason, "fine")  # others are the page's fault
        self._tally = with_answers(self._tally, answer, self._after)
        if failure is not None and answer != "fine":
            self._stop_if_failing("pages of works" if is_work(story.id) else "pages", failure.error)

    def _stop_if_failing(self, what: str, error: str) -> None:
        """Raise StoreDown or Fatal if the store has failed too often; `error` is its latest."""
        failed, asked = self._tally.failed, self._tally.asked
        pages = f"all of {asked:,} {what}" if failed == asked else f"{failed:,} of the last {asked:,} {what}"
        match stop_reason(self._tally, self._share, self._after):
            case "refusing":
                raise Fatal(f"the object store refused {pages}, the last time: {error}")
            case "failing":
                raise StoreDown(f"the object store failed at {pages} (run.breaker_share), the last time: {error}")
