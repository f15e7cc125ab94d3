"""A limit on the number of requests in flight, which adapts to the store and the network.

Additive increase, multiplicative decrease (Chiu and Jain, 1989).  Congestion shows in the latency, as in TCP Vegas
(Brakmo and Peterson, SIGCOMM 1994), and in the store's own "slow down".  After each window of requests the limit
grows if their median latency is near the best one seen, and shrinks if it is several times as long: requests then wait
in a queue somewhere, and more of them would only wait longer.  Latency alone never shrinks the limit below START,
so that a store that stays slow is still read by several requests at once.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from neardup.errors import Transient

START = 16
MIN_WINDOW = 16
UNCONGESTED = 2.0  # the limit grows up to this many times the best median latency
CONGESTED = 4.0  # the limit shrinks above this many times the best median latency
BEST_DOUBLES_SECONDS = 3600.0  # in which the best latency is taken to double, because conditions change


class AdaptiveLimit:
    """A limit on the number of requests in flight, between 1 and `most`."""

    def __init__(self, most: int, clock: Callable[[], float] = time.perf_counter) -> None:
        self.limit = min(START, most)
        self.in_flight = 0
        self._most = most
        self._clock = clock
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._alone_lock = asyncio.Lock()
        self._is_alone = False  # a request runs alone, or waits for the others to end
        self._none_in_flight = asyncio.Event()
        self._latencies: list[float] = []
        self._best = float("inf")
        self._best_at = clock()
        self._window = 0  # the number of windows that ended

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a free slot and occupy it; a Transient for `slow_down` halves the limit, once per window."""
        await self._enter()
        began, window = self._clock(), self._window
        try:
            yield
        except Transient as error:
            if error.reason == "slow_down" and window == self._window:
                self._set_limit(max(self.limit // 2, 1))
            raise
        else:
            self._observe(self._clock() - began)
        finally:
            self._leave()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Wait until no request is in flight, and keep other requests waiting until the block ends."""
        async with self._alone_lock:
            self._is_alone = True
            try:
                while self.in_flight:
                    self._none_in_flight.clear()
                    await self._none_in_flight.wait()
                self.in_flight = 1
                try:
                    yield
                finally:
                    self.in_flight = 0
            finally:
                self._is_alone = False
                self._admit()

    async def _enter(self) -> None:
        while self._is_alone or self.in_flight >= self.limit:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        self.in_flight += 1

    def _leave(self) -> None:
        self.in_flight -= 1
        if not self.in_flight:
            self._none_in_flight.set()
        self._admit()

    def _admit(self) -> None:
        """Wake as many waiting requests as there are free slots."""
        free = 0 if self._is_alone else self.limit - self.in_flight
        while self._waiting and free > 0:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1

    def _observe(self, seconds: float) -> None:
        self._latencies.append(seconds)
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
        self._window += 1
        self._latencies.clear()
