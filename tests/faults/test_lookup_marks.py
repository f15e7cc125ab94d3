"""Law: whatever happens to Redis before or during a lookup, the lookup claims no more than it saw."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import redis
from neardup.core.columns import Outcomes
from neardup.index.redis import Layout, open_redis
from neardup.index.redis.base import RedisIndex
from neardup.index.redis.client import Command
from neardup.ledger import Ledger, versions
from neardup.pipeline.index_sync import catch_up, rebuild
from neardup.records import Fingerprinted, Story

from tests.faults.test_redis_loss import BANDINGS, VERSION, assert_all_found, commit, writer_of
from tests.support.builders import fingerprint_of
from tests.support.languages import CODES, HINDI
from tests.support.sampling import sample_cases

LOOKUP = 4  # the least commands of a lookup: marks, one read, marks


class Interrupted:
    """Runs actions in the middle of the next pipeline of a lookup, each before one of its commands."""

    def __init__(self, index: RedisIndex, actions: Sequence[tuple[int, Callable[[], Awaitable[object]]]]) -> None:
        self._send = index._send
        self._actions = actions
        self.commands = 0
        vars(index)["_send"] = self

    async def __call__(self, commands: Sequence[Command]) -> list[object]:
        if len(commands) < LOOKUP:
            return await self._send(commands)
        actions, self._actions = self._actions, ()
        self.commands = max(self.commands, len(commands))
        replies, done = list[object](), 0
        for at, action in actions:
            replies += await self._send(commands[done:at])
            done = max(done, at)
            await action()
        return replies + await self._send(commands[done:])


@pytest.mark.parametrize("layout", ["documented", "compact"])
async def test_an_interrupted_lookup_claims_no_more_than_it_saw(layout: Layout, redis_url: str, tmp_path: Path) -> None:
    ledger, index = Ledger(tmp_path / "l.db"), await open_redis(redis_url, BANDINGS, CODES, layout)
    client: Any = redis.Redis.from_url(redis_url)
    await commit(ledger, *((n, n) for n in range(1, 8)))
    await rebuild(index, ledger, VERSION)
    writer, first, commands = await writer_of(ledger, index), 0, 1

    async def insert() -> None:
        await commit(ledger, (100 + first, 1))
        await catch_up(index, ledger, VERSION)

    async def lose() -> None:
        client.flushall()

    try:
        while first <= commands:
            for second in sample_cases(range(first, commands + 1), 2):
                for actions in (
                    [(first, insert)],
                    [(first, lose)],
                    [(first, lose), (second, lambda: writer._repair(index))],
                ):
                    Interrupted(index, actions)
                    await assert_all_found(writer, ledger, index)
                    commands = vars(index).pop("_send").commands
            first += 1
    finally:
        client.close()
        await index.close()
        ledger.close()


@pytest.mark.parametrize("applied", [0, 10**6], ids=["behind", "ahead"])
async def test_an_index_far_from_its_ledger_is_repaired_before_use(
    applied: int, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "MAX_UNINDEXED", 3)
    ledger, index = Ledger(tmp_path / "l.db"), await open_redis(redis_url, BANDINGS, CODES, "documented")
    await rebuild(index, ledger, VERSION)
    await commit(ledger, *((n, 1) for n in range(2, 14, 2)))
    await index.apply([], applied)
    outcome = Fingerprinted(Story(100, HINDI), fingerprint_of((1).to_bytes(16), bytes([1]) * 64), None)
    async with await writer_of(ledger, index) as writer:
        looked_up = await writer.look_up(Outcomes.of([outcome]))
        assert looked_up is not None
        nominees = await writer._nominate(index, looked_up)
    assert nominees[100].matches == tuple(range(2, 14, 2))
    await index.close()
    ledger.close()
