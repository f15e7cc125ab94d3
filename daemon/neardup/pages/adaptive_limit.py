"""A limit on the number of requests in flight, which adapts to the store and the network.

Additive increase, multiplicative decrease (Chiu and Jain, 1989).  Congestion shows in the latency, as in TCP Vegas
(Brakmo and Peterson, SIGCOMM 1994), and in the store's own "slow down".  After each window of requests the limit
grows if their median latency is near the best one seen, and shrinks if it is several times as long: requests then wait
in a queue somewhere, and more of them would only wait longer.  Latency alone never shrinks the limit below START,
so that a store that stays slow is still read by several requests at once.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

START = 16
MIN_WINDOW = 16
UNCONGESTED = 2.0  # the limit grows up to this many times the best median latency
CONGESTED = 4.0  # the limit shrinks above this many times the best median latency
BEST_DOUBLES_SECONDS = 3600.0  # in which the best latency is taken to double, because conditions change


class AdaptiveLimit:
    """A limit on the number of requests in flight, between 1 and `most`, which the reader processes keep.

    `asked` is the number of pages that they were asked for: those above the limit wait there for others.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.perf_counter) -> None:
        self.limit = min(START, most)
        self.asked = 0
        self.window = 0  # the number of windows that ended
        self._most = most
        self._clock = clock
        self._alone_lock = asyncio.Lock()
        self._nothing_alone = asyncio.Event()  # no page is read alone, or waits for the others to be answered
        self._nothing_alone.set()
        self._nothing_asked = asyncio.Event()
        self._latencies: list[float] = []
        self._best = float("inf")
        self._best_at = clock()

    @property
    def in_flight(self) -> int:
        """The number of requests in flight."""
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
    async def together(self) -> AsyncIterator[None]:
        """Ask for one page inside, beside others."""
        await self.enter(1)
        try:
            yield
        finally:
            self.leave(1)

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Wait until all pages are answered, and keep others from being asked for until the block ends."""
        async with self._alone_lock:
            self._nothing_alone.clear()
            try:
                while self.asked:
                    self._nothing_asked.clear()
                    await self._nothing_asked.wait()
                self.asked = 1
                try:
                    yield
                finally:
                    self.asked = 0
            finally:
                self._nothing_alone.set()

    def slow_down(self, window: int) -> None:
        """The store refused a request of this window: halve the limit, once per window."""
        if window == self.window:
            self._set_limit(max(self.limit // 2, 1))

    def observe(self, latencies: Sequence[float]) -> None:
        """Take note of how many seconds requests took."""
        self._latencies += latencies
        if len(self._latencies) >= max(self.limit, MIN_WINDOW):
            from statistics import median  # noqa: PLC0415 - the first window ends long after the start

            self._set_limit(self._next_limit(median(self._latencies)))

    def _next_limit(self, latency: float) -> int:
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
