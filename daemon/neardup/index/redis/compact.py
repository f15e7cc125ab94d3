"""The compact layout in Redis: packed buckets for SimHashes and signatures; the SimHashes stay in the ledger.

    APPEND  hi:31:0AF1           <NUMBER>  a band of the signature, the value in four hexadecimal digits
    APPEND  hi:n0:28D3           <NUMBER>  a block of the SimHash
    INCRBY  neardup:stories:hi   <n>
    SET     neardup:bits         <widths>  of the values, HINDI=14 ..., chosen when the index is cleared

The keys have at most 14 bytes, so that each fits into the smallest allocation that Redis makes for such a key.
"""

from collections.abc import Iterator, Mapping, Sequence

from neardup.core.candidates.banding import MAX_BLOCKS
from neardup.index import packed_buckets
from neardup.index.packed_buckets import Spool
from neardup.index.positions import record_by_language, record_packed_settings
from neardup.index.protocol import Bandings, Codes
from neardup.index.redis.base import RedisIndex
from neardup.index.redis.client import Clients, Command
from neardup.index.redis.packed import APPEND_EACH, TRIM_EACH
from neardup.index.redis.records import make_read_command, parse_position
from neardup.records import Change, Language


class Compact(RedisIndex):
    """The `Index` in the compact layout; opened by `open_redis`."""

    packs_simhashes = True
    append_script = APPEND_EACH + TRIM_EACH

    def __init__(self, clients: Clients, bandings: Bandings, codes: Codes) -> None:
        settings = {"layout": "compact", **record_packed_settings(bandings)}
        names = {language: codes[language] for language in bandings}
        super().__init__(clients, bandings, names, settings, codes)

    def _column_prefixes(self, name: str) -> list[bytes]:
        columns = [*map(str, range(packed_buckets.FIRST_BLOCK)), *(f"n{block}" for block in range(MAX_BLOCKS))]
        return [f"{name}:{column}:".encode() for column in columns]

    def _bits_of(self, record: str | None) -> packed_buckets.Bits:
        return packed_buckets.parse_bits(record, self._bandings)

    def _choose_settings(self, sizes: Mapping[Language, int]) -> Mapping[str, str]:
        return {"bits": record_by_language(packed_buckets.choose_bits(sizes, self._bandings))}

    def _commands(self, changes: Sequence[Change], languages: Sequence[Language]) -> Iterator[Command]:
        for language in languages:
            yield from self._packed.make_inserts(changes, language)
        for language, n in packed_buckets.count_growth(changes).items():
            if language in languages:
                yield ("INCRBY", self._count_key(language), n)

    async def _write_rest(self, spool: Spool) -> None:
        for language, n in spool.sizes.items():
            await self._guard.write(language, [("SET", self._count_key(language), n)])

    async def count_stories(self) -> dict[Language, int]:
        """The number of stories of each language that has any."""
        replies = await self._send([make_read_command(self._count_key(language)) for language in self._bandings])
        counts = map(parse_position, replies)
        return {language: n for language, n in zip(self._bandings, counts, strict=True) if n}

    async def find_problem(self) -> str | None:
        """The languages whose buckets have grown too full, or None."""
        await self._read_bits()
        return packed_buckets.describe_overfull(await self.count_stories(), self._packed.bits)

    def _count_key(self, language: Language) -> str:
        return f"neardup:stories:{self._names[language]}"
