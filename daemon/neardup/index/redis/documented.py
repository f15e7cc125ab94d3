"""The index in Redis by the documented keys.

    SADD    <LANG>:<BAND>:<VALUE>         <ID>      HINDI:0:A8D3, eight bands of four hexadecimal digits
    HSET    simhashes:<LANG>              <ID>      <32 hexadecimal digits>
    APPEND  sketch:<LANG>:<BAND>:<VALUE>  <NUMBER>  sketch:HINDI:31:0AF1, 4 bytes, the least significant first

A lookup of a SimHash is one SINTER for each group of bands (see core.banding): an intersection costs
its smallest set, so a hot bucket is harmless beside a cold one.
"""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import chain, islice, product
from typing import Any

import numpy as np
from redis import exceptions

from neardup.core.candidates.banding import BAND_BITS, BANDS, Banding, band_values, groups
from neardup.core.candidates.fingerprint_arrays import Columns
from neardup.index import packed_buckets
from neardup.index.bulk import Spool
from neardup.index.marks import layout, least
from neardup.index.protocol import Bandings, Codes, Found
from neardup.index.redis.base import KEYS_A_COMMAND, RedisIndex, parts
from neardup.index.redis.client import translated
from neardup.index.redis.fill_guard import Command
from neardup.index.redis.scripts import MOVE_EACH, SINTER_EACH
from neardup.records import Banded, Change, Language

INTSET_ENTRIES = 1_000_000
SIMHASHES = "simhashes"  # what is put aside of them, to build from


class Documented(RedisIndex):
    """The `Index` by the documented keys, in a Redis or a Redis cluster; made by `open_redis`."""

    blocks = False

    def __init__(self, client: Any, bandings: Bandings, codes: Codes, *, cluster: bool) -> None:
        record = {"bands": layout(bandings, lambda banding: banding.bands)}
        super().__init__(
            client, bandings, {language: str(language) for language in bandings}, record, codes, cluster=cluster
        )

    def _column_keys(self, name: str) -> list[bytes]:
        return [f"sketch:{name}:{band}:".encode() for band in range(packed_buckets.NEAR)]

    def _bits_of(self, record: str | None) -> packed_buckets.Bits:
        return dict.fromkeys(self._bandings, BAND_BITS)

    async def lookup(self, probes: Sequence[Banded]) -> tuple[int | None, list[Found]]:
        """As every index; the ids are those of the SimHashes, the numbers those of the signatures."""
        size = KEYS_A_COMMAND // BANDS
        evals = [
            (self._bandings[language], some)
            for language, places in packed_buckets.by_language(probes).items()
            for some in parts(places, size)
        ]
        sinters = [self._sinter(banding, [probes[n] for n in some]) for banding, some in evals]
        (applied, found), replies = await asyncio.gather(
            super().lookup(probes), self._ask([*self._marks, *sinters, *self._marks])
        )
        marks = len(self._marks)
        for (banding, some), reply in zip(evals, replies[marks:], strict=False):
            for place, members in zip(reply[::2], reply[1::2], strict=True):
                nth, group = divmod(place, banding.hamming + 1)
                one = found[some[nth]]
                ids = sorted(map(int, members))
                one.ids.update(ids[: banding.max_bucket])
                if len(ids) > banding.max_bucket:
                    one.capped[_name(probes[some[nth]], groups(banding.hamming)[group])] = len(ids)
        return least([applied, *replies[:marks], *replies[-marks:]]), found

    def _sinter(self, banding: Banding, probes: Sequence[Banded]) -> Command:
        keys = [key for probe in probes for key in self._band_keys(probe)]
        return ("EVAL", SINTER_EACH, len(keys), *keys, *map(len, groups(banding.hamming)))

    def _changing(self, changes: Sequence[Change], languages: Sequence[Language]) -> Iterator[Command]:
        moves = [
            (command, change.story_id, banded)
            for change in changes
            for command, banded in (("SREM", change.old), ("SADD", change.new))
            if banded and banded.language in languages
        ]
        for some in parts(moves, KEYS_A_COMMAND // BANDS):
            keys = [key for *_, banded in some for key in self._band_keys(banded)]
            yield ("EVAL", MOVE_EACH, len(keys), *keys, *chain.from_iterable(move[:2] for move in some))
        last: dict[Language, dict[int, str | None]] = {}  # of several changes to a story the last counts
        for command, story_id, banded in moves:
            last.setdefault(banded.language, {})[story_id] = banded.simhash.hex() if command == "SADD" else None
        for language, hashes in last.items():
            key = self._hashes(language)
            gone = [story_id for story_id, digits in hashes.items() if digits is None]
            there = [(story_id, digits) for story_id, digits in hashes.items() if digits is not None]
            yield from (("HDEL", key, *some) for some in parts(gone))
            yield from (("HSET", key, *chain.from_iterable(some)) for some in parts(there))
            yield from self._appending(changes, language)

    async def _take(self, spool: Spool, page: Columns) -> None:
        await super()._take(spool, page)
        for language, mine in page.by_language():
            spool.put(language, SIMHASHES, mine.ids, mine.simhashes.view(">u2").astype(np.uint16))
            digits = [simhash.tobytes().hex() for simhash in mine.simhashes]
            told = list(zip(mine.ids.tolist(), digits, strict=True))
            key = self._hashes(language)
            await self._filling.write(language, [("HSET", key, *chain.from_iterable(some)) for some in parts(told)])

    async def _put_rest(self, spool: Spool) -> None:
        for language, band in product(spool.sizes, range(BANDS)):
            name = self._names[language]
            sets = spool.buckets(language, SIMHASHES, band)
            while some := await asyncio.to_thread(list, islice(sets, KEYS_A_COMMAND)):
                commands = [("SADD", f"{name}:{band}:{value:04X}", *np.sort(ids).tolist()) for value, ids in some]
                await self._filling.write(language, commands)

    async def sizes(self) -> dict[Language, int]:
        """Stories by language."""
        replies = await self._ask([("HLEN", self._hashes(language)) for language in self._bandings])
        return {language: n for language, n in zip(self._bandings, replies, strict=True) if n}

    async def bucket_sizes(self, sample: Sequence[Banded]) -> dict[str, int]:
        """Members of the buckets of both tiers that the sample falls into, by name."""
        names = {
            key: f"{probe.language}:{band}:{value}"
            for probe in sample
            for band, (key, value) in enumerate(zip(self._band_keys(probe), band_values(probe.simhash), strict=True))
        }
        sizes = await self._ask([("SCARD", key) for key in names])
        sets = {name: n for name, n in zip(names.values(), sizes, strict=True) if n}
        return sets | await super().bucket_sizes(sample)

    async def trouble(self) -> str | None:
        """A Redis that would take several times the memory, or None."""
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

    def _band_keys(self, banded: Banded) -> list[str]:
        name = self._names[banded.language]
        return [f"{name}:{band}:{value}" for band, value in enumerate(band_values(banded.simhash))]

    def _hashes(self, language: Language) -> str:
        return f"simhashes:{self._names[language]}"


def _name(banded: Banded, group: range) -> str:
    values = band_values(banded.simhash)
    return "+".join(f"{banded.language}:{band}:{values[band]}" for band in group)
