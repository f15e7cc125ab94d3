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

import numpy as np

from neardup.core.candidates.fingerprint_arrays import FingerprintArrays
from neardup.index import packed_buckets
from neardup.index.bulk import Spool, spool_page, spooled_columns
from neardup.index.packed_buckets import LookupRequest
from neardup.index.positions import earliest, refuse_gap, with_other_settings
from neardup.index.protocol import Bandings, Bucket, Codes, IndexPosition, LookupResult
from neardup.index.redis.client import translate_errors
from neardup.index.redis.commands import KEYS_PER_COMMAND, Command, batches
from neardup.index.redis.fill_guard import FillGuard
from neardup.index.redis.keys import PackedKeys, delete_index_keys, index_key_pattern
from neardup.index.redis.scripts import APPEND_EACH
from neardup.index.redis.settings import SETTINGS, changed_options, record_added_languages
from neardup.records import BandedFingerprint, Change, Language

PROBES_PER_READ = 256


class RedisIndex(ABC):
    """The `Index` in a Redis or a Redis cluster, with its optional protocols; each layout is a subclass.

    `names` are the names of languages in keys, `settings` those that decide which buckets a story falls into.  With
    `packs_simhashes`, SimHashes have packed buckets too.  `append_script` is the script that appends to packed buckets.
    """

    packs_simhashes: bool
    append_script = APPEND_EACH

    def __init__(
        self,
        client: Any,
        bandings: Bandings,
        names: Mapping[Language, str],
        settings: Mapping[str, str],
        codes: Codes,
        *,
        cluster: bool,
    ) -> None:
        self._client = client
        self._bandings = bandings
        self._names = {language: f"{{{name}}}" if cluster else name for language, name in names.items()}
        self._settings = settings
        self._bits = self._bits_of(None)
        self._keys = {language: PackedKeys(self._column_prefixes(name)) for language, name in self._names.items()}
        self._parts = [[language] for language in bandings] if cluster else [list(bandings)]
        self._applied = [f"neardup:applied:{name}" for name in self._names.values()] if cluster else ["neardup:applied"]
        self._get_applied: list[Command] = [("GET", key) for key in self._applied]
        self._index_key = index_key_pattern([*codes, *codes.values()])
        self._guard = FillGuard(self._send, self._names)

    @abstractmethod
    def _column_prefixes(self, name: str) -> list[bytes]:
        """For each column of a language's packed buckets, the part of their keys before the value."""

    @abstractmethod
    def _bits_of(self, record: str | None) -> packed_buckets.Bits:
        """The width in bits of each language's values; `record` is that in `neardup:bits`, None if there is none."""

    @abstractmethod
    def _commands(self, changes: Sequence[Change], languages: Sequence[Language]) -> Iterator[Command]:
        """The commands that apply these changes to these languages."""

    @abstractmethod
    async def story_counts(self) -> dict[Language, int]:
        """The number of stories of each language that has any."""

    @abstractmethod
    async def problem(self) -> str | None:
        """What is wrong, in one line, or None."""

    def _chosen(self, sizes: Mapping[Language, int]) -> Mapping[str, str]:
        """The settings that the layout chooses for the numbers of stories by language; `clear` records them."""
        return {}

    async def position(self) -> IndexPosition:
        """What the index records about itself."""
        facts = ("ledger", "version", *SETTINGS)
        replies = await self._send([("GET", key) for key in (*(f"neardup:{fact}" for fact in facts), *self._applied)])
        ledger, version, *recorded = [reply and reply.decode() for reply in replies[: len(facts)]]
        changed = changed_options(recorded, self._settings)
        return with_other_settings(IndexPosition(ledger, version, earliest(replies[len(facts) :])), changed)

    async def lookup(self, probes: Sequence[BandedFingerprint]) -> tuple[int | None, list[LookupResult]]:
        """The last change applied, and the result of each probe's packed buckets.

        The probes are read in batches on separate connections, so that Redis reads one while the candidates of
        another are counted here.
        """
        parts = await asyncio.gather(*map(self._look_up, batches(probes, PROBES_PER_READ) if probes else [()]))
        return earliest([applied for applied, _ in parts]), [result for _, results in parts for result in results]

    async def _look_up(self, probes: Sequence[BandedFingerprint]) -> tuple[int | None, list[LookupResult]]:
        bits = self._bits
        # in a thread, because the event loop also feeds the reader processes
        requests, mgets = await asyncio.to_thread(self._requests_and_mgets, probes)
        commands = [("GET", "neardup:bits"), *self._get_applied, *chain.from_iterable(mgets), *self._get_applied]
        replies = iter(await self._send(commands))
        [bits_record] = islice(replies, 1)
        before = list(islice(replies, len(self._applied)))
        self._bits = self._bits_of(bits_record and bits_record.decode())
        if self._bits != bits:  # this lookup is the first, or the index was rebuilt with other widths
            return await self._look_up(probes)
        values = [list(chain.from_iterable(islice(replies, len(each)))) for each in mgets]
        applied = earliest([*before, *replies])  # what is left are the positions after the buckets
        results = chain.from_iterable(await asyncio.to_thread(list, map(self._results, requests, values)))
        positions = chain.from_iterable(packed_buckets.positions_by_language(probes).values())
        by_position = dict(zip(positions, results, strict=True))
        return applied, [by_position[n] for n in range(len(probes))]

    def _requests_and_mgets(
        self, probes: Sequence[BandedFingerprint]
    ) -> tuple[list[LookupRequest], list[list[Command]]]:
        """For each language among the probes its request, and the commands that read the requested buckets."""
        positions = packed_buckets.positions_by_language(probes)
        requests = [self._request(language, [probes[n] for n in each]) for language, each in positions.items()]
        keys_of = [self._keys[request.language].of(request.buckets) for request in requests]
        return requests, [[("MGET", *part) for part in batches(keys)] for keys in keys_of]

    def _request(self, language: Language, stories: Sequence[BandedFingerprint]) -> LookupRequest:
        return packed_buckets.lookup_request(
            language, stories, self._bandings[language], self._bits[language], blocks=self.packs_simhashes
        )

    def _results(self, request: LookupRequest, values: list[bytes | None]) -> list[LookupResult]:
        banding = self._bandings[request.language]
        max_bytes = packed_buckets.NUMBER_BYTES * banding.max_bucket
        lengths = [0 if value is None else len(value) for value in values]
        capped = [value if len(value) <= max_bytes else value[-max_bytes:] for value in values if value]
        return packed_buckets.lookup_results(request, capped, lengths, banding)

    async def apply(self, changes: Sequence[Change], applied: int | None, since: int | None = None) -> None:
        """Apply changes and set the position, in one MULTI, or on a cluster in one MULTI per language."""
        await self._read_bits()
        for languages, key in zip(self._parts, self._applied, strict=True):
            async with translate_errors(), self._client.pipeline(transaction=True) as pipe:
                count_keys = self._guard.keys(languages)
                await pipe.watch(key, *count_keys)
                reply = await pipe.get(key)
                refuse_gap(earliest([reply]), since)
                self._guard.refuse_loss([int(await pipe.get(one) or 0) for one in count_keys], languages)
                before = -1 if reply is None else int(reply)
                new = [change for change in changes if change.seq == 0 or change.seq > before]
                commands = await asyncio.to_thread(list, self._commands(new, languages))
                if applied is not None and applied > before:
                    commands.append(("SET", key, applied))
                pipe.multi()
                for command in (*commands, *(("DEL", one) for one in count_keys)):
                    pipe.execute_command(*command)
                await pipe.execute()
                self._guard.finish(languages)

    def _append_commands(self, changes: Sequence[Change], language: Language) -> Iterator[Command]:
        """The commands that apply these changes to the packed buckets of a language."""
        banding, bits = self._bandings[language], self._bits[language]
        additions = packed_buckets.additions(language, changes, banding, bits, blocks=self.packs_simhashes)
        for chunk in additions.chunks(KEYS_PER_COMMAND):
            keys = self._keys[language].of(chunk.buckets)
            yield ("EVAL", self.append_script, len(keys), *keys, chunk.counts.astype(">u4").tobytes(), chunk.numbers)

    async def build(self, pages: AsyncIterator[FingerprintArrays], scratch: Path) -> AsyncGenerator[int, None]:
        """Fill the empty index; each bucket is written whole.  Raises Transient if Redis loses data meanwhile."""
        await self._guard.start()
        await self._read_bits()
        spool = Spool(scratch)
        async for page in pages:
            await self._write_page(spool, page)
        for column in spooled_columns(spool, self._bandings, blocks=self.packs_simhashes):
            buckets = column.buckets(spool)
            while chunk := await asyncio.to_thread(list, islice(buckets, KEYS_PER_COMMAND)):
                keys = self._keys[column.language].of(np.array([bucket for bucket, _ in chunk]))
                pairs = zip(keys, (numbers for _, numbers in chunk), strict=True)
                await self._guard.write(column.language, [("MSET", *chain.from_iterable(pairs))])
            yield column.stories
        await self._write_rest(spool)

    async def _write_page(self, spool: Spool, page: FingerprintArrays) -> None:
        """Spool a page of stories during a build."""
        await asyncio.to_thread(spool_page, spool, page, self._bandings, self._bits, blocks=self.packs_simhashes)

    @abstractmethod
    async def _write_rest(self, spool: Spool) -> None:
        """Write what is not in packed buckets, after all pages of a build."""

    async def clear(self, ledger_id: str, version: str, sizes: Mapping[Language, int] = {}) -> None:
        """Delete the keys of both layouts, and record the ledger, the settings and the version.

        The version is deleted first and set last: an index without a version has no position, so a clear that was
        interrupted is started again.
        """
        self._guard.reset()
        async with translate_errors(seconds=None):  # the time depends on the number of keys
            for key in (*self._applied, "neardup:version", *(f"neardup:{fact}" for fact in SETTINGS), "neardup:bits"):
                await self._client.delete(key)
            await delete_index_keys(self._client, self._index_key)
            facts = {"ledger": ledger_id, **self._settings, **self._chosen(sizes), "version": version}
            await self._send([("SET", f"neardup:{fact}", value) for fact, value in facts.items()])

    async def admit(self, version: str) -> None:
        """Record the settings of the languages that were added since the index was cleared, and then this version."""
        applied_keys = dict(zip(self._names, self._applied, strict=True)) if len(self._parts) > 1 else {}
        await record_added_languages(self._send, self._settings, applied_keys, self._bits_of, version)

    async def bucket_sizes(self, sample: Sequence[BandedFingerprint]) -> dict[Bucket, int]:
        """The number of members of each packed bucket that a story of the sample falls into."""
        await self._read_bits()
        records: list[Bucket] = []
        commands: list[Command] = []
        for language, positions in packed_buckets.positions_by_language(sample).items():
            buckets = self._request(language, [sample[n] for n in positions]).buckets
            records += [packed_buckets.bucket_record(language, bucket) for bucket in buckets.tolist()]
            commands += [("STRLEN", key) for key in self._keys[language].of(buckets)]
        lengths = await self._send(commands)
        return {record: n // packed_buckets.NUMBER_BYTES for record, n in zip(records, lengths, strict=True) if n}

    async def check_writable(self) -> None:
        """Write a key that is not part of the index."""
        await self._send([("SET", "neardup:touched", 1)])

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def _read_bits(self) -> None:
        [record] = await self._send([("GET", "neardup:bits")])
        self._bits = self._bits_of(record and record.decode())

    async def _send(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands as one message; returns their replies."""
        pipe = self._client.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)  # on a cluster redis-py disables its methods for some commands
        async with translate_errors():
            return list(await pipe.execute())
