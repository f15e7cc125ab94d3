"""What both layouts of an index in Redis have in common: the position, transactions and packed buckets.

    SET  neardup:applied  <seq>    the position: the number of the last change applied

Further keys record the ledger, the version and the settings that decide which buckets a story falls into.

On a cluster the language is a hash tag, {HINDI}:0:A8D3, so that all of its keys share a slot.  Each language then has
its own neardup:applied, set with its buckets in one MULTI, and the position of the index is the lowest of them.

Between two messages Redis may lose all its data or the latest writes, in a restart or a failover, and still answer the
next message.  Changes may also be applied during a lookup.  A lookup therefore reads the position both before and after
the buckets, and changes are applied under a WATCH of the position.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from neardup.core.candidates.banding import FingerprintArrays
from neardup.index import packed_buckets
from neardup.index.packed_buckets import Spool, make_missing_additions, spool_batch
from neardup.index.positions import find_earliest, mark_other_settings, parse_number, refuse_gap
from neardup.index.protocol import Bandings, Bucket, Codes, IndexPosition, LookupResult
from neardup.index.redis.client import Clients, Command, Server, cut_batches, translate_unexpected_replies
from neardup.index.redis.packed import APPEND_EACH, PackedBuckets, compile_key_pattern, delete_index_keys
from neardup.index.redis.records import (
    FACTS,
    FillGuard,
    is_damaged,
    list_changed_options,
    make_read_command,
    parse_position,
    parse_text,
    record_added_languages,
)
from neardup.records import BandedFingerprint, Change, Language

PROBES_PER_READ = 256
FEW_PROBES = 4


class RedisIndex(ABC):
    """The `Index` in a Redis or a Redis cluster, with its optional protocols; each layout is a subclass.

    `names` are the names of languages in keys, `settings` those that decide which buckets a story falls into.  With
    `packs_simhashes`, SimHashes have packed buckets too.  `append_script` is the script that appends to packed buckets.
    """

    packs_simhashes: bool
    append_script = APPEND_EACH

    def __init__(
        self,
        clients: Clients,
        bandings: Bandings,
        names: Mapping[Language, str],
        settings: Mapping[str, str],
        codes: Codes,
    ) -> None:
        cluster = clients.is_cluster
        self._bandings = bandings
        self._names = {language: f"{{{name}}}" if cluster else name for language, name in names.items()}
        self._settings = settings
        self._packed = PackedBuckets(
            bandings,
            {language: self._column_prefixes(name) for language, name in self._names.items()},
            self._bits_of(None),
            packs_simhashes=self.packs_simhashes,
            append_script=self.append_script,
        )
        # The languages whose buckets share a slot, and so a transaction.
        self._parts = [[language] for language in bandings] if cluster else [list(bandings)]
        self._applied = [f"neardup:applied:{name}" for name in self._names.values()] if cluster else ["neardup:applied"]
        self._server = Server(clients, self._applied)
        self._position_reads = [make_read_command(key) for key in self._applied]
        self._index_key = compile_key_pattern([*codes, *codes.values()])
        self._guard = FillGuard(self._send, self._names)

    @abstractmethod
    def _column_prefixes(self, name: str) -> list[bytes]:
        """For each column of a language's packed buckets, the part of their keys before the value.

        A column is a band of the signature or a block of the SimHash; a value is what a story has in it.
        """

    @abstractmethod
    def _bits_of(self, record: str | None) -> packed_buckets.Bits:
        """The width in bits of each language's values, by the `record` in `neardup:bits`.  Raises IndexDamaged."""

    @abstractmethod
    def _commands(self, changes: Sequence[Change], languages: Sequence[Language]) -> Iterator[Command]:
        """The commands that apply these changes to these languages."""

    @abstractmethod
    async def count_stories(self) -> dict[Language, int]:
        """The number of stories of each language that has any."""

    @abstractmethod
    async def find_problem(self) -> str | None:
        """What is wrong, in one line, or None."""

    def _choose_settings(self, sizes: Mapping[Language, int]) -> Mapping[str, str]:
        """The settings that the layout chooses for the numbers of stories by language; `clear` records them."""
        return {}

    async def read_position(self) -> IndexPosition:
        """What the index records about itself; no position if records are lost or unreadable."""
        replies = await self._send([*(make_read_command(f"neardup:{fact}") for fact in FACTS), *self._position_reads])
        facts = dict(zip(FACTS, map(parse_text, replies), strict=False))
        if is_damaged(facts, self._bits_of):
            return IndexPosition(facts["ledger"], facts["version"], None)
        applied = find_earliest([parse_position(reply) for reply in replies[len(FACTS) :]])
        position = IndexPosition(facts["ledger"], facts["version"], applied)
        return mark_other_settings(position, list_changed_options(facts, self._settings))

    async def look_up(self, probes: Sequence[BandedFingerprint]) -> tuple[int | None, list[LookupResult]]:
        """The last change applied, and the result of each probe's packed buckets.

        The probes are read in batches on separate connections, so that Redis reads one while the candidates of
        another are counted here.
        """
        parts = await asyncio.gather(*map(self._look_up, cut_batches(probes, PROBES_PER_READ) if probes else [()]))
        return find_earliest([applied for applied, _ in parts]), [result for _, results in parts for result in results]

    async def _look_up(self, probes: Sequence[BandedFingerprint]) -> tuple[int | None, list[LookupResult]]:
        bits, packed = self._packed.bits, self._packed
        few = len(probes) <= FEW_PROBES  # a thread would cost more than these; many would hold up the event loop
        requests, mgets = packed.make_requests(probes) if few else await asyncio.to_thread(packed.make_requests, probes)
        commands = [
            make_read_command("neardup:bits"),
            *self._position_reads,
            *chain.from_iterable(mgets),
            *self._position_reads,
        ]
        replies = iter(await self._send(commands))
        [bits_record] = islice(replies, 1)
        before = list(islice(replies, len(self._applied)))
        values = [list(chain.from_iterable(islice(replies, len(each)))) for each in mgets]
        applied = find_earliest([parse_position(reply) for reply in (*before, *replies)])  # what is left was read last
        async with self._server.forget_positions_if_damaged():
            self._packed.bits = self._bits_of(parse_text(bits_record))
            if self._packed.bits != bits:  # this lookup is the first, or the index was rebuilt with other widths
                return await self._look_up(probes)
            computing = map(packed.join_results, requests, values)
            results = chain.from_iterable(computing if few else await asyncio.to_thread(list, computing))
            places = chain.from_iterable(packed_buckets.group_places(probes).values())
            by_place = dict(zip(places, results, strict=True))
        return applied, [by_place[n] for n in range(len(probes))]

    async def apply(self, changes: Sequence[Change], applied: int | None, since: int | None = None) -> None:
        """Apply changes and set the position, in one MULTI, or on a cluster in one MULTI per language."""
        await self._read_bits()
        for languages, key in zip(self._parts, self._applied, strict=True):
            async with self._server.transaction() as pipe:
                count_keys = self._guard.list_keys(languages)
                await pipe.watch(key, *count_keys)
                before = parse_number(await pipe.get(key))
                refuse_gap(before, since)
                self._guard.refuse_loss(  # after a build: until a position is set, only these counts show a loss
                    [parse_number(await pipe.get(count_key)) for count_key in count_keys], languages
                )
                # changes numbered 0 are not the ledger's, and are always applied
                new = [change for change in changes if change.seq == 0 or before is None or change.seq > before]
                commands = await asyncio.to_thread(list, self._commands(new, languages))
                if applied is not None and (before is None or applied > before):
                    commands.append(("SET", key, applied))
                pipe.multi()
                for command in (*commands, *(("DEL", count_key) for count_key in count_keys)):
                    pipe.execute_command(*command)
                with translate_unexpected_replies():
                    await pipe.execute()
                self._guard.finish(languages)

    async def build(self, batches: AsyncIterator[FingerprintArrays], scratch: Path) -> AsyncGenerator[int, None]:
        """Fill the empty index; each bucket is written whole.  Raises Transient if Redis loses data meanwhile."""
        await self._guard.start()
        await self._read_bits()
        spool = Spool(scratch)
        async for batch in batches:
            await self._spool_batch(spool, batch)
        async for stories in self._packed.fill(spool, self._guard):
            yield stories
        await self._write_rest(spool)

    async def _spool_batch(self, spool: Spool, batch: FingerprintArrays) -> None:
        """Spool a batch of stories during a build."""
        await asyncio.to_thread(
            spool_batch, spool, batch, self._bandings, self._packed.bits, blocks=self.packs_simhashes
        )

    @abstractmethod
    async def _write_rest(self, spool: Spool) -> None:
        """Write what is not in packed buckets, after all batches of a build."""

    async def clear(self, ledger_id: str, version: str, sizes: Mapping[Language, int] = {}) -> None:
        """Delete the keys of both layouts, and record the ledger, the settings and the version.

        The positions and the version are deleted first, and the version is set last: an index without a version has
        no position, so a clear that was interrupted is started again.
        """
        self._guard.reset()
        async with self._server.translate_errors(seconds=None):  # the time depends on the number of keys
            for key in (*self._applied, *(f"neardup:{fact}" for fact in FACTS if fact != "ledger")):
                await self._server.clients.messages.delete(key)
            await delete_index_keys(self._server.clients.messages, self._index_key)
            facts = {"ledger": ledger_id, **self._settings, **self._choose_settings(sizes), "version": version}
            await self._send([("SET", f"neardup:{fact}", value) for fact, value in facts.items()])

    async def admit(self, version: str) -> None:
        """Record the settings of the languages that were added since the index was cleared, and then this version."""
        applied_keys = dict(zip(self._names, self._applied, strict=True)) if len(self._parts) > 1 else {}
        await record_added_languages(self._send, self._settings, applied_keys, self._bits_of, version)

    async def read_bucket_sizes(self, sample: Sequence[BandedFingerprint]) -> dict[Bucket, int]:
        """The number of members of each packed bucket that a story of the sample falls into."""
        await self._read_bits()
        records, commands = self._packed.make_size_reads(sample)
        lengths = await self._send(commands)
        return {record: n // packed_buckets.NUMBER_BYTES for record, n in zip(records, lengths, strict=True) if n}

    async def count_missing(self, stories: Sequence[Change]) -> list[int]:
        """For each story, the number of packed buckets that lack it."""
        await self._read_bits()
        counts = [0] * len(stories)
        async with self._server.forget_positions_if_damaged():
            async for _, entries in self._packed.find_lacking(self._send, stories):
                for story, _ in entries:
                    counts[story] += 1
        return counts

    async def restore(self, stories: Sequence[Change]) -> None:
        """Append the number of each story to those of its packed buckets that lack it."""
        await self._read_bits()
        async with self._server.forget_positions_if_damaged():
            async for language, entries in self._packed.find_lacking(self._send, stories):
                if entries:
                    await self._send(
                        list(self._packed.make_appends(make_missing_additions(entries, stories), language))
                    )

    async def check_writable(self) -> None:
        """Write a key that is not part of the index."""
        await self._send([("SET", "neardup:touched", 1)])

    async def close(self) -> None:
        """Close all connections."""
        await self._server.aclose()

    async def _read_bits(self) -> None:
        [record] = await self._send([make_read_command("neardup:bits")])
        async with self._server.forget_positions_if_damaged():
            self._packed.bits = self._bits_of(parse_text(record))

    async def _send(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands as one message; returns their replies."""
        return await self._server.send(commands)
