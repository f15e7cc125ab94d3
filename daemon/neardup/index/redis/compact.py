"""The compact layout in Redis: both tiers packed (see neardup.index.packed_buckets), the hashes in the ledger only.

    APPEND  hi:31:0AF1           <NUMBER>  a band of the signature, four hexadecimal digits at most
    APPEND  hi:n0:28D3           <NUMBER>  a block of the SimHash
    INCRBY  neardup:stories:hi   <n>
    SET     neardup:bits         <widths>  of the values, HINDI=14 ...: chosen when the index is cleared

The keys are no longer than the smallest piece of memory that a key of this kind can be had in, 14 bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from neardup.core.candidates.banding import MAX_BLOCKS
from neardup.index import packed_buckets
from neardup.index.bulk import Spool
from neardup.index.marks import by_name, layout
from neardup.index.protocol import Bandings, Codes
from neardup.index.redis.base import RedisIndex
from neardup.index.redis.fill_guard import Command
from neardup.index.redis.scripts import APPEND_EACH, TRIM_EACH
from neardup.records import Change, Language


class Compact(RedisIndex):
    """The `Index` by the compact keys, in a Redis or a Redis cluster; made by `open_redis`."""

    blocks = True
    append_each = APPEND_EACH + TRIM_EACH

    def __init__(self, client: Any, bandings: Bandings, codes: Codes, *, cluster: bool) -> None:
        record = {
            "layout": "compact",
            "hamming": layout(bandings, lambda banding: banding.hamming),
            "bands": layout(bandings, lambda banding: banding.bands),
        }
        super().__init__(client, bandings, codes, record, codes, cluster=cluster)

    def _column_keys(self, name: str) -> list[bytes]:
        columns = [*map(str, range(packed_buckets.NEAR)), *(f"n{block}" for block in range(MAX_BLOCKS))]
        return [f"{name}:{column}:".encode() for column in columns]

    def _bits_of(self, record: str | None) -> packed_buckets.Bits:
        return packed_buckets.recorded(record, self._bandings)

    def _chosen(self, sizes: Mapping[Language, int]) -> Mapping[str, str]:
        return {"bits": by_name(packed_buckets.bits_for(sizes, self._bandings))}

    def _changing(self, changes: Sequence[Change], languages: Sequence[Language]) -> Iterator[Command]:
        for language in languages:
            yield from self._appending(changes, language)
        for language, n in packed_buckets.gained(changes).items():
            if language in languages:
                yield ("INCRBY", self._stories(language), n)

    async def _put_rest(self, spool: Spool) -> None:
        for language, n in spool.sizes.items():
            await self._filling.write(language, [("SET", self._stories(language), n)])

    async def sizes(self) -> dict[Language, int]:
        """Stories by language."""
        replies = await self._ask([("GET", self._stories(language)) for language in self._bandings])
        return {language: int(n) for language, n in zip(self._bandings, replies, strict=True) if n and int(n)}

    async def trouble(self) -> str | None:
        """A language that has outgrown its buckets, or None."""
        await self._read_bits()
        return packed_buckets.crowded(await self.sizes(), self._bits)

    def _stories(self, language: Language) -> str:
        return f"neardup:stories:{self._names[language]}"
