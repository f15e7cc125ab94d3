"""The way to Redis: a connection to one or to a cluster, and Redis's errors translated at the border."""

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
from neardup.index.marks import lost

TIMEOUT_SECONDS = 30
WAITED_FOR = partial(Transient, reason="redis_login")
WAIT = re.compile(r"\b(OOM|LOADING|READONLY|BUSY|CLUSTERDOWN|TRYAGAIN|MASTERDOWN|NOREPLICAS|MISCONF)\b")


async def connect(url: str) -> tuple[Any, bool]:
    """A client for redis://, rediss:// or unix://, and whether it is a cluster's.

    Raises Transient where Redis does not answer, Misuse for a wrong URL, Fatal for a refused login
    or a server that may evict keys.  Calls by the client are to be `translated`: a login refused later is waited for,
    as a rule the password is being changed, and a run of hours need not end for it.
    """
    once = Retry(NoBackoff(), 0)  # who waits for Redis, and how long, is decided in one place: neardup.retry
    try:
        client: Any = Redis.from_url(url, retry=once, protocol=2, socket_timeout=None, socket_connect_timeout=None)
    except ValueError as error:
        # redis-py's own words may hold a part of the password
        raise Misuse("index.url: not a Redis URL (percent-encode / # @ : in a password)") from error
    pool = client.connection_pool
    pool.connection_class = _packing_in_c(pool.connection_class)
    try:
        async with translated(login=Fatal):
            info = await client.info("memory")
            cluster = bool((await client.info("cluster")).get("cluster_enabled"))
            if info.get("maxmemory_policy", "noeviction") != "noeviction":
                raise Fatal(
                    f"this Redis may evict the index (maxmemory-policy {info['maxmemory_policy']}); "
                    "redis-cli CONFIG SET maxmemory-policy noeviction, and in redis.conf"
                )
            if cluster:
                await client.aclose()
                client = RedisCluster.from_url(url, retry=once, protocol=2, socket_timeout=None)
                await client.initialize()
    except BaseException:
        await client.aclose()
        raise
    return client, cluster


def _packing_in_c(connection: type) -> type:
    """A kind of connection that packs commands with hiredis, as redis-py's synchronous one does.

    In Python that is half of an insert's time, and a third of a lookup's.
    """

    class Packing(connection):  # type: ignore[misc]
        def pack_command(self, *words: Any) -> list[bytes]:
            return [hiredis.pack_command((*words[0].split(), *words[1:]))]

    return Packing


@asynccontextmanager
async def translated(
    seconds: float | None = TIMEOUT_SECONDS, login: Callable[[str], NeardupError] = WAITED_FOR
) -> AsyncIterator[None]:
    """Redis's errors -> Transient for what passes, Fatal for what somebody has to mend.

    The time limit is here, not redis-py's: that one is per reply, and now and then loses a cancellation.
    """
    try:
        async with asyncio.timeout(seconds):
            yield
    except exceptions.AuthenticationError as error:
        raise login(f"Redis refuses the login: {error} (the password in index.url is read at the start)") from error
    except exceptions.NoPermissionError as error:
        raise Fatal(f"Redis refuses: {_said(error)}") from error
    except (exceptions.ConnectionError, exceptions.TimeoutError, OSError) as error:
        why = str(error) or f"nothing within {seconds} seconds"
        raise Transient(f"Redis does not answer: {why}", "redis_unreachable") from error
    except exceptions.WatchError as error:
        raise lost() from error
    except exceptions.RedisError as error:
        said = _said(error)
        if WAIT.search(said) or isinstance(error, exceptions.ReadOnlyError | exceptions.OutOfMemoryError):
            raise Transient(f"Redis refuses for now: {said}", "redis_refuses") from error
        raise Fatal(f"Redis refuses: {_said(error)}") from error


def _said(error: exceptions.RedisError) -> str:
    """Redis's own words; redis-py puts the command before a pipeline's errors, and those of a MULTI in a tuple."""
    said = error.args[0] if error.args else ""
    return str(said[0] if isinstance(said, tuple) else said).rpartition("caused error: ")[2]
