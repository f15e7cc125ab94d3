"""The production index, in Redis, by the documented keys.

    SADD  <LANG>:<BAND>:<VALUE>  <ID>      HINDI:0:A8D3, eight bands of four hexadecimal digits
    HSET  simhashes:<LANG>  <ID>  <32 hexadecimal digits>
    SET   neardup:applied  <seq>           beside neardup:version and neardup:ledger

A lookup is one SINTER for each group of bands (see core.banding): an intersection costs its
smallest set, so a hot bucket is harmless beside a cold one.  On a cluster the language is a hash
tag, {HINDI}:0:A8D3, so that all of its keys share a slot, and each language has its own
neardup:applied, set with its bands in one MULTI; the index is as far as the one furthest behind.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from redis import exceptions
from redis.asyncio import Redis, RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from daemon.core.banding import band_values, groups
from daemon.errors import Fatal, Misuse, Transient
from daemon.index import Distances, Mark
from daemon.records import Banded, Change, Language

TIMEOUT_SECONDS = 30
SCAN_COUNT = 5000
INTSET_ENTRIES = 1_000_000
WAIT = re.compile(r"\b(OOM|LOADING|READONLY|BUSY|CLUSTERDOWN|TRYAGAIN|MASTERDOWN|NOREPLICAS|MISCONF)\b")


class RedisIndex:
    """The `Index` in a Redis or a Redis cluster; made by `open_redis`."""

    def __init__(self, client: Any, distances: Distances, *, cluster: bool) -> None:
        self._client = client
        self._distances = distances
        self._cluster = cluster
        self._languages = {language: f"{{{language}}}" if cluster else str(language) for language in Language}
        names = self._languages.values()
        self._applied = [f"neardup:applied:{name}" for name in names] if cluster else ["neardup:applied"]

    async def mark(self) -> Mark:
        pipe = self._client.pipeline(transaction=False)
        for key in ("neardup:ledger", "neardup:version", *self._applied):
            pipe.get(key)
        async with translated():
            ledger, version, *applied = await pipe.execute()
        return Mark(ledger and ledger.decode(), version and version.decode(), _least(applied))

    async def lookup(self, probes: Sequence[Banded]) -> tuple[int | None, list[set[int]]]:
        pipe = self._client.pipeline(transaction=False)
        for key in self._applied:
            pipe.get(key)
        spans = []
        for probe in probes:
            keys = self._band_keys(probe)
            runs = groups(self._distances[probe.language])
            spans.append(len(runs))
            for run in runs:
                pipe.execute_command("SINTER", *keys[run.start : run.stop])  # pipe.sinter is barred on a cluster
        async with translated():
            replies = await pipe.execute()
        applied = _least(replies[: len(self._applied)])
        members = iter(replies[len(self._applied) :])
        return applied, [{int(n) for _ in range(span) for n in next(members)} for span in spans]

    async def apply(self, changes: Sequence[Change], applied: int | None) -> None:
        async with translated():
            if not self._cluster:
                await self._apply(changes, list(Language), applied, self._applied[0])
                return
            for language, key in zip(Language, self._applied, strict=True):
                await self._apply(changes, [language], applied, key)

    async def _apply(self, changes: Sequence[Change], languages: list[Language], applied: int | None, key: str) -> None:
        """One MULTI: what the changes do to these languages, and their mark."""
        pipe = self._client.pipeline(transaction=True)
        for change in changes:
            if change.old and change.old.language in languages:
                for band in self._band_keys(change.old):
                    pipe.srem(band, change.story_id)
                pipe.hdel(self._hashes(change.old.language), change.story_id)
            if change.new and change.new.language in languages:
                for band in self._band_keys(change.new):
                    pipe.sadd(band, change.story_id)
                pipe.hset(self._hashes(change.new.language), change.story_id, change.new.simhash.hex())
        if applied is not None:
            pipe.set(key, applied)
        await pipe.execute()

    async def clear(self, ledger_id: str, version: str) -> None:
        async with translated(seconds=None):  # as long as the keys are many
            for key in self._applied:
                await self._client.delete(key)
            for language, name in self._languages.items():
                found = []
                async for key in self._client.scan_iter(match=f"{name}:[0-7]:????", count=SCAN_COUNT):
                    found.append(key)
                    if len(found) == SCAN_COUNT:
                        await self._client.unlink(*found)
                        found.clear()
                await self._client.unlink(self._hashes(language), *found)
            await self._client.set("neardup:ledger", ledger_id)
            await self._client.set("neardup:version", version)

    async def sizes(self) -> dict[Language, int]:
        pipe = self._client.pipeline(transaction=False)
        for language in Language:
            pipe.hlen(self._hashes(language))
        async with translated():
            return {language: n for language, n in zip(Language, await pipe.execute(), strict=True) if n}

    async def bucket_sizes(self, sample: Sequence[Banded]) -> dict[str, int]:
        keys = list({key for probe in sample for key in self._band_keys(probe)})
        pipe = self._client.pipeline(transaction=False)
        for key in keys:
            pipe.scard(key)
        async with translated():
            replies = await pipe.execute() if keys else []
        return {key.replace("{", "").replace("}", ""): n for key, n in zip(keys, replies, strict=True) if n}

    async def trouble(self) -> str | None:
        async with translated():
            try:
                said = await self._client.config_get("set-max-intset-entries")
            except exceptions.NoPermissionError:
                return None  # an ACL that hides the configuration is no trouble
        entries = int(said["set-max-intset-entries"])
        if entries >= INTSET_ENTRIES:
            return None
        return (
            f"set-max-intset-entries is {entries}: a fuller bucket takes several times the memory; "
            f"redis-cli CONFIG SET set-max-intset-entries {INTSET_ENTRIES}, and in redis.conf"
        )

    async def close(self) -> None:
        await self._client.aclose()

    def _band_keys(self, banded: Banded) -> list[str]:
        name = self._languages[banded.language]
        return [f"{name}:{band}:{value}" for band, value in enumerate(band_values(banded.simhash))]

    def _hashes(self, language: Language) -> str:
        return f"simhashes:{self._languages[language]}"


async def open_redis(url: str, distances: Distances) -> RedisIndex:
    """Connect to redis://, rediss:// or unix://; a cluster is recognised.

    Raises Transient where Redis does not answer, Misuse for a wrong URL, Fatal for a refused login
    or a server that may evict keys.
    """
    once = Retry(NoBackoff(), 0)  # who waits for Redis, and how long, is decided in one place: daemon.retry
    try:
        client: Any = Redis.from_url(url, retry=once, protocol=2, socket_timeout=None, socket_connect_timeout=None)
    except ValueError as error:
        # redis-py's own words may hold a part of the password
        raise Misuse("index.url: not a Redis URL (percent-encode / # @ : in a password)") from error
    try:
        async with translated():
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
    return RedisIndex(client, distances, cluster=cluster)


def _least(replies: Sequence[bytes | None]) -> int | None:
    return None if None in replies else min(int(cast(bytes, reply)) for reply in replies)


@asynccontextmanager
async def translated(seconds: float | None = TIMEOUT_SECONDS) -> AsyncIterator[None]:
    """Redis's errors -> Transient for what passes, Fatal for what somebody has to mend.

    The time limit is here, not redis-py's: that one is per reply, and now and then loses a cancellation.
    """
    try:
        async with asyncio.timeout(seconds):
            yield
    except (exceptions.AuthenticationError, exceptions.NoPermissionError) as error:
        raise Fatal(f"Redis refuses: {error}") from error
    except (exceptions.ConnectionError, exceptions.TimeoutError, OSError) as error:
        raise Transient(f"Redis does not answer: {error}", "redis_unreachable") from error
    except exceptions.RedisError as error:
        said = str(error).rpartition("caused error: ")[2]  # redis-py puts the command before a pipeline's errors
        if WAIT.search(said) or isinstance(error, exceptions.ReadOnlyError | exceptions.OutOfMemoryError):
            raise Transient(f"Redis refuses for now: {error}", "redis_refuses") from error
        raise Fatal(f"Redis refuses: {error}") from error
