"""Laws: no more is in flight than the limit, and the limit stays between 1 and its maximum; it finds what a store can
serve at once, follows it when it changes, and gives way when the store asks for that.

A store in simulated time: it serves so many requests at once, each in `seconds`; the others wait in line.
"""

import asyncio
import heapq
from collections.abc import Iterator
from contextlib import suppress
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.errors import Transient
from neardup.pages.adaptive_limit import START, AdaptiveLimit


class Simulated:
    """Requests that are as many as `AdaptiveLimit` lets in, answered in the order of simulated time."""

    def __init__(self, most: int, servers: int, seconds: float) -> None:
        self.now = 0.0
        self.servers, self.seconds = servers, seconds
        self.refusing = False
        self.gate = AdaptiveLimit(most, clock=lambda: self.now)
        self.limits: list[int] = []
        self.most_in_flight = 0
        self._free: list[float] = []
        self._events: list[tuple[float, int, asyncio.Event]] = []
        self._order = count()

    async def request(self, jitter: float) -> None:
        with suppress(Transient):
            async with self.gate.slot():
                self.most_in_flight = max(self.most_in_flight, self.gate.in_flight)
                assert self.gate.in_flight <= max(self.gate.limit, self.most_in_flight)
                await self._served(jitter)
                if self.refusing:
                    raise Transient("503", "slow_down")
        self.limits.append(self.gate.limit)

    async def _served(self, jitter: float) -> None:
        while len(self._free) > self.servers:
            heapq.heappop(self._free)
        begin = max(self.now, heapq.heappop(self._free)) if len(self._free) >= self.servers else self.now
        end = begin + self.seconds * jitter
        heapq.heappush(self._free, end)
        done = asyncio.Event()
        heapq.heappush(self._events, (end, next(self._order), done))
        await done.wait()

    async def run(self, requests: int, jitters: Iterator[float]) -> None:
        tasks = [asyncio.create_task(self.request(next(jitters))) for _ in range(requests)]
        while not all(task.done() for task in tasks):
            for _ in range(4):
                await asyncio.sleep(0)
            if self._events:
                self.now, _, done = heapq.heappop(self._events)
                done.set()
        await asyncio.gather(*tasks)


def even() -> Iterator[float]:
    """Latencies that vary as a store's do: most are near the median, one in twenty is three times as long."""
    return (3.0 if n % 20 == 19 else 0.8 + 0.05 * (n * 7 % 9) for n in count())


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 40), st.integers(1, 60), st.lists(st.floats(0.1, 9), min_size=1, max_size=20))
async def test_the_limit_is_kept_and_stays_in_its_bounds(most: int, servers: int, jitters: list[float]) -> None:
    store = Simulated(most, servers, 0.02)
    await store.run(300, (jitters[n % len(jitters)] for n in count()))
    assert store.most_in_flight <= most
    assert all(1 <= limit <= most for limit in store.limits)
    assert store.gate.in_flight == 0


async def test_a_store_without_a_line_is_asked_for_all_that_is_allowed() -> None:
    store = Simulated(64, 1000, 0.03)
    await store.run(3000, even())
    assert store.gate.limit == 64


@pytest.mark.parametrize("servers", [8, 20, 50])
async def test_requests_do_not_pile_up_before_a_store_that_serves_few_at_once(servers: int) -> None:
    store = Simulated(1000, servers, 0.02)
    await store.run(6000, even())
    assert servers <= store.gate.limit <= max(5 * servers, 2 * START), f"{servers} are served at once"


async def test_the_limit_follows_a_store_that_grows_slow_and_recovers() -> None:
    store = Simulated(128, 100, 0.02)
    await store.run(3000, even())
    quick = store.gate.limit
    store.servers = 8
    await store.run(3000, even())
    slow = store.gate.limit
    assert slow <= quick // 2, (quick, slow)
    store.servers = 100
    await store.run(6000, even())
    assert store.gate.limit >= quick // 2, (quick, slow, store.gate.limit)


async def test_a_store_that_asks_for_less_is_given_way_to_and_asked_for_more_again() -> None:
    store = Simulated(64, 1000, 0.03)
    await store.run(3000, even())
    store.refusing = True
    await store.run(64, even())
    assert store.gate.limit == 32, "one answer to all refusals of what was in flight"
    await store.run(200, even())
    assert store.gate.limit <= 4
    store.refusing = False
    await store.run(3000, even())
    assert store.gate.limit == 64
