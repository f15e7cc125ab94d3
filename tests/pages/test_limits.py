"""Laws: the limit stays between 1 and its maximum; it finds
how many requests a store serves at once, follows changes, and drops when the store answers "slow down".

Laws: the circuit breaker decides on its tallies alone, and a tally forgets old answers.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.pages.limits import (
    MIN_REFUSALS,
    MIN_WINDOW,
    START,
    TALLY_SPAN,
    AdaptiveLimit,
    Answer,
    Tally,
    count_answers,
    stop_reason,
)

from tests.support.sampling import count_examples


class SimulatedStore:
    """A store in simulated time: it serves `servers` requests at once, each in `seconds`; the others queue."""

    def __init__(self, most: int, servers: int, seconds: float) -> None:
        self.now = 0.0
        self.servers, self.seconds = servers, seconds
        self.is_refusing = False
        self.requests = AdaptiveLimit(most, clock=lambda: self.now)
        self.limits: list[int] = []
        self.most_in_flight = 0
        self._free: list[float] = []
        self._waiting: deque[asyncio.Event] = deque()
        self._events: list[tuple[float, int, asyncio.Event]] = []
        self._order = count()

    async def request(self, jitter: float) -> None:
        """A request that waits for its turn, as reader processes let them."""
        turn = asyncio.Event()
        self._waiting.append(turn)
        self._admit()
        await turn.wait()
        self.most_in_flight = max(self.most_in_flight, self.requests.in_flight)
        began, window = self.now, self.requests.window
        await self._serve(jitter)
        self.requests.leave(1)
        if self.is_refusing:
            self.requests.halve(window)
        else:
            self.requests.observe([self.now - began])
        self.limits.append(self.requests.limit)
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self.requests.asked < self.requests.limit:
            self.requests.asked += 1
            self._waiting.popleft().set()

    async def _serve(self, jitter: float) -> None:
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
            for _ in range(8):
                await asyncio.sleep(0)
            if self._events:
                self.now, _, done = heapq.heappop(self._events)
                done.set()
        await asyncio.gather(*tasks)


def jittered() -> Iterator[float]:
    """Factors of latency like a real store's: most are near 1, one in twenty is 3."""
    return (3.0 if n % 20 == 19 else 0.8 + 0.05 * (n * 7 % 9) for n in count())


@settings(deadline=None, max_examples=count_examples(30))
@given(st.integers(1, 40), st.integers(1, 60), st.lists(st.floats(0.1, 9), min_size=1, max_size=20))
async def test_requests_keep_the_limit_and_the_limit_its_bounds(most: int, servers: int, jitters: list[float]) -> None:
    store = SimulatedStore(most, servers, 0.02)
    await store.run(300, (jitters[n % len(jitters)] for n in count()))
    assert store.most_in_flight <= most
    assert all(1 <= limit <= most for limit in store.limits)
    assert store.requests.in_flight == 0


@given(st.integers(1, 500))
def test_the_limit_grows_by_an_eighth_or_by_one(limit: int) -> None:
    requests = AdaptiveLimit(1000)
    requests.limit = limit
    requests.observe([0.02] * max(limit, MIN_WINDOW))
    assert limit < requests.limit <= limit + max(limit / 8, 1)


async def test_a_store_without_a_queue_gets_the_maximum() -> None:
    store = SimulatedStore(64, 1000, 0.03)
    await store.run(3000, jittered())
    assert store.requests.limit == 64


@pytest.mark.parametrize("servers", [8, 20, 50])
async def test_requests_do_not_queue_up_at_a_narrow_store(servers: int) -> None:
    store = SimulatedStore(1000, servers, 0.02)
    await store.run(6000, jittered())
    assert servers <= store.requests.limit <= max(5 * servers, 2 * START), f"the store serves {servers} at once"


async def test_the_limit_follows_a_store_that_slows_and_recovers() -> None:
    store = SimulatedStore(128, 100, 0.02)
    await store.run(3000, jittered())
    quick = store.requests.limit
    store.servers = 8
    await store.run(3000, jittered())
    slow = store.requests.limit
    assert slow <= quick // 2, (quick, slow)
    store.servers = 100
    await store.run(6000, jittered())
    assert store.requests.limit >= quick // 2, (quick, slow, store.requests.limit)


async def test_slow_down_answers_halve_the_limit_until_they_stop() -> None:
    store = SimulatedStore(64, 1000, 0.03)
    await store.run(3000, jittered())
    store.is_refusing = True
    await store.run(64, jittered())
    assert store.requests.limit == 32, "the limit must halve once for all requests of one window"
    await store.run(200, jittered())
    assert store.requests.limit <= 4
    store.is_refusing = False
    await store.run(3000, jittered())
    assert store.requests.limit == 64


async def test_a_page_that_is_read_alone_has_no_company() -> None:
    limit, asked = AdaptiveLimit(8), list[int]()

    async def read(name: int) -> None:
        async with limit.ask_alone() if name % 3 == 0 else limit.ask_together():
            asked.append(name)
            assert name % 3 or asked == [name], "another page is in flight"
            await asyncio.sleep(0)
            assert name % 3 or asked == [name], "another page was begun meanwhile"
            asked.remove(name)

    await asyncio.gather(*map(read, range(20)))
    assert limit.asked == 0


async def test_pages_under_way_may_wait_for_another_while_one_waits_to_be_read_alone() -> None:
    limit = AdaptiveLimit(8)

    async def read_alone() -> None:
        async with limit.ask_alone():
            assert limit.asked == 1, "another page is in flight"

    async with asyncio.timeout(20):
        async with limit.ask_together():
            waiting = asyncio.create_task(read_alone())
            await asyncio.sleep(0)
            async with limit.ask_together():  # as the verification reads a text, for which the writer waits
                assert not waiting.done(), "a page was read alone beside others"
        await waiting


answers = st.sampled_from(["fine", "failed", "refused"])
shares = st.floats(0, 1)


def tally_of(results: list[Answer], after: int) -> Tally:
    tally = Tally()
    for answer in results:
        tally = count_answers(tally, answer, after)
    return tally


@given(st.lists(answers, max_size=200), st.integers(1, 50))
def test_a_tally_is_bounded_and_counts_recent_answers(results: list[Answer], after: int) -> None:
    tally = tally_of(results, after)
    assert 0 <= tally.refused <= tally.failed <= tally.requests <= TALLY_SPAN * after
    if len(results) < TALLY_SPAN * after:
        failed = sum(answer != "fine" for answer in results)
        assert tally == Tally(len(results), failed, results.count("refused"))


@given(st.lists(answers, max_size=50), answers, st.integers(0, 300), st.integers(1, 10))
def test_equal_answers_count_as_if_they_came_one_by_one(
    before: list[Answer], answer: Answer, count: int, after: int
) -> None:
    assert count_answers(tally_of(before, after), answer, after, count) == tally_of([*before, *[answer] * count], after)


@given(st.lists(answers, max_size=100), shares, st.integers(1, 50))
def test_the_breaker_opens_only_above_its_share(results: list[Answer], share: float, after: int) -> None:
    tally = tally_of(results, after)
    why = stop_reason(tally, share, after)
    if tally.requests < after and not (tally.refused == tally.requests >= MIN_REFUSALS):
        assert why is None
    elif tally.requests >= after:
        assert (why is not None) >= (tally.failed > share * tally.requests)
    if results and set(results) == {"fine"}:
        assert why is None, "the breaker opened without a failure"


@given(st.integers(0, 2_000), st.integers(1, 100))
def test_an_outage_is_noticed_after_any_number_of_successes(before: int, after: int) -> None:
    tally, failed = tally_of(["fine"] * before, after), 0
    while stop_reason(tally, 0.05, after) is None:
        tally, failed = count_answers(tally, "failed", after), failed + 1
    assert failed <= max(after, 0.06 * TALLY_SPAN * after + 2), "the outage was noticed too late"
