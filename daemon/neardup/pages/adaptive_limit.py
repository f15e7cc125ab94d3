"""How many requests may be in flight: found by trying, as the store and the network are today.

Additive increase, multiplicative decrease (Chiu and Jain, 1989), with latency as the sign of
congestion beside the store's own word (Jacobson's congestion avoidance as TCP Vegas has it: Brakmo
and Peterson, SIGCOMM 1994).  After each window of requests the limit grows while their median latency
stays near the best that was seen, and shrinks once it is a multiple of it: then requests wait
somewhere, and more of them would only wait longer.  Latency alone shrinks it no further than to START:
a store that has become slow for good is still read by a few at once.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from statistics import median

from neardup.errors import Transient

START = 16
LEAST_WINDOW = 16
UNHURRIED = 2.0  # times the best median latency: the limit grows
CONGESTED = 4.0  # times the best: it shrinks
FORGETTING_SECONDS = 3600.0  # in which the best doubles: what was possible need not be now


class AdaptiveLimit:
    """A limit between 1 and `most` on what is in flight at once."""

    def __init__(self, most: int, clock: Callable[[], float] = time.perf_counter) -> None:
        self.limit = min(START, most)
        self.in_flight = 0
        self._most = most
        self._clock = clock
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._solo = asyncio.Lock()
        self._closed = False
        self._empty = asyncio.Event()
        self._latencies: list[float] = []
        self._best = float("inf")
        self._best_at = clock()
        self._windows = 0

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a place, and hold it; a Transient that says `slow_down` halves the limit."""
        await self._enter()
        began, window = self._clock(), self._windows
        try:
            yield
        except Transient as error:
            # one answer to all that were in flight together
            if error.reason == "slow_down" and window == self._windows:
                self._adapt(max(self.limit // 2, 1))
            raise
        else:
            self._learn(self._clock() - began)
        finally:
            self._leave()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Wait until nothing is in flight, and let nothing else in meanwhile."""
        async with self._solo:
            self._closed = True
            try:
                while self.in_flight:
                    self._empty.clear()
                    await self._empty.wait()
                self.in_flight = 1
                try:
                    yield
                finally:
                    self.in_flight = 0
            finally:
                self._closed = False
                self._admit()

    async def _enter(self) -> None:
        while self._closed or self.in_flight >= self.limit:
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            await place
        self.in_flight += 1

    def _leave(self) -> None:
        self.in_flight -= 1
        if not self.in_flight:
            self._empty.set()
        self._admit()

    def _admit(self) -> None:
        free = 0 if self._closed else self.limit - self.in_flight
        while self._waiting and free > 0:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                free -= 1

    def _learn(self, seconds: float) -> None:
        self._latencies.append(seconds)
        if len(self._latencies) >= max(self.limit, LEAST_WINDOW):
            self._adapt(self._better(median(self._latencies)))

    def _better(self, typical: float) -> int:
        """The limit for the next window, after one of this median latency."""
        now = self._clock()
        self._best = min(self._best * 2 ** ((now - self._best_at) / FORGETTING_SECONDS), typical)
        self._best_at = now
        if typical > CONGESTED * self._best:
            return max(self.limit * 3 // 4, min(self.limit, START))
        if typical <= UNHURRIED * self._best:
            return min(self.limit + max(self.limit // 8, 1), self._most)
        return self.limit

    def _adapt(self, limit: int) -> None:
        self.limit = limit
        self._windows += 1
        self._latencies.clear()
