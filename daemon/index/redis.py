"""The production index, in Redis, by the documented keys.

    SADD    <LANG>:<BAND>:<VALUE>         <ID>      HINDI:0:A8D3, eight bands of four hexadecimal digits
    HSET    simhashes:<LANG>              <ID>      <32 hexadecimal digits>
    APPEND  sketch:<LANG>:<BAND>:<VALUE>  <NUMBER>  sketch:HINDI:31:0AF1, 4 bytes, the least significant first
    SET     neardup:applied               <seq>     beside neardup:version, neardup:bands and neardup:ledger

A lookup of a SimHash is one SINTER for each group of bands (see core.banding): an intersection costs
its smallest set, so a hot bucket is harmless beside a cold one.  The buckets of signatures are
strings, for they are always read whole.  On a cluster the language is a hash tag, {HINDI}:0:A8D3, so
that all of its keys share a slot, and each language has its own neardup:applied, set with its bands
in one MULTI; the index is as far as the one furthest behind.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from redis import exceptions

from daemon.core.banding import band_values, groups
from daemon.index import Bandings, Found, Mark
from daemon.index.buckets import NUMBER_BYTES, Read, found, layout, packed
from daemon.index.redis_client import connect, translated
from daemon.records import Banded, Change, Language

SCAN_COUNT = 5000
KEYS_A_COMMAND = 2048  # a millisecond or two of Redis's time
INTSET_ENTRIES = 1_000_000
# ARGV: a command, then for each key the member it is called with.  A command each would cost the client far more.
EACH = "for i, key in ipairs(KEYS) do redis.call(ARGV[1], key, ARGV[i + 1]) end"

T = TypeVar("T")
Group = tuple[str, ...]  # the keys of the bands that a SINTER takes


class RedisIndex:
    """The `Index` in a Redis or a Redis cluster; made by `open_redis`."""

    def __init__(self, client: Any, bandings: Bandings, *, cluster: bool) -> None:
        self._client = client
        self._bandings = bandings
        self._bands = layout(bandings, lambda banding: banding.bands)
        self._cluster = cluster
        self._languages = {language: f"{{{language}}}" if cluster else str(language) for language in Language}
        names = self._languages.values()
        self._prefixes = {
            language: [f"sketch:{name}:{band}:" for band in range(bandings[language].bands)]
            for language, name in self._languages.items()
        }
        self._applied = [f"neardup:applied:{name}" for name in names] if cluster else ["neardup:applied"]
        self._ours = re.compile(rf"(?:sketch:)?({'|'.join(map(re.escape, names))}):\d+:[0-9A-F]{{4}}".encode())

    async def mark(self) -> Mark:
        keys = ("neardup:ledger", "neardup:version", "neardup:bands", *self._applied)
        ledger, version, bands, *applied = await self._ask([("GET", key) for key in keys])
        mark = Mark(ledger and ledger.decode(), version and version.decode(), _least(applied))
        if mark.version and bands != self._bands.encode():
            return Mark(mark.ledger_id, f"{mark.version}, banded for another detection.bands", None)
        return mark

    async def lookup(self, probes: Sequence[Banded]) -> tuple[int | None, list[Found]]:
        asked = [
            (tuple(self._groups(probe)), tuple(self._sketch_keys(probe)), self._bandings[probe.language])
            for probe in probes
        ]
        languages = [probe.language for probe in probes]
        sinters = {group: one for one, (groups, _, _) in zip(languages, asked, strict=True) for group in groups}
        wanted: dict[Language, dict[str, None]] = defaultdict(dict)
        for language, (_, keys, _) in zip(languages, asked, strict=True):
            wanted[language].update(dict.fromkeys(keys))
        mgets = [(language, part) for language, keys in wanted.items() for part in _parts(list(keys), KEYS_A_COMMAND)]
        commands: list[tuple[str, ...]] = [("GET", key) for key in self._applied]
        commands += [("SINTER", *group) for group in sinters]
        commands += [("MGET", *keys) for _, keys in mgets]
        replies = iter(await self._ask(commands))
        applied = _least(list(islice(replies, len(self._applied))))
        ids = self._ids(zip(sinters.items(), islice(replies, len(sinters)), strict=True))
        numbers = self._numbers(zip(mgets, replies, strict=True))
        return applied, found(asked, ids, numbers)

    def _ids(self, replies: Iterable[tuple[tuple[Group, Language], set[bytes]]]) -> Read[Group, set[int]]:
        members, capped = {}, {}
        for (group, language), reply in replies:
            most = self._bandings[language].max_bucket
            if len(reply) > most:
                capped[group] = ("+".join(map(_name, group)), len(reply))
                members[group] = set(sorted(map(int, reply))[:most])
            elif reply:
                members[group] = set(map(int, reply))
        return Read(members, capped)

    def _numbers(
        self, replies: Iterable[tuple[tuple[Language, Sequence[str]], list[bytes | None]]]
    ) -> Read[str, bytes]:
        members, capped = {}, {}
        for (language, keys), values in replies:
            most = NUMBER_BYTES * self._bandings[language].max_bucket
            for key, value in zip(keys, values, strict=True):
                if value is None:
                    continue
                if len(value) > most:
                    capped[key] = (_name(key), len(value) // NUMBER_BYTES)
                members[key] = value[-most:]
        return Read(members, capped)

    async def apply(self, changes: Sequence[Change], applied: int | None) -> None:
        parts = [[language] for language in Language] if self._cluster else [list(Language)]
        marks = await self._ask([("GET", key) for key in self._applied])
        async with translated():
            for languages, key, mark in zip(parts, self._applied, marks, strict=True):
                await self._apply(changes, languages, key, -1 if mark is None else int(mark), applied)

    async def _apply(
        self, changes: Sequence[Change], languages: list[Language], key: str, mark: int, applied: int | None
    ) -> None:
        """One MULTI: what the changes beyond the mark do to these languages, and their new mark."""
        fresh = [change for change in changes if change.seq == 0 or change.seq > mark]
        sets: dict[tuple[str, int], bool] = {}  # of several changes to a story the last counts
        hashes: dict[tuple[str, int], str | None] = {}
        sketches: list[tuple[str, bytes]] = []
        for change in fresh:
            for banded, enters in ((change.old, False), (change.new, True)):
                if banded and banded.language in languages:
                    sets.update(((band, change.story_id), enters) for band in self._band_keys(banded))
                    hashes[self._hashes(banded.language), change.story_id] = banded.simhash.hex() if enters else None
                    if enters:
                        number = packed(change.number)
                        sketches += [(sketch, number) for sketch in self._sketch_keys(banded)]
        pipe = self._client.pipeline(transaction=True)
        for command, members in (
            ("SREM", [member for member, enters in sets.items() if not enters]),
            ("SADD", [member for member, enters in sets.items() if enters]),
            ("APPEND", sketches),
        ):
            for part in _parts(members, KEYS_A_COMMAND):
                keys, values = zip(*part, strict=True)
                pipe.execute_command("EVAL", EACH, len(keys), *keys, command, *values)
        for (hashes_key, story_id), digits in hashes.items():
            if digits:
                pipe.hset(hashes_key, story_id, digits)
            else:
                pipe.hdel(hashes_key, story_id)
        if applied is not None and applied > mark:
            pipe.set(key, applied)
        await pipe.execute()

    async def clear(self, ledger_id: str, version: str) -> None:
        async with translated(seconds=None):  # as long as the keys are many
            for key in self._applied:
                await self._client.delete(key)
            doomed: dict[bytes, list[bytes]] = defaultdict(list)
            async for key in self._client.scan_iter(match="*:????", count=SCAN_COUNT):
                if ours := self._ours.fullmatch(key):
                    keys = doomed[ours[1]]
                    keys.append(key)
                    if len(keys) == SCAN_COUNT:
                        await self._client.unlink(*keys)
                        keys.clear()
            for keys in filter(None, doomed.values()):
                await self._client.unlink(*keys)
            for language in Language:
                await self._client.unlink(self._hashes(language))
            for fact, value in (("ledger", ledger_id), ("version", version), ("bands", self._bands)):
                await self._client.set(f"neardup:{fact}", value)

    async def sizes(self) -> dict[Language, int]:
        replies = await self._ask([("HLEN", self._hashes(language)) for language in Language])
        return {language: n for language, n in zip(Language, replies, strict=True) if n}

    async def bucket_sizes(self, sample: Sequence[Banded]) -> dict[str, int]:
        sets = list({key for probe in sample for key in self._band_keys(probe)})
        strings = list({key for probe in sample for key in self._sketch_keys(probe)})
        replies = await self._ask([("SCARD", key) for key in sets] + [("STRLEN", key) for key in strings])
        sizes = replies[: len(sets)] + [length // NUMBER_BYTES for length in replies[len(sets) :]]
        return {_name(key): n for key, n in zip(sets + strings, sizes, strict=True) if n}

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

    async def _ask(self, commands: Sequence[tuple[str, ...]]) -> list[Any]:
        """The replies to commands that read, in one round trip."""
        pipe = self._client.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)  # some of redis-py's own methods are barred on a cluster
        async with translated():
            return list(await pipe.execute())

    def _groups(self, banded: Banded) -> list[Group]:
        keys = self._band_keys(banded)
        return [tuple(keys[run.start : run.stop]) for run in groups(self._bandings[banded.language].hamming)]

    def _band_keys(self, banded: Banded) -> list[str]:
        name = self._languages[banded.language]
        return [f"{name}:{band}:{value}" for band, value in enumerate(band_values(banded.simhash))]

    def _sketch_keys(self, banded: Banded) -> list[str]:
        digits = banded.signature.hex().upper() if banded.signature else ""
        return [
            prefix + digits[4 * band : 4 * band + 4]
            for band, prefix in enumerate(self._prefixes[banded.language])
            if digits
        ]

    def _hashes(self, language: Language) -> str:
        return f"simhashes:{self._languages[language]}"


async def open_redis(url: str, bandings: Bandings) -> RedisIndex:
    """The index in the Redis or the cluster at `url`.  Raises as `connect` does."""
    client, cluster = await connect(url)
    return RedisIndex(client, bandings, cluster=cluster)


def _least(replies: Sequence[bytes | None]) -> int | None:
    marks = [int(reply) for reply in replies if reply is not None]
    return min(marks) if len(marks) == len(replies) else None


def _parts(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _name(key: str) -> str:
    """A key as operators know it, without the hash tag's braces."""
    return key.replace("{", "").replace("}", "")
