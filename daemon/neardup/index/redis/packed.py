"""The packed buckets of an index in Redis: their keys, and the commands that read and append to them."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from itertools import chain, islice

import numpy as np

from neardup.index import packed_buckets
from neardup.index.bulk import Spool, spooled_columns
from neardup.index.packed_buckets import Additions, Bits, LookupRequest
from neardup.index.protocol import Bandings, Bucket, LookupResult
from neardup.index.redis.commands import KEYS_PER_COMMAND, Command, batches
from neardup.index.redis.fill_guard import FillGuard
from neardup.index.redis.keys import PackedKeys
from neardup.records import BandedFingerprint, Change, Language


class PackedBuckets:
    """The packed buckets of all languages.

    `prefixes` are, for each column of a language's buckets, the part of their keys before the value.  With `blocks`,
    SimHashes have packed buckets too.  `append_script` appends to buckets.  `bits` are the widths of the values.
    """

    def __init__(
        self,
        bandings: Bandings,
        prefixes: Mapping[Language, Sequence[bytes]],
        bits: Bits,
        *,
        blocks: bool,
        append_script: str,
    ) -> None:
        self.bits = bits
        self.blocks = blocks
        self._bandings = bandings
        self._keys = {language: PackedKeys(columns) for language, columns in prefixes.items()}
        self._append_script = append_script

    def request(self, language: Language, stories: Sequence[BandedFingerprint]) -> LookupRequest:
        """The buckets that these stories of one language fall into."""
        bits = self.bits[language]
        return packed_buckets.lookup_request(language, stories, self._bandings[language], bits, blocks=self.blocks)

    def requests(self, probes: Sequence[BandedFingerprint]) -> tuple[list[LookupRequest], list[list[Command]]]:
        """For each language among the probes its request, and the commands that read the requested buckets."""
        positions = packed_buckets.positions_by_language(probes)
        requests = [self.request(language, [probes[n] for n in each]) for language, each in positions.items()]
        return requests, [self.reads(request) for request in requests]

    def reads(self, request: LookupRequest) -> list[Command]:
        """The commands that read the requested buckets."""
        return [("MGET", *part) for part in batches(self._keys[request.language].of(request.buckets))]

    def sizes(self, sample: Sequence[BandedFingerprint]) -> tuple[list[Bucket], list[Command]]:
        """The buckets that a sample falls into, and the commands that return the bytes of each."""
        records: list[Bucket] = []
        commands: list[Command] = []
        for language, positions in packed_buckets.positions_by_language(sample).items():
            buckets = self.request(language, [sample[n] for n in positions]).buckets
            records += [packed_buckets.bucket_record(language, bucket) for bucket in buckets.tolist()]
            commands += [("STRLEN", key) for key in self._keys[language].of(buckets)]
        return records, commands

    def results(self, request: LookupRequest, values: list[bytes | None]) -> list[LookupResult]:
        """The result of each story of a request, from the contents of its buckets."""
        banding = self._bandings[request.language]
        max_bytes = packed_buckets.NUMBER_BYTES * banding.max_bucket
        lengths = [0 if value is None else len(value) for value in values]
        capped = [value if len(value) <= max_bytes else value[-max_bytes:] for value in values if value]
        return packed_buckets.lookup_results(request, capped, lengths, banding)

    def inserts(self, changes: Sequence[Change], language: Language) -> Iterator[Command]:
        """The commands that apply these changes to the buckets of a language."""
        banding, bits = self._bandings[language], self.bits[language]
        return self.appends(packed_buckets.additions(language, changes, banding, bits, blocks=self.blocks), language)

    def appends(self, additions: Additions, language: Language) -> Iterator[Command]:
        """The commands that add these numbers to the buckets of a language."""
        for chunk in additions.chunks(KEYS_PER_COMMAND):
            keys = self._keys[language].of(chunk.buckets)
            yield ("EVAL", self._append_script, len(keys), *keys, chunk.counts.astype(">u4").tobytes(), chunk.numbers)

    async def fill(self, spool: Spool, guard: FillGuard) -> AsyncIterator[int]:
        """Write each spooled bucket whole; yields by how many stories the build has advanced."""
        for column in spooled_columns(spool, self._bandings, blocks=self.blocks):
            buckets = column.buckets(spool)
            while chunk := await asyncio.to_thread(list, islice(buckets, KEYS_PER_COMMAND)):
                keys = self._keys[column.language].of(np.array([bucket for bucket, _ in chunk]))
                pairs = zip(keys, (numbers for _, numbers in chunk), strict=True)
                await guard.write(column.language, [("MSET", *chain.from_iterable(pairs))])
            yield column.stories
