"""What an index in Redis is, whatever its layout: marks, transactions, and buckets that are packed strings.

    SET  neardup:applied  <seq>    beside neardup:version, neardup:ledger and what decides where a story stands

On a cluster the language is a hash tag, {HINDI}:0:A8D3, so that all of its keys share a slot, and each
language has its own neardup:applied, set with its bands in one MULTI; the index is as far as the one
furthest behind.

A Redis may lose its data between two messages, wholly or back to an older state, and answer the next one, and
changes may come in while others are looked up.  So a lookup reads the mark both before and after all else, and
changes are applied while the mark is watched.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from neardup.core.candidates.fingerprint_arrays import Columns
from neardup.index import packed_buckets
from neardup.index.bulk import Spool, parts_of, put_aside
from neardup.index.marks import agrees, by_name, extended, least, refuse_gap, strange
from neardup.index.protocol import Bandings, Codes, Found, Mark
from neardup.index.redis.client import translated
from neardup.index.redis.fill_guard import Command, Filling
from neardup.index.redis.keys import PackedKeys, drop_all_of_languages, our_keys
from neardup.index.redis.scripts import APPEND_EACH
from neardup.records import Banded, Change, Language

KEYS_A_COMMAND = 2048  # a millisecond or two of Redis's time
PROBES_A_READ = 256
SETTINGS = {"layout": "index.layout", "hamming": "detection.hamming", "bands": "detection.bands"}

T = TypeVar("T")


class RedisIndex(ABC):
    """What both layouts of the `Index` in a Redis or a Redis cluster do alike.

    `names` are the languages as keys have them, `record` what decides where a story stands; `blocks` tells
    whether SimHashes stand in packed buckets, too, and `append_each` is the script that appends to these.
    """

    blocks: bool
    append_each = APPEND_EACH

    def __init__(
        self,
        client: Any,
        bandings: Bandings,
        names: Mapping[Language, str],
        record: Mapping[str, str],
        codes: Codes,
        *,
        cluster: bool,
    ) -> None:
        self._client = client
        self._bandings = bandings
        self._names = {language: f"{{{name}}}" if cluster else name for language, name in names.items()}
        self._record = record
        self._bits = self._bits_of(None)
        self._keys = {language: PackedKeys(self._column_keys(name)) for language, name in self._names.items()}
        self._parts = [[language] for language in bandings] if cluster else [list(bandings)]
        self._applied = [f"neardup:applied:{name}" for name in self._names.values()] if cluster else ["neardup:applied"]
        self._marks: list[Command] = [("GET", key) for key in self._applied]
        self._ours = our_keys([*codes, *codes.values()])
        self._filling = Filling(self._ask, self._names)

    @abstractmethod
    def _column_keys(self, name: str) -> list[bytes]:
        """The keys of a language's packed buckets, column by column, up to the value."""

    @abstractmethod
    def _bits_of(self, record: str | None) -> packed_buckets.Bits:
        """How wide the values are by what is on record."""

    @abstractmethod
    def _changing(self, changes: Sequence[Change], languages: Sequence[Language]) -> Iterator[Command]:
        """The commands by which these changes come to these languages."""

    @abstractmethod
    async def sizes(self) -> dict[Language, int]:
        """Stories by language."""

    @abstractmethod
    async def trouble(self) -> str | None:
        """What is wrong, in one line, or None."""

    def _chosen(self, sizes: Mapping[Language, int]) -> Mapping[str, str]:
        """What an index that is about to take so many stories chooses for itself, for the record."""
        return {}

    async def mark(self) -> Mark:
        """The index's account of itself."""
        facts = ("ledger", "version", *SETTINGS)
        replies = await self._ask([("GET", key) for key in (*(f"neardup:{fact}" for fact in facts), *self._applied)])
        ledger, version, *record = [reply and reply.decode() for reply in replies[: len(facts)]]
        other = [
            told for (fact, told), have in zip(SETTINGS.items(), record, strict=True) if not self._keeps(fact, have)
        ]
        return strange(Mark(ledger, version, least(replies[len(facts) :])), other)

    def _keeps(self, fact: str, have: str | None) -> bool:
        """Whether a fact on record is as it would be now."""
        now = self._record.get(fact)
        return have == now if now is None or fact == "layout" else agrees(have, now)

    async def lookup(self, probes: Sequence[Banded]) -> tuple[int | None, list[Found]]:
        """The last change applied, then what each probe's packed buckets hold.

        Some at a time on connections of their own, so that Redis reads for some while others are counted.
        """
        read = await asyncio.gather(*map(self._look_up, parts(probes, PROBES_A_READ) if probes else [()]))
        return least([applied for applied, _ in read]), [one for _, found in read for one in found]

    async def _look_up(self, probes: Sequence[Banded]) -> tuple[int | None, list[Found]]:
        bits = self._bits
        asked, mgets = await asyncio.to_thread(self._reads, probes)  # meanwhile the loop keeps the readers busy
        reads = [mget for each in mgets for mget in each]
        replies = iter(await self._ask([("GET", "neardup:bits"), *self._marks, *reads, *self._marks]))
        [record] = islice(replies, 1)
        before = list(islice(replies, len(self._marks)))
        self._bits = self._bits_of(record and record.decode())
        if self._bits != bits:  # it was rebuilt meanwhile, or this is the first look at it
            return await self._look_up(probes)
        values = [list(chain.from_iterable(islice(replies, len(each)))) for each in mgets]
        applied = least([*before, *replies])
        each_found = await asyncio.to_thread(list, map(self._found, asked, values))
        places = packed_buckets.by_language(probes).values()
        found = dict(zip(chain.from_iterable(places), chain.from_iterable(each_found), strict=True))
        return applied, [found[n] for n in range(len(probes))]

    def _reads(self, probes: Sequence[Banded]) -> tuple[list[packed_buckets.Asked], list[list[Command]]]:
        """What the probes ask for, language by language, and the commands that read it."""
        places = packed_buckets.by_language(probes)
        asked = [self._asked(language, [probes[n] for n in mine]) for language, mine in places.items()]
        return asked, [[("MGET", *keys) for keys in parts(self._keys[one.language].of(one.buckets))] for one in asked]

    def _asked(self, language: Language, stories: Sequence[Banded]) -> packed_buckets.Asked:
        return packed_buckets.asked(
            language, stories, self._bandings[language], self._bits[language], blocks=self.blocks
        )

    def _found(self, asked: packed_buckets.Asked, values: list[bytes | None]) -> list[Found]:
        banding = self._bandings[asked.language]
        most = packed_buckets.NUMBER_BYTES * banding.max_bucket
        lengths = [0 if value is None else len(value) for value in values]
        last = [value if len(value) <= most else value[-most:] for value in values if value]
        return packed_buckets.found(asked, last, lengths, banding)

    async def apply(self, changes: Sequence[Change], applied: int | None, since: int | None = None) -> None:
        """Move stories between bands and set `applied`: one MULTI, or on a cluster one for each language."""
        await self._read_bits()
        for languages, key in zip(self._parts, self._applied, strict=True):
            async with translated(), self._client.pipeline(transaction=True) as pipe:
                filled = self._filling.keys(languages)
                await pipe.watch(key, *filled)
                reply = await pipe.get(key)
                refuse_gap(least([reply]), since)
                self._filling.refuse_loss([int(await pipe.get(one) or 0) for one in filled], languages)
                mark = -1 if reply is None else int(reply)
                lacking = [one for one in changes if one.seq == 0 or one.seq > mark]
                commands = await asyncio.to_thread(list, self._changing(lacking, languages))
                if applied is not None and applied > mark:
                    commands.append(("SET", key, applied))
                pipe.multi()
                for command in (*commands, *(("DEL", one) for one in filled)):
                    pipe.execute_command(*command)
                await pipe.execute()
                self._filling.marked(languages)

    def _appending(self, changes: Sequence[Change], language: Language) -> Iterator[Command]:
        """The commands by which these changes come to the packed buckets of a language."""
        banding, bits = self._bandings[language], self._bits[language]
        entering = packed_buckets.entering(language, changes, banding, bits, blocks=self.blocks)
        for part in entering.parts(KEYS_A_COMMAND):
            keys = self._keys[language].of(part.buckets)
            yield ("EVAL", self.append_each, len(keys), *keys, part.counts.astype(">u4").tobytes(), part.members)

    async def build(self, pages: AsyncIterator[Columns], scratch: Path) -> AsyncGenerator[int, None]:
        """Fill the empty index, each bucket by one SET of its size.  Raises Transient for data that went meanwhile."""
        await self._filling.begin()
        await self._read_bits()
        spool = Spool(scratch)
        async for page in pages:
            await self._take(spool, page)
        for part in parts_of(spool, self._bandings, blocks=self.blocks):
            filled = part.buckets(spool)
            while some := await asyncio.to_thread(list, islice(filled, KEYS_A_COMMAND)):
                keys = self._keys[part.language].of(np.array([bucket for bucket, _ in some]))
                pairs = zip(keys, (numbers for _, numbers in some), strict=True)
                await self._filling.write(part.language, [("MSET", *chain.from_iterable(pairs))])
            yield part.stories
        await self._put_rest(spool)

    async def _take(self, spool: Spool, page: Columns) -> None:
        """Put a page of stories aside."""
        await asyncio.to_thread(put_aside, spool, page, self._bandings, self._bits, blocks=self.blocks)

    @abstractmethod
    async def _put_rest(self, spool: Spool) -> None:
        """Write what does not stand in packed buckets, when all pages are in."""

    async def clear(self, ledger_id: str, version: str, sizes: Mapping[Language, int] = {}) -> None:
        """Drop the keys of either layout, and begin anew.

        Without a version the index says nothing of itself, so it is dropped first and set last: cut short
        between the two, the index is to be cleared again.
        """
        self._filling.forget()
        async with translated(seconds=None):  # as long as the keys are many
            for fact in (*self._applied, "neardup:version", *(f"neardup:{fact}" for fact in SETTINGS), "neardup:bits"):
                await self._client.delete(fact)
            await drop_all_of_languages(self._client, self._ours)
            facts = {"ledger": ledger_id, **self._record, **self._chosen(sizes), "version": version}
            await self._ask([("SET", f"neardup:{fact}", value) for fact, value in facts.items()])

    async def admit(self, version: str) -> None:
        """Put on record the version and the settings of languages that were added since, the version last."""
        settings = [fact for fact in self._record if fact != "layout"]
        replies = await self._ask([("GET", f"neardup:{fact}") for fact in ("bits", *settings)])
        bits, *have = [reply and reply.decode() for reply in replies]
        facts = {fact: extended(old, self._record[fact]) for fact, old in zip(settings, have, strict=True)}
        if bits is not None:
            facts["bits"] = by_name(self._bits_of(bits))
        await self._ask([("SET", f"neardup:{fact}", value) for fact, value in (*facts.items(), ("version", version))])

    async def bucket_sizes(self, sample: Sequence[Banded]) -> dict[str, int]:
        """Members of the packed buckets that the sample falls into, by name."""
        await self._read_bits()
        named: list[str] = []
        commands: list[Command] = []
        for language, places in packed_buckets.by_language(sample).items():
            buckets = self._asked(language, [sample[n] for n in places]).buckets
            named += [packed_buckets.name(language, bucket) for bucket in buckets.tolist()]
            commands += [("STRLEN", key) for key in self._keys[language].of(buckets)]
        lengths = await self._ask(commands)
        return {name: n // packed_buckets.NUMBER_BYTES for name, n in zip(named, lengths, strict=True) if n}

    async def touch(self) -> None:
        """Write, and change nothing."""
        await self._ask([("SET", "neardup:touched", 1)])

    async def close(self) -> None:
        """Give the connections back."""
        await self._client.aclose()

    async def _read_bits(self) -> None:
        [record] = await self._ask([("GET", "neardup:bits")])
        self._bits = self._bits_of(record and record.decode())

    async def _ask(self, commands: Sequence[Command]) -> list[Any]:
        """The replies to commands, in one round trip."""
        pipe = self._client.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)  # some of redis-py's own methods are barred on a cluster
        async with translated():
            return list(await pipe.execute())


def parts(items: Sequence[T], size: int = KEYS_A_COMMAND) -> Iterator[Sequence[T]]:
    """Items, so many at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))
