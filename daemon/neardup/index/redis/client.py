"""The Redis or the Redis cluster behind an index: connecting, messages, transactions, and the errors of redis-py.

Every error becomes one of neardup's: Transient for what passes by itself, Fatal for what has to be repaired, and
IndexDamaged for a key that holds what neardup did not write there.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import hiredis
from msgspec import Struct
from redis import exceptions
from redis.asyncio import Redis, RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from neardup.errors import Fatal, IndexDamaged, Misuse, NeardupError, Transient
from neardup.index.protocol import make_data_lost

Command = tuple[object, ...]
Send = Callable[[Sequence[Command]], Awaitable[list[Any]]]  # sends commands as one message; returns their replies
T = TypeVar("T")

MOST_SHOWN = 200  # characters of a message that is not Redis's own
KEYS_PER_COMMAND = 2048  # a millisecond or two of Redis's time
TIMEOUT_SECONDS = 30
LOGIN_REFUSED = partial(Transient, reason="redis_login")
# error codes of Redis for conditions that pass by themselves; redis-py has classes for some of them, without the code
TRANSIENT = re.compile(
    r"\b(OOM|LOADING|READONLY|BUSY|CLUSTERDOWN|TRYAGAIN|MASTERDOWN|NOREPLICAS|MISCONF|MOVED|ASK|CROSSSLOT|EXECABORT)\b"
)
PASSING = (
    exceptions.ReadOnlyError,
    exceptions.OutOfMemoryError,
    exceptions.ClusterError,
    exceptions.AskError,
    exceptions.TryAgainError,
    exceptions.ClusterCrossSlotError,
    exceptions.ExecAbortError,
)
# what Redis says of a key that holds something else than neardup writes there
DAMAGED = re.compile(r"\bWRONGTYPE\b|value is not an integer|would overflow|hash value is not")
SILENT = (exceptions.ConnectionError, exceptions.TimeoutError, exceptions.InvalidResponse, OSError, EOFError)
MOVED_SLOT = "Slot rebalancing"  # redis-py's words for a transaction whose slot was moved to another node
REPLY_TYPES: Mapping[object, type | tuple[type, ...]] = {
    "GET": (bytes, type(None)),
    "MGET": list,
    "EVAL": (list, type(None)),
    **dict.fromkeys(("STRLEN", "SCARD", "HLEN", "SISMEMBER", "INCR"), int),
}


def cut_batches(items: Sequence[T], size: int = KEYS_PER_COMMAND) -> Iterator[Sequence[T]]:
    """The items in order, at most `size` at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))


class Clients(Struct, frozen=True):
    """Clients of one Redis or one cluster.

    A transaction on a cluster must not share its client with messages sent meanwhile: where one of these fails,
    redis-py opens the transaction's connections in another event loop.
    """

    messages: Any
    transactions: Any
    is_cluster: bool


async def connect(url: str) -> Clients:
    """The clients of redis://, rediss:// or unix://.

    Raises Transient if Redis does not answer, Misuse for a malformed URL, Fatal for a refused login or a server that
    may evict keys.  Wrap every call of a client in `translate_errors`: to it, a login that is refused later is
    Transient, because most likely the password is being changed, and a run of several hours should survive that.
    """
    no_retries = Retry(NoBackoff(), 0)  # neardup.retry alone decides what is retried, and for how long
    try:
        client: Any = Redis.from_url(
            url, retry=no_retries, protocol=2, socket_timeout=None, socket_connect_timeout=None
        )
    except ValueError as error:
        # the message of redis-py may contain a part of the password
        raise Misuse("index.url: not a Redis URL (percent-encode / # @ : in a password)") from error
    pool = client.connection_pool
    pool.connection_class = _pack_by_hiredis(pool.connection_class)
    opened = [client]
    try:
        async with translate_errors(login=Fatal):
            with translate_unexpected_replies():
                info = await client.info("memory")
                is_cluster = bool((await client.info("cluster")).get("cluster_enabled"))
                policy = info.get("maxmemory_policy", "noeviction")
            if policy != "noeviction":
                raise Fatal(
                    f"this Redis may evict the index (maxmemory-policy {policy}); "
                    "redis-cli CONFIG SET maxmemory-policy noeviction, and in redis.conf"
                )
            if not is_cluster:
                return Clients(client, client, is_cluster=False)
            await client.aclose()
            opened = [RedisCluster.from_url(url, retry=no_retries, protocol=2, socket_timeout=None) for _ in range(2)]
            with translate_unexpected_replies():
                for cluster in opened:
                    await cluster.initialize()
            return Clients(opened[0], opened[1], is_cluster=True)
    except BaseException:
        for unfinished in opened:
            await unfinished.aclose()
        raise


def _pack_by_hiredis(connection: type) -> type:
    """A connection class that packs commands with hiredis, as the synchronous client of redis-py does.

    Packing in Python takes half the time of an insert and a third of that of a lookup.
    """

    class Packing(connection):  # type: ignore[misc]
        def pack_command(self, *words: Any) -> list[bytes]:
            return [pack_command(words)]

    return Packing


def pack_command(command: Command) -> bytes:
    """A command as Redis reads it; the first word may be two, as CONFIG GET is."""
    words: Any = (*str(command[0]).split(), *command[1:])
    message: bytes = hiredis.pack_command(words)
    return message


async def exchange(client: Any, commands: Sequence[Command]) -> list[Any]:
    """Send commands to one Redis as one message; returns their replies.  Raises the first error among these.

    A pipeline of redis-py does the same, and on the way looks at each command four times, which takes longer than the
    packing of the command and the reading of its reply.
    """
    pool, replies = client.connection_pool, list[Any]()
    callbacks = {name: client.response_callbacks.get(name) for name in {command[0] for command in commands}}
    connection = await pool.get_connection()
    try:
        await connection.send_packed_command(b"".join(map(pack_command, commands)))
        for _ in commands:
            try:
                replies.append(await connection.read_response())
            except exceptions.ResponseError as error:
                replies.append(error)  # the other replies must be read, too
    finally:
        await pool.release(connection)
    for n, (name, *_) in enumerate(commands):
        if isinstance(replies[n], exceptions.ResponseError):
            raise replies[n]
        if callback := callbacks[name]:
            replies[n] = callback(replies[n])
    return replies


class Server:
    """Sends messages; `positions` are the keys of the index's positions, which are deleted if the index is damaged."""

    def __init__(self, clients: Clients, positions: Sequence[str]) -> None:
        self.clients = clients
        self._positions = positions

    async def send(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands as one message; returns their replies."""
        async with self.translate_errors():
            with translate_unexpected_replies():
                replies = await self._exchange(commands) if commands else []
                refuse_other_types(commands, replies)
        return replies

    async def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        if not self.clients.is_cluster:
            return await exchange(self.clients.messages, commands)
        pipe = self.clients.messages.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)  # on a cluster redis-py disables its methods for some commands
        return list(await pipe.execute())

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        """A pipeline for one transaction; transactions must not overlap."""
        client = self.clients.transactions
        async with self.translate_errors(client=client):
            if self.clients.is_cluster:
                await client.initialize()  # here, because a pipeline would do it in an event loop of its own
            async with client.pipeline(transaction=True) as pipe:
                yield pipe

    @asynccontextmanager
    async def translate_errors(
        self, seconds: float | None = TIMEOUT_SECONDS, client: Any = None
    ) -> AsyncIterator[None]:
        """Translate errors.  After a Transient, a cluster's client connects again, to learn where each slot is."""
        try:
            async with self.forget_positions_if_damaged(), translate_errors(seconds):
                yield
        except Transient:
            if self.clients.is_cluster:
                with suppress(Exception):  # of nodes that are gone
                    await (client or self.clients.messages).aclose()
            raise

    @asynccontextmanager
    async def forget_positions_if_damaged(self) -> AsyncIterator[None]:
        """Delete the positions if the index is damaged: an index without a position is rebuilt."""
        try:
            yield
        except IndexDamaged:
            async with translate_errors():
                for key in self._positions:
                    await self.clients.messages.delete(key)
            raise

    async def aclose(self) -> None:
        """Close all connections."""
        for client in {self.clients.messages, self.clients.transactions}:
            await client.aclose()


@asynccontextmanager
async def translate_errors(
    seconds: float | None = TIMEOUT_SECONDS, login: Callable[[str], NeardupError] = LOGIN_REFUSED
) -> AsyncIterator[None]:
    """Translate the errors of redis-py: Transient for what passes by itself, Fatal for what has to be repaired.

    A refused login raises what `login` returns.  The time limit is set here because that of redis-py applies to each
    reply, and sometimes loses a cancellation.
    """
    try:
        async with asyncio.timeout(seconds):
            yield
    except exceptions.NoPermissionError as error:
        raise Fatal(f"Redis refuses: {_read_message(error)}") from error
    except SILENT as error:
        raise _explain_silence(error, seconds, login) from error
    except exceptions.RedisClusterException as error:  # the nodes, or the slots they have, are not known
        raise Transient(
            f"Redis does not answer: {_make_printable(str(error))[:MOST_SHOWN]}", "redis_unreachable"
        ) from error
    except exceptions.WatchError as error:  # a watched key has changed
        if MOVED_SLOT in str(error):
            raise Transient(f"Redis refuses for now: {_make_printable(str(error))}", "redis_refuses") from error
        raise make_data_lost() from error
    except exceptions.RedisError as error:
        message = _read_message(error)
        if DAMAGED.search(message):
            raise IndexDamaged(f"the index is damaged: {message}") from error
        if TRANSIENT.search(message) or isinstance(error, PASSING):
            raise Transient(f"Redis refuses for now: {message}", "redis_refuses") from error
        raise Fatal(f"Redis refuses: {message}") from error


@contextmanager
def translate_unexpected_replies() -> Iterator[None]:
    """Raise Transient where a server that is not a Redis sends what redis-py cannot interpret."""
    try:
        yield
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        raise Transient("Redis does not answer: what it sends is not Redis's protocol", "redis_unreachable") from error


def refuse_other_types(commands: Sequence[Command], replies: Sequence[object]) -> None:
    """Raise TypeError unless the replies have the types that these commands return."""
    for command, reply in zip(commands, replies, strict=True):
        expected = REPLY_TYPES.get(command[0], object)
        if not isinstance(reply, expected):
            raise TypeError(f"{command[0]} returned {type(reply).__name__}")
        if command[0] == "MGET":
            assert isinstance(reply, list)
            if len(reply) != len(command) - 1 or not set(map(type, reply)) <= {bytes, type(None)}:
                raise TypeError("MGET returned other values than strings")


def _explain_silence(error: Exception, seconds: float | None, login: Callable[[str], NeardupError]) -> NeardupError:
    # Valkey refuses already the command that sets the client's name; redis-py raises another error, whose cause is the
    # AuthenticationError
    if any(isinstance(cause, exceptions.AuthenticationError) for cause in (error, error.__cause__)):
        why = _make_printable(str(error))
        return login(f"Redis refuses the login: {why} (the password in index.url is read only when neardup starts)")
    why = str(error) or f"nothing within {seconds} seconds"
    return Transient(f"Redis does not answer: {_make_printable(why)[:MOST_SHOWN]}", "redis_unreachable")


def _make_printable(message: str) -> str:
    """A message on one line, without control characters: a server that is no Redis may send any."""
    printable = "".join(character if character.isprintable() else " " for character in message)
    return " ".join(printable.split())


def _read_message(error: exceptions.RedisError) -> str:
    """Redis's own message, without what redis-py adds: the command in a pipeline, a wrapper in a MULTI."""
    message = error.args[0] if error.args else ""
    return _make_printable(str(message[0] if isinstance(message, tuple) else message).rpartition("caused error: ")[2])
