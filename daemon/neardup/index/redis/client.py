"""Connects to a Redis or a Redis cluster, and translates the errors of redis-py into neardup's."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import hiredis
from redis import exceptions
from redis.asyncio import Redis, RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from neardup.errors import Fatal, Misuse, NeardupError, Transient
from neardup.index.positions import data_lost

TIMEOUT_SECONDS = 30
LOGIN_REFUSED = partial(Transient, reason="redis_login")
# error codes of Redis for conditions that pass by themselves
TRANSIENT = re.compile(r"\b(OOM|LOADING|READONLY|BUSY|CLUSTERDOWN|TRYAGAIN|MASTERDOWN|NOREPLICAS|MISCONF)\b")


async def connect(url: str) -> tuple[Any, bool]:
    """A client for redis://, rediss:// or unix://, and whether it connects to a cluster.

    Raises Transient if Redis does not answer, Misuse for a malformed URL, Fatal for a refused login or a server that
    may evict keys.  Wrap every call of the client in `translate_errors`: to it, a login that is refused later is
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
    pool.connection_class = _packed_by_hiredis(pool.connection_class)
    try:
        async with translate_errors(login=Fatal):
            info = await client.info("memory")
            cluster = bool((await client.info("cluster")).get("cluster_enabled"))
            if info.get("maxmemory_policy", "noeviction") != "noeviction":
                raise Fatal(
                    f"this Redis may evict the index (maxmemory-policy {info['maxmemory_policy']}); "
                    "redis-cli CONFIG SET maxmemory-policy noeviction, and in redis.conf"
                )
            if cluster:
                await client.aclose()
                client = RedisCluster.from_url(url, retry=no_retries, protocol=2, socket_timeout=None)
                await client.initialize()
    except BaseException:
        await client.aclose()
        raise
    return client, cluster


def _packed_by_hiredis(connection: type) -> type:
    """A connection class that packs commands with hiredis, as the synchronous client of redis-py does.

    Packing in Python takes half the time of an insert and a third of that of a lookup.
    """

    class Packing(connection):  # type: ignore[misc]
        def pack_command(self, *words: Any) -> list[bytes]:
            return [hiredis.pack_command((*words[0].split(), *words[1:]))]

    return Packing


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
    except exceptions.AuthenticationError as error:
        raise login(
            f"Redis refuses the login: {error} (the password in index.url is read only when neardup starts)"
        ) from error
    except exceptions.NoPermissionError as error:
        raise Fatal(f"Redis refuses: {_message(error)}") from error
    except (exceptions.ConnectionError, exceptions.TimeoutError, OSError) as error:
        why = str(error) or f"nothing within {seconds} seconds"
        raise Transient(f"Redis does not answer: {why}", "redis_unreachable") from error
    except exceptions.WatchError as error:  # a watched key has changed
        raise data_lost() from error
    except exceptions.RedisError as error:
        message = _message(error)
        if TRANSIENT.search(message) or isinstance(error, exceptions.ReadOnlyError | exceptions.OutOfMemoryError):
            raise Transient(f"Redis refuses for now: {message}", "redis_refuses") from error
        raise Fatal(f"Redis refuses: {message}") from error


def _message(error: exceptions.RedisError) -> str:
    """Redis's own message, without what redis-py adds: the command in a pipeline, a wrapper in a MULTI."""
    message = error.args[0] if error.args else ""
    return str(message[0] if isinstance(message, tuple) else message).rpartition("caused error: ")[2]
