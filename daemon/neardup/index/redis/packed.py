"""The packed buckets of an index in Redis: their keys, and the commands that read, append to and build them.

A key is the prefix of a column, then four hexadecimal digits of the value (see neardup.index.packed_buckets).  Lua
scripts append to many keys at once: one command for each key would cost the client far more.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np

from neardup.core.candidates.banding import BAND_BITS
from neardup.index import packed_buckets
from neardup.index.packed_buckets import (
    Additions,
    Bits,
    Buckets,
    Entry,
    LookupRequest,
    Spool,
    find_lacking,
    group_inserted,
    list_columns,
)
from neardup.index.protocol import Bandings, Bucket, LookupResult
from neardup.index.redis.client import KEYS_PER_COMMAND, Command, Send, cut_batches
from neardup.index.redis.records import FillGuard
from neardup.records import BandedFingerprint, Change, Language

# ARGV[1]: for each key how many numbers to append, 4 big-endian bytes each; ARGV[2]: the numbers.
# Splitting the numbers in Lua is cheaper than sending one argument per key.
APPEND_EACH = """
local first = 1
for i, key in ipairs(KEYS) do
    local a, b, c, d = string.byte(ARGV[1], 4 * i - 3, 4 * i)
    local after = first + 4 * (((a * 256 + b) * 256 + c) * 256 + d)
    redis.call('APPEND', key, string.sub(ARGV[2], first, after - 1))
    first = after
end
"""

# APPEND allocates twice the memory that a string needs.  BITOP with the string itself makes a copy of the exact size,
# and adds only the key to the append-only file, where SET would add the whole string.
TRIM_EACH = "for _, key in ipairs(KEYS) do redis.call('BITOP', 'OR', key, key) end"

SCAN_COUNT = 5000
DIGITS = np.frombuffer(b"0123456789ABCDEF", np.uint8)
SHIFTS = np.arange(BAND_BITS - 4, -1, -4)  # of the digits of a value


class PackedKeys:
    """The keys of a language's packed buckets: the prefix of the column, then four hexadecimal digits of the value."""

    def __init__(self, prefixes: Sequence[bytes]) -> None:
        self._lengths = np.array([len(prefix) for prefix in prefixes])
        width = int(self._lengths.max()) + len(SHIFTS)
        self._prefixes = np.array([list(prefix.ljust(width, b"\0")) for prefix in prefixes], np.uint8)

    def make_keys(self, buckets: Buckets) -> list[bytes]:
        """The keys of buckets, vectorised: built one by one they took a quarter of an insert."""
        columns, values = buckets >> BAND_BITS, buckets & (1 << BAND_BITS) - 1
        keys = self._prefixes[columns]
        positions = self._lengths[columns, None] + np.arange(len(SHIFTS))
        keys[np.arange(len(keys))[:, None], positions] = DIGITS[values[:, None] >> SHIFTS & 15]
        texts: list[bytes] = keys.view(f"S{keys.shape[1]}").ravel().tolist()  # numpy strips the padding zeros
        return texts


class PackedBuckets:
    """The packed buckets of all languages.

    `prefixes` are, for each column of a language's buckets, the part of their keys before the value.  SimHashes have
    packed buckets, too, if it `packs_simhashes`.  `append_script` appends to buckets.  `bits` are the widths of the
    values.
    """

    def __init__(
        self,
        bandings: Bandings,
        prefixes: Mapping[Language, Sequence[bytes]],
        bits: Bits,
        *,
        packs_simhashes: bool,
        append_script: str,
    ) -> None:
        self.bits = bits
        self._packs_simhashes = packs_simhashes
        self._bandings = bandings
        self._keys = {language: PackedKeys(columns) for language, columns in prefixes.items()}
        self._append_script = append_script

    def make_request(self, language: Language, stories: Sequence[BandedFingerprint]) -> LookupRequest:
        """The buckets that these stories of one language fall into."""
        bits = self.bits[language]
        return packed_buckets.make_request(
            language, stories, self._bandings[language], bits, blocks=self._packs_simhashes
        )

    def make_requests(self, probes: Sequence[BandedFingerprint]) -> tuple[list[LookupRequest], list[list[Command]]]:
        """For each language among the probes its request, and the commands that read the requested buckets."""
        places = packed_buckets.group_places(probes)
        requests = [self.make_request(language, [probes[n] for n in each]) for language, each in places.items()]
        return requests, [self.make_reads(request) for request in requests]

    def make_reads(self, request: LookupRequest) -> list[Command]:
        """The commands that read the requested buckets."""
        return [("MGET", *part) for part in cut_batches(self._keys[request.language].make_keys(request.buckets))]

    def make_size_reads(self, sample: Sequence[BandedFingerprint]) -> tuple[list[Bucket], list[Command]]:
        """The buckets that a sample falls into, and the commands that return the bytes of each."""
        records: list[Bucket] = []
        commands: list[Command] = []
        for language, places in packed_buckets.group_places(sample).items():
            buckets = self.make_request(language, [sample[n] for n in places]).buckets
            records += [packed_buckets.make_bucket(language, bucket) for bucket in buckets.tolist()]
            commands += [("STRLEN", key) for key in self._keys[language].make_keys(buckets)]
        return records, commands

    def join_results(self, request: LookupRequest, values: list[bytes | None]) -> list[LookupResult]:
        """The result of each story of a request, from the contents of its buckets."""
        return packed_buckets.join_results(request, values, self._bandings[request.language])

    def make_inserts(self, changes: Sequence[Change], language: Language) -> Iterator[Command]:
        """The commands that apply these changes to the buckets of a language."""
        banding, bits = self._bandings[language], self.bits[language]
        return self.make_appends(
            packed_buckets.make_additions(language, changes, banding, bits, blocks=self._packs_simhashes), language
        )

    def make_appends(self, additions: Additions, language: Language) -> Iterator[Command]:
        """The commands that add these numbers to the buckets of a language."""
        for chunk in additions.chunks(KEYS_PER_COMMAND):
            keys = self._keys[language].make_keys(chunk.buckets)
            yield ("EVAL", self._append_script, len(keys), *keys, chunk.counts.astype(">u4").tobytes(), chunk.numbers)

    async def fill(self, spool: Spool, guard: FillGuard) -> AsyncIterator[int]:
        """Write each spooled bucket whole; yields by how many stories the build has advanced."""
        for column in list_columns(spool, self._bandings, blocks=self._packs_simhashes):
            buckets = column.buckets(spool)
            while chunk := await asyncio.to_thread(list, islice(buckets, KEYS_PER_COMMAND)):
                keys = self._keys[column.language].make_keys(np.array([bucket for bucket, _ in chunk]))
                pairs = zip(keys, (numbers for _, numbers in chunk), strict=True)
                await guard.write(column.language, [("MSET", *chain.from_iterable(pairs))])
            yield column.stories

    async def find_lacking(self, send: Send, stories: Sequence[Change]) -> AsyncIterator[tuple[Language, list[Entry]]]:
        """The entries that the buckets lack of these stories, for some stories of a language at a time.

        Raises IndexDamaged for a bucket that does not consist of numbers.
        """
        for inserted in group_inserted(stories):
            request = self.make_request(inserted.language, inserted.fingerprints)
            contents = list(chain.from_iterable(await send(self.make_reads(request))))
            yield inserted.language, await asyncio.to_thread(find_lacking, request, contents, inserted, stories)


def compile_key_pattern(languages: Iterable[str]) -> re.Pattern[bytes]:
    """Matches the keys of the index, in either layout, that contain one of these names or codes of languages."""
    language = rf"\{{?({'|'.join(map(re.escape, languages))})\}}?"
    return re.compile(
        rf"(?:sketch:)?{language}:n?\d+:[0-9A-F]{{4}}"
        rf"|(?:simhashes|neardup:applied|neardup:filled|neardup:stories):{language}".encode()
    )


async def delete_index_keys(client: Any, index_key: re.Pattern[bytes]) -> None:
    """Delete every key that `index_key` matches (see `compile_key_pattern`); all other keys stay."""
    by_language: dict[bytes, list[bytes]] = defaultdict(list)
    async for key in client.scan_iter(match="*:*", count=SCAN_COUNT):
        if match := index_key.fullmatch(key):
            keys = by_language[match[1] or match[2]]  # the keys of a language share a slot
            keys.append(key)
            if len(keys) == SCAN_COUNT:
                await client.unlink(*keys)
                keys.clear()
    for keys in filter(None, by_language.values()):
        await client.unlink(*keys)
