"""What protects the object store: a circuit breaker for a run, and a limit on the requests in flight.

The breaker ends a run when the store fails, as opposed to single pages.  `count_answers` and `stop_reason` are pure
functions of a tally; `CircuitBreaker` calls them after each answer.

The limit adapts to the store and the network: additive increase, multiplicative decrease (Chiu and Jain, 1989).
Congestion shows in the latency, as in TCP Vegas (Brakmo and Peterson, SIGCOMM 1994), and in the store's own "slow
down".  After each window of requests the limit grows if their median latency is near the best one seen, and shrinks if
it is several times as long: requests then wait in a queue somewhere, and more of them would only wait longer.  Latency
alone never shrinks the limit below START, so that a store that stays slow is still read by several requests at once.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Literal

from msgspec import Struct

from neardup.core.columns import StoryColumns
from neardup.errors import Fatal, StoreDown
from neardup.pages.results import Deliver, PageResult, PagesRead, ReadFailed, ReadPages
from neardup.records import Dead, Story, is_work

Answer = Literal["fine", "failed", "refused"]
ANSWERS: dict[Dead, Answer] = {Dead.FORBIDDEN: "refused", Dead.STORE_ERROR: "failed"}
TALLY_SPAN = 10  # times breaker_after: older answers fade, or they would dilute an outage late in a run
MIN_REFUSALS = 10  # the fewest requests, all refused, that stop a run before `breaker_after`
START = 16
MIN_WINDOW = 16
UNCONGESTED = 2.0  # the limit grows up to this many times the best median latency
CONGESTED = 4.0  # the limit shrinks above this many times the best median latency
BEST_DOUBLES_SECONDS = 3600.0  # in which the best latency is taken to double, because conditions change


class Tally(Struct, frozen=True):
    """Recent requests for pages: all of them, those that failed, and those of the failed that were refused."""

    requests: int = 0
    failed: int = 0
    refused: int = 0


def count_answers(tally: Tally, answer: Answer, after: int, count: int = 1) -> Tally:
    """Count equal answers, one after another.

    A tally that reaches TALLY_SPAN times `after` is halved, so that old answers fade.
    """
    while count:
        step = min(count, max(TALLY_SPAN * after - tally.requests, 1))
        failed, refused = step * (answer != "fine"), step * (answer == "refused")
        tally = Tally(tally.requests + step, tally.failed + failed, tally.refused + refused)
        if tally.requests >= TALLY_SPAN * after:
            tally = Tally(tally.requests // 2, tally.failed // 2, tally.refused // 2)
        count -= step
    return tally


def stop_reason(tally: Tally, share: float, after: int) -> Literal["failing", "refusing"] | None:
    """Why a run should stop, or None.  Before `after` requests, only a store that refuses every one stops it."""
    if tally.refused == tally.requests >= MIN_REFUSALS:
        return "refusing"
    if tally.requests >= after and tally.failed > share * tally.requests:
        return "refusing" if 2 * tally.refused > tally.failed else "failing"
    return None


class CircuitBreaker(Struct):
    """Passes reads on to `read` until more than `share` of the recent answers are store errors."""

    read: ReadPages
    share: float
    after: int
    tally: Tally = Tally()

    async def __call__(self, stories: StoryColumns, etags: Sequence[str | None], deliver: Deliver) -> None:
        """Read pages.  Raises what `read` and `deliver` raise, and StoreDown or Fatal when it ends the run."""

        async def judge(read: PagesRead) -> None:
            self.tally = count_answers(self.tally, "fine", self.after, len(read.stories))
            for story, result in read.others:
                self._judge(story, result)
            await deliver(read)

        await self.read(stories, etags, judge)

    def _judge(self, story: Story, result: PageResult) -> None:
        failure = result if isinstance(result, ReadFailed) else None
        answer = "fine" if failure is None else ANSWERS.get(failure.reason, "fine")  # others are the page's fault
        self.tally = count_answers(self.tally, answer, self.after)
        if failure is not None and answer != "fine":
            self._stop_if_failing("pages of works" if is_work(story.id) else "pages", failure.error)

    def _stop_if_failing(self, what: str, error: str) -> None:
        """Raise StoreDown or Fatal if the store has failed too often; `error` is its latest."""
        failed, requests = self.tally.failed, self.tally.requests
        pages = f"all of {requests:,} {what}" if failed == requests else f"{failed:,} of the last {requests:,} {what}"
        match stop_reason(self.tally, self.share, self.after):
            case "refusing":
                raise Fatal(f"the object store refused {pages}, the last time: {error}")
            case "failing":
                raise StoreDown(f"the object store failed at {pages} (run.breaker_share), the last time: {error}")


class AdaptiveLimit:
    """A limit on the number of requests in flight, between 1 and `most`, which the reader processes keep to.

    `asked` is the number of pages that these were asked for and have not answered.  They hold back those above the
    limit until other requests end.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.perf_counter) -> None:
        self.limit = min(START, most)
        self.asked = 0
        self.window = 0  # the number of windows that ended
        self._most = most
        self._clock = clock
        self._nothing_alone = asyncio.Event()
        self._nothing_alone.set()
        self._nothing_asked = asyncio.Event()
        self._latencies: list[float] = []
        self._best = float("inf")
        self._best_at = clock()

    @property
    def in_flight(self) -> int:
        return min(self.asked, self.limit)

    async def enter(self, count: int) -> None:
        """Ask for so many pages, as soon as none is read alone."""
        while not self._nothing_alone.is_set():
            await self._nothing_alone.wait()
        self.asked += count

    def leave(self, count: int) -> None:
        """Take note that so many pages are answered."""
        self.asked -= count
        if not self.asked:
            self._nothing_asked.set()

    @asynccontextmanager
    async def ask_together(self) -> AsyncIterator[None]:
        """Ask for one page inside, beside others."""
        await self.enter(1)
        try:
            yield
        finally:
            self.leave(1)

    @asynccontextmanager
    async def ask_alone(self) -> AsyncIterator[None]:
        """Wait until all pages are answered, and keep others from being asked for until the block ends.

        A page that waits to be read alone keeps no other one waiting: the answers that it waits for may wait for those.
        """
        while self.asked:
            self._nothing_asked.clear()
            await self._nothing_asked.wait()
        self._nothing_alone.clear()
        self.asked = 1
        try:
            yield
        finally:
            self._nothing_alone.set()
            self.leave(1)

    def halve(self, window: int) -> None:
        """The store refused a request of this window: halve the limit, once per window."""
        if window == self.window:
            self._set_limit(max(self.limit // 2, 1))

    def observe(self, latencies: Sequence[float]) -> None:
        """Take note of how many seconds requests took."""
        self._latencies += latencies
        if len(self._latencies) >= max(self.limit, MIN_WINDOW):
            from statistics import median  # noqa: PLC0415 - the first window ends long after the start

            self._set_limit(self._find_next_limit(median(self._latencies)))

    def _find_next_limit(self, latency: float) -> int:
        """The limit for the next window, after a window with this median latency."""
        now = self._clock()
        self._best = min(self._best * 2 ** ((now - self._best_at) / BEST_DOUBLES_SECONDS), latency)
        self._best_at = now
        if latency > CONGESTED * self._best:
            return max(self.limit * 3 // 4, min(self.limit, START))
        if latency <= UNCONGESTED * self._best:
            return min(self.limit + max(self.limit // 8, 1), self._most)
        return self.limit

    def _set_limit(self, limit: int) -> None:
        """Set the limit and begin a new window."""
        self.limit = limit
        self.window += 1
        self._latencies.clear()
