"""Law: whatever a server sends that is not Redis's protocol, or not the reply expected, Redis does not answer.

Law: whatever happens to Redis before or during a lookup, the lookup claims no more than it saw.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from neardup.core.columns import Outcomes
from neardup.errors import Fatal, Transient
from neardup.index.redis import Layout, open_redis
from neardup.index.redis.base import RedisIndex
from neardup.index.redis.client import Command, translate_errors
from neardup.ledger import Ledger, versions
from neardup.pipeline.index_sync import catch_up, rebuild
from neardup.records import BandedFingerprint, Change, Fingerprinted, Story
from redis import exceptions

from tests.faults.test_redis_loss import BANDINGS, VERSION, assert_all_found, commit
from tests.support.builders import fingerprint_of
from tests.support.faults.fault_proxy import Connections
from tests.support.faults.fault_table import Row, find_said, make_row
from tests.support.languages import CODES, HINDI
from tests.support.passages import writer_of
from tests.support.sampling import count_examples, sample_cases

MESSAGE = 1 << 20


class GarblingServer:
    """Answers each message with `garbage` and closes the connection, or passes it on while `garbage` is None."""

    def __init__(self, url: str) -> None:
        self.url = ""
        self.garbage: bytes | None = None
        self._socket = url.removeprefix("unix://")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve the connection of a client until either side closes it."""
        from_redis, to_redis = await asyncio.open_unix_connection(self._socket)
        back = asyncio.create_task(self._pass_back(from_redis, writer))
        try:
            with suppress(OSError):
                while message := await reader.read(MESSAGE):
                    if self.garbage is not None:
                        writer.write(self.garbage)
                        break
                    to_redis.write(message)
        finally:
            back.cancel()
            to_redis.close()

    async def _pass_back(self, from_redis: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while reply := await from_redis.read(MESSAGE):
                writer.write(reply)


@asynccontextmanager
async def garbling(url: str) -> AsyncIterator[GarblingServer]:
    """A server in front of the Redis on a unix socket."""
    made = GarblingServer(url)
    connections = Connections(made.serve)
    server = await asyncio.start_server(connections.accept, "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    made.url = f"redis://127.0.0.1:{port}"
    try:
        yield made
    finally:
        server.close()
        await connections.end()


STORY = Change(0, 7, None, BandedFingerprint(HINDI, bytes(16), bytes(64)), 7)
GARBAGE = {
    "a web server": b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\n\r\n<html>",
    "TLS": b"\x15\x03\x01\x00\x02\x02\x0a",
    "SSH": b"SSH-2.0-OpenSSH_9.2\r\n",
    "zeros": bytes(64),
    "nothing": b"",
    "a text": b"+OK\r\n" * 200,
    "a number": b":5\r\n" * 200,
    "an empty list": b"*0\r\n" * 200,
    "no value": b"$-1\r\n" * 200,
    "no list": b"*-1\r\n" * 200,
    "lists in lists": b"*1\r\n*1\r\n:1\r\n" * 200,
    "a long value that ends early": b"$1000000\r\nshort",
    "a length that is no number": b"$abc\r\n\r\n",
    "a value longer than said": b"$1\r\nabcdef\r\n",
}
Call = Callable[[RedisIndex], Awaitable[object]]
CALLS: dict[str, Call] = {
    "read_position": lambda index: index.read_position(),
    "look_up": lambda index: index.look_up([BandedFingerprint(HINDI, bytes(16), bytes(64))]),
    "apply": lambda index: index.apply([STORY], 1),
    "clear": lambda index: index.clear("ledger", "version"),
    "admit": lambda index: index.admit("version"),
    "count_stories": lambda index: index.count_stories(),
    "count_missing": lambda index: index.count_missing([STORY]),
    "restore": lambda index: index.restore([STORY]),
    "find_problem": lambda index: index.find_problem(),
}


async def answers(call: Call, garbage: bytes, layout: Layout, url: str) -> str:
    """The call must raise Transient, or misread nothing: some garbage is a valid reply to some calls.

    Returns the message of the error.
    """
    async with garbling(url) as server:
        index = await open_redis(server.url, BANDINGS, CODES, layout)
        await index.clear("ledger", "version")
        server.garbage = garbage
        try:
            await call(index)
        except Transient as error:
            return str(error)
        finally:
            server.garbage = None
            await index.close()
    return ""


@pytest.mark.parametrize("layout", ["documented", "compact"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_garbage_during_a_call_is_waited_for(call: Call, layout: Layout, redis_url: str) -> None:
    for garbage in sample_cases([*GARBAGE.values()], 5):
        asyncio.run(answers(call, garbage, layout, redis_url))


@given(
    garbage=st.binary(max_size=40)
    | st.builds(lambda kind, rest: kind + rest, st.sampled_from([b"*", b"$", b":", b"+"]), st.binary(max_size=20))
)
@settings(max_examples=count_examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_bytes_are_waited_for(garbage: bytes, redis_url: str) -> None:
    asyncio.run(answers(CALLS["look_up"], garbage, "documented", redis_url))


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
def test_a_server_that_is_not_redis_does_not_answer(
    garbage: bytes, redis_url: str, record_row: Callable[[Row], None]
) -> None:
    async def open_it() -> None:
        async with garbling(redis_url) as server:
            server.garbage = garbage
            await open_redis(server.url, BANDINGS, CODES)

    with pytest.raises(Transient) as raised:
        asyncio.run(open_it())
    record_row(
        make_row("Redis: another server at its address", 1, find_said("Redis does not answer", str(raised.value)))
    )


@pytest.mark.parametrize(
    "error",
    [
        exceptions.TryAgainError("Multiple keys request during rehashing of slot"),
        exceptions.MovedError("3999 127.0.0.1:6381"),
        exceptions.AskError("3999 127.0.0.1:6381"),
        exceptions.ClusterDownError("The cluster is down"),
        exceptions.ClusterError("TTL exhausted."),
        exceptions.MasterDownError("Link with MASTER is down"),
        exceptions.SlotNotCoveredError('Slot "7" is not covered by the cluster.'),
        exceptions.RedisClusterException("Redis Cluster cannot be connected."),
        exceptions.ExecAbortError("Transaction discarded because of previous errors."),
        exceptions.WatchError("Slot rebalancing occurred while watching keys"),
        exceptions.InvalidResponse("Protocol Error"),
        exceptions.ResponseError("TRYAGAIN Multiple keys request during rehashing of slot"),
        exceptions.ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value"),
        exceptions.ResponseError("ERR value is not an integer or out of range"),
    ],
    ids=lambda error: f"{type(error).__name__} {error}"[:40],
)
async def test_what_passes_by_itself_is_transient(error: Exception) -> None:
    with pytest.raises(Transient) as raised:
        async with translate_errors():
            raise error
    assert "\n" not in str(raised.value)
    assert "lost data" not in str(raised.value), "nothing was lost"


async def test_an_error_that_lasts_is_fatal() -> None:
    with pytest.raises(Fatal):
        async with translate_errors():
            raise exceptions.ResponseError("ERR unknown command 'EVAL'")


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
    writer, first, commands = await writer_of(ledger, index, version=VERSION), 0, 1

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
    async with await writer_of(ledger, index, version=VERSION) as writer:
        looked_up = await writer.look_up(Outcomes.of([outcome]))
        assert looked_up is not None
        nominees = await writer._nominate(index, looked_up)
    assert nominees[100].matches == tuple(range(2, 14, 2))
    await index.close()
    ledger.close()
