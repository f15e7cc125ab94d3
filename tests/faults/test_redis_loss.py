"""Redis loses all data or returns to an older state between two commands, and answers the next command."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import redis
from neardup.core.candidates.banding import Banding
from neardup.core.columns import Outcomes
from neardup.core.languages import LANGUAGES
from neardup.errors import Transient
from neardup.index.protocol import Index
from neardup.index.redis import Layout, open_redis
from neardup.index.redis.base import RedisIndex
from neardup.ledger import Ledger, outbox, stories
from neardup.pipeline import index_sync
from neardup.pipeline.index_sync import catch_up, rebuild
from neardup.pipeline.stages import MAX_BATCHES
from neardup.pipeline.writer import Writer
from neardup.records import Change, Fingerprinted, Outcome, Story
from redis.asyncio.connection import AbstractConnection
from structlog.testing import capture_logs

from tests.support.builders import fingerprint_of, stories_as_changes
from tests.support.faults.consistency import index_faults
from tests.support.faults.fault_table import Row, Said, make_row
from tests.support.languages import CODES, HINDI, TAMIL
from tests.support.passages import writer_of
from tests.support.sampling import CHAOS, crossed
from tests.support.servers import PROGRAMS

BANDINGS = dict.fromkeys(LANGUAGES, Banding())
VERSION = "v"
STRIDE = 1 if CHAOS > 1 else 17  # between the messages tested, of about 100 that a build sends
LAST = 6  # messages at the end of a build, each of which is tested
MESSAGES = 16  # more than a replay sends
EVERYTHING, RECENT = "everything", "the latest changes"
LAYOUTS: list[Layout] = ["documented", "compact"]
Work = Callable[[Ledger, Index], Awaitable[None]]


class Loss:
    """Drops the data of a Redis before the nth message: all of it, or what was written since message nth // 2.

    Unless `armed`, it starts counting after the next clear, which is too short for a Redis to restart in.  Where a
    clear is expected, what it would delete is not `lost`.
    """

    def __init__(self, url: str, *, everything: bool) -> None:
        self._client: Any = redis.Redis.from_url(url)
        self.url, self.everything = url, everything
        self.armed = self.clear_expected = self.lost = False
        self._saved: dict[bytes, bytes] = {}
        self.nth = self.sent = 0

    def arm(self, nth: int) -> None:
        self.nth, self.sent, self.armed, self.lost = nth, 0, True, False
        self._snapshot()

    def message(self) -> None:
        self.sent += self.armed
        if self.sent == self.nth // 2:
            self._snapshot()
        if self.sent == self.nth:
            self.lost = self._read_all() != self._saved and not self.clear_expected
            self._client.flushall()
            for key, value in self._saved.items():
                self._client.restore(key, 0, value)

    def _snapshot(self) -> None:
        if not self.everything:
            self._saved = self._read_all()

    def _read_all(self) -> dict[bytes, bytes]:
        return {key: self._client.dump(key) for key in self._client.scan_iter(count=5000)}

    def close(self) -> None:
        self._client.close()


@pytest.fixture
def loss(
    request: pytest.FixtureRequest, empty_server: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Loss]:
    lost, program = request.param
    loss = Loss(empty_server(program), everything=lost == EVERYTHING)
    send, clear = AbstractConnection.send_packed_command, RedisIndex.clear

    async def cleared(self: RedisIndex, *about: Any) -> None:
        await clear(self, *about)
        loss.clear_expected = False
        if not loss.armed:
            loss.arm(loss.nth)

    async def sent(self: AbstractConnection, command: bytes, check_health: bool = True) -> None:
        loss.message()
        await send(self, command, check_health)

    monkeypatch.setattr(AbstractConnection, "send_packed_command", sent)
    monkeypatch.setattr(RedisIndex, "clear", cleared)
    monkeypatch.setattr(index_sync, "REPLAY_CHANGES", 3)
    yield loss
    loss.close()


async def commit(ledger: Ledger, *texts: tuple[int, int]) -> None:
    """Commit stories (id, number of its text) of two languages."""
    outcomes: list[Outcome] = [
        Fingerprinted(Story(n, TAMIL if n % 2 else HINDI), fingerprint_of(text.to_bytes(16), bytes([text]) * 64), None)
        for n, text in texts
    ]
    await ledger.do(stories.commit, stories.Batch(Outcomes.of(outcomes), (), 1, {}, None))


async def replay(ledger: Ledger, index: Index) -> None:
    await catch_up(index, ledger, VERSION)


async def build(ledger: Ledger, index: Index) -> None:
    await rebuild(index, ledger, VERSION)


async def look_up(ledger: Ledger, index: Index) -> None:
    """Look up all stories in BATCHES lookups at once."""
    await catch_up(index, ledger, VERSION)
    writer = await writer_of(ledger, index, version=VERSION)
    await asyncio.gather(*(assert_all_found(writer, ledger, index) for _ in range(MAX_BATCHES)))


async def assert_all_found(writer: Writer, ledger: Ledger, index: Index) -> None:
    """Each probe finds all stories with its fingerprints, up to the last change that the lookup claims to have seen."""
    probes = [change.new for change in await ledger.do(stories_as_changes) if change.new]
    applied, results = await writer._look_up(index, probes)
    held: list[Change] = await ledger.do(stories_as_changes)
    for probe, result in zip(probes, results, strict=True):
        for change in held:
            if change.new == probe and change.number <= applied:
                assert change.number in result.numbers, f"story {change.story_id} is not found by its signature"
                by_id = change.story_id in result.ids or not hasattr(index, "_sinter")
                assert by_id, f"story {change.story_id} is not found by its SimHash"


async def until_it_works(work: Work, ledger: Ledger, index: Index) -> list[str]:
    """Repeat `work` while Redis fails, as a waiting run does; returns why it waits each time."""
    waits = list[str]()
    while True:
        try:
            await work(ledger, index)
        except Transient as error:
            waits.append(str(error))
        else:
            return waits


# What is lost, and of which server.
LOSSES = [*product([EVERYTHING, RECENT], PROGRAMS)]


@pytest.mark.parametrize(
    ("work", "layout", "loss"),
    [(work, layout, loss) for (layout, work), loss in crossed([*product(LAYOUTS, [replay, build, look_up])], LOSSES)],
    indirect=["loss"],
)
def test_any_loss_is_noticed_and_repaired(
    work: Work, layout: Layout, loss: Loss, tmp_path: Path, record_row: Callable[[Row], None]
) -> None:
    async def scenario() -> tuple[int, int]:
        injected = said = 0
        ledger, index = Ledger(tmp_path / "l.db"), await open_redis(loss.url, BANDINGS, CODES, layout)
        try:
            await commit(ledger, *((n, n) for n in range(1, 8)))
            loss.arm(0)
            loss.armed = loss.everything or work is not build
            await rebuild(index, ledger, VERSION)
            messages, nth = loss.sent, 0
            while loss.sent >= nth:
                nth += STRIDE if work is build and nth + STRIDE < messages - LAST else 1
                await rebuild(index, ledger, VERSION)
                await commit(ledger, (1, 100 + nth), (2, 3), (3, 2), (100 + nth % 2, 5), (200, 6))
                loss.arm(nth)
                loss.clear_expected = work is build
                loss.armed = loss.everything or work is not build
                with capture_logs() as lines:
                    waits = await until_it_works(work, ledger, index)
                    sent = loss.sent
                    last, applied = await ledger.do(outbox.read_last_seq), (await index.read_position()).applied
                    await catch_up(index, ledger, VERSION)
                words = [*waits, *(line["event"] for line in lines)]
                injected += loss.lost
                said += loss.lost and (any("the index has lost" in message for message in words) or applied != last)
                faults = index_faults(ledger.path, layout, loss.url)
                assert faults == [], f"lost before message {nth}: " + "\n".join(faults[:10])
                loss.sent = sent
        finally:
            await index.close()
            ledger.close()
        return injected, said

    injected, said = asyncio.run(scenario())
    assert injected > 3, "too few losses were injected"
    name = f"Redis: {'all data lost' if loss.everything else 'back to an older state'} between two commands"
    record_row(make_row(name, injected, Said("the index has lost, or lag of status", said)))


@pytest.mark.parametrize("layout", ["documented", "compact"])
async def test_a_cut_connection_applies_changes_wholly_or_not(
    layout: Layout, redis_or_valkey_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    send, left = AbstractConnection.send_packed_command, -1

    async def sent(self: AbstractConnection, command: bytes, check_health: bool = True) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise redis.ConnectionError("connection cut")
        await send(self, command, check_health)

    monkeypatch.setattr(AbstractConnection, "send_packed_command", sent)
    ledger, index = Ledger(tmp_path / "l.db"), await open_redis(redis_or_valkey_url, BANDINGS, CODES, layout)
    try:
        await rebuild(index, ledger, VERSION)
        for nth in range(1, MESSAGES):
            await commit(ledger, (1, 100 + nth), (2, 3 + nth), (200 + nth, 6))
            left = nth
            await until_it_works(replay, ledger, index)
            left = -1
            assert index_faults(ledger.path, layout, redis_or_valkey_url) == [], f"cut before message {nth}"
    finally:
        await index.close()
        ledger.close()
