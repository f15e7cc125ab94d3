"""The two layouts of the index in Redis.

**Documented.**

    SADD    <LANG>:<BAND>:<VALUE>         <ID>      HINDI:0:A8D3, eight bands of four hexadecimal digits
    HSET    simhashes:<LANG>              <ID>      <32 hexadecimal digits>
    APPEND  sketch:<LANG>:<BAND>:<VALUE>  <NUMBER>  sketch:HINDI:31:0AF1, 4 bytes, the least significant first

A lookup of a SimHash takes one SINTER per group of bands (see neardup.core.candidates.banding).  An intersection costs
as much as its smallest set, so a heavy bucket does no harm next to a light one.

**Compact.**  Packed buckets for SimHashes and signatures; the SimHashes stay in the ledger.

    APPEND  hi:31:0AF1           <NUMBER>  a band of the signature, the value in four hexadecimal digits
    APPEND  hi:n0:28D3           <NUMBER>  a block of the SimHash
    INCRBY  neardup:stories:hi   <n>
    SET     neardup:bits         <widths>  of the values, HINDI=14 ..., chosen when the index is cleared

The keys have at most 14 bytes, so that each fits into the smallest allocation that Redis makes for such a key.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice, product

import numpy as np
from redis import exceptions

from neardup.core.candidates.banding import (
    BAND_BITS,
    BANDS,
    MAX_BLOCKS,
    Banding,
    FingerprintArrays,
    cut_band_values,
    divide_bands,
)
from neardup.index import packed_buckets
from neardup.index.packed_buckets import Spool
from neardup.index.protocol import (
    Bandings,
    Bucket,
    BucketKind,
    Codes,
    LookupResult,
    find_earliest,
    record_by_language,
    record_packed_settings,
)
from neardup.index.redis.base import (
    APPEND_EACH,
    TRIM_EACH,
    RedisIndex,
    make_read_command,
    parse_position,
)
from neardup.index.redis.client import KEYS_PER_COMMAND, Clients, Command, cut_batches, translate_unexpected_replies
from neardup.records import BandedFingerprint, Change, Language

INTSET_ENTRIES = 1_000_000
ID, MAX_ID = re.compile(rb"-?[0-9]+"), 2**63 - 1
SIMHASHES = "simhashes"  # their group of columns in the spool
STORIES_PER_COMMAND = KEYS_PER_COMMAND // BANDS

# ARGV: for each story SADD or SREM, and its id; KEYS: the bands of each story.
MOVE_EACH = """
local bands = 2 * #KEYS / #ARGV
for i, key in ipairs(KEYS) do
    local story = 2 * math.floor((i - 1) / bands)
    redis.call(ARGV[story + 1], key, ARGV[story + 2])
end
"""

# ARGV: the number of bands in each of a story's groups; KEYS: the bands of each story.  Returns, for each group whose
# bands have common members, the position of the group and these members.
SINTER_EACH = """
local found, first, group = {}, 1, 0
while first <= #KEYS do
    local size = tonumber(ARGV[group % #ARGV + 1])
    local common = redis.call('SINTER', unpack(KEYS, first, first + size - 1))
    if #common > 0 then
        found[#found + 1] = group
        found[#found + 1] = common
    end
    first, group = first + size, group + 1
end
return found
"""


class Documented(RedisIndex):
    """The `Index` in the documented layout; opened by `open_redis`."""

    packs_simhashes = False

    def __init__(self, clients: Clients, bandings: Bandings, codes: Codes) -> None:
        settings = {"bands": record_packed_settings(bandings)["bands"]}
        names = {language: str(language) for language in bandings}
        super().__init__(clients, bandings, names, settings, codes)

    def _column_prefixes(self, name: str) -> list[bytes]:
        return [f"sketch:{name}:{band}:".encode() for band in range(packed_buckets.FIRST_BLOCK)]

    def _bits_of(self, record: str | None) -> packed_buckets.Bits:
        return dict.fromkeys(self._bandings, BAND_BITS)

    async def look_up(self, probes: Sequence[BandedFingerprint]) -> tuple[int | None, list[LookupResult]]:
        """As `Index`: SimHashes give the ids of a result, signatures its numbers."""
        chunks = [
            (self._bandings[language], chunk)
            for language, places in packed_buckets.group_places(probes).items()
            for chunk in cut_batches(places, STORIES_PER_COMMAND)
        ]
        sinters = [self._sinter(banding, [probes[n] for n in chunk]) for banding, chunk in chunks]
        (applied, results), replies = await asyncio.gather(
            super().look_up(probes), self._send([*self._position_reads, *sinters, *self._position_reads])
        )
        parts = len(self._applied)
        for (banding, chunk), reply in zip(chunks, replies[parts:], strict=False):
            for at, members in zip(reply[::2], reply[1::2], strict=True):
                nth, group = divmod(at, banding.hamming + 1)
                result = results[chunk[nth]]
                ids = _parse_ids(members)
                result.ids.update(ids)
                if len(ids) > banding.max_bucket:
                    bucket = _make_bucket(probes[chunk[nth]], divide_bands(banding.hamming)[group])
                    result.large[bucket] = len(ids)
        return find_earliest([applied, *map(parse_position, (*replies[:parts], *replies[-parts:]))]), results

    def _sinter(self, banding: Banding, probes: Sequence[BandedFingerprint]) -> Command:
        keys = [key for probe in probes for key in self._band_keys(probe)]
        return ("EVAL", SINTER_EACH, len(keys), *keys, *map(len, divide_bands(banding.hamming)))

    def _commands(self, changes: Sequence[Change], languages: Sequence[Language]) -> Iterator[Command]:
        moves = [
            (command, change.story_id, banded)
            for change in changes
            for command, banded in (("SREM", change.old), ("SADD", change.new))
            if banded and banded.language in languages
        ]
        for chunk in cut_batches(moves, STORIES_PER_COMMAND):
            keys = [key for *_, banded in chunk for key in self._band_keys(banded)]
            yield ("EVAL", MOVE_EACH, len(keys), *keys, *chain.from_iterable(move[:2] for move in chunk))
        last: dict[Language, dict[int, str | None]] = {}  # the last of several changes to a story counts
        for command, story_id, banded in moves:
            last.setdefault(banded.language, {})[story_id] = banded.simhash.hex() if command == "SADD" else None
        for language, hashes in last.items():
            key = self._make_simhashes_key(language)
            removed = [story_id for story_id, digits in hashes.items() if digits is None]
            present = [(story_id, digits) for story_id, digits in hashes.items() if digits is not None]
            yield from (("HDEL", key, *chunk) for chunk in cut_batches(removed))
            yield from (("HSET", key, *chain.from_iterable(chunk)) for chunk in cut_batches(present))
            yield from self._make_inserts(changes, language)

    async def _spool_batch(self, spool: Spool, batch: FingerprintArrays) -> None:
        await super()._spool_batch(spool, batch)
        for language, stories in batch.by_language():
            spool.put(language, SIMHASHES, stories.ids, stories.simhashes.view(">u2").astype(np.uint16))
            digits = [simhash.tobytes().hex() for simhash in stories.simhashes]
            hashes = list(zip(stories.ids.tolist(), digits, strict=True))
            key = self._make_simhashes_key(language)
            commands = [("HSET", key, *chain.from_iterable(chunk)) for chunk in cut_batches(hashes)]
            await self._guard.write(language, commands)

    async def _write_rest(self, spool: Spool) -> None:
        for language, band in product(spool.sizes, range(BANDS)):
            name = self._names[language]
            buckets = spool.buckets(language, SIMHASHES, band)
            while chunk := await asyncio.to_thread(list, islice(buckets, KEYS_PER_COMMAND)):
                commands = [("SADD", f"{name}:{band}:{value:04X}", *np.sort(ids).tolist()) for value, ids in chunk]
                await self._guard.write(language, commands)

    async def count_missing(self, stories: Sequence[Change]) -> list[int]:
        """For each story, the number of bands of either fingerprint that lack it, and its SimHash if that is lost."""
        counts, width = await super().count_missing(stories), BANDS + 1
        for chunk in cut_batches(range(len(stories)), STORIES_PER_COMMAND):
            reads = chain.from_iterable(self._reads_of(stories[n]) for n in chunk)
            replies = await self._send(list(reads))
            for at, n in enumerate(chunk):
                *members, digits = replies[at * width : (at + 1) * width]
                counts[n] += BANDS - sum(members) + (digits != _encode_simhash(stories[n]))
        return counts

    def _reads_of(self, story: Change) -> Iterator[Command]:
        assert story.new is not None
        yield from (("SISMEMBER", key, story.story_id) for key in self._band_keys(story.new))
        yield ("HGET", self._make_simhashes_key(story.new.language), story.story_id)

    async def restore(self, stories: Sequence[Change]) -> None:
        """Write the bands of both fingerprints and the SimHashes of these stories again."""
        await super().restore(stories)
        commands: list[Command] = []
        for story in stories:
            assert story.new is not None
            commands += [("SADD", key, story.story_id) for key in self._band_keys(story.new)]
            commands.append(
                ("HSET", self._make_simhashes_key(story.new.language), story.story_id, story.new.simhash.hex())
            )
        for chunk in cut_batches(commands):
            await self._send(chunk)

    async def count_stories(self) -> dict[Language, int]:
        replies = await self._send([("HLEN", self._make_simhashes_key(language)) for language in self._bandings])
        return {language: n for language, n in zip(self._bandings, replies, strict=True) if n}

    async def read_bucket_sizes(self, sample: Sequence[BandedFingerprint]) -> dict[Bucket, int]:
        """The number of members of each bucket, of SimHashes and signatures, that a story of the sample falls into."""
        keys = {
            _make_bucket(probe, range(band, band + 1)): key
            for probe in sample
            for band, key in enumerate(self._band_keys(probe))
        }
        sizes = await self._send([("SCARD", key) for key in keys.values()])
        simhashes = {bucket: n for bucket, n in zip(keys, sizes, strict=True) if n}
        return simhashes | await super().read_bucket_sizes(sample)

    async def find_problem(self) -> str | None:
        """A setting by which Redis would take several times the memory, or None."""
        async with self._server.translate_errors():
            try:
                with translate_unexpected_replies():
                    config = await self._server.clients.messages.config_get("set-max-intset-entries")
                    entries = int(config["set-max-intset-entries"])
            except exceptions.NoPermissionError:
                return None  # an ACL may hide the configuration
        if entries >= INTSET_ENTRIES:
            return None
        return (
            f"set-max-intset-entries is {entries}: a fuller bucket takes several times the memory; "
            f"redis-cli CONFIG SET set-max-intset-entries {INTSET_ENTRIES}, and in redis.conf"
        )

    def _band_keys(self, banded: BandedFingerprint) -> list[str]:
        name = self._names[banded.language]
        return [f"{name}:{band}:{value}" for band, value in enumerate(cut_band_values(banded.simhash))]

    def _make_simhashes_key(self, language: Language) -> str:
        return f"simhashes:{self._names[language]}"


def _make_bucket(banded: BandedFingerprint, bands: range) -> Bucket:
    values = cut_band_values(banded.simhash)
    return Bucket(BucketKind.SIMHASH, banded.language, bands[0], tuple(int(values[band], 16) for band in bands))


def _encode_simhash(story: Change) -> bytes:
    assert story.new is not None
    return story.new.simhash.hex().encode()


def _parse_ids(members: Sequence[bytes]) -> list[int]:
    """The ids among the members of a set, ascending; other members were not written by neardup."""
    try:
        ids = sorted(map(int, members))
    except ValueError:
        ids = sorted(int(member) for member in members if ID.fullmatch(member))
    return (
        [story_id for story_id in ids if -MAX_ID <= story_id <= MAX_ID]
        if ids and max(-ids[0], ids[-1]) > MAX_ID
        else ids
    )


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
            yield from self._make_inserts(changes, language)
        for language, n in packed_buckets.count_growth(changes).items():
            if language in languages:
                yield ("INCRBY", self._count_key(language), n)

    async def _write_rest(self, spool: Spool) -> None:
        for language, n in spool.sizes.items():
            await self._guard.write(language, [("SET", self._count_key(language), n)])

    async def count_stories(self) -> dict[Language, int]:
        replies = await self._send([make_read_command(self._count_key(language)) for language in self._bandings])
        counts = map(parse_position, replies)
        return {language: n for language, n in zip(self._bandings, counts, strict=True) if n}

    async def find_problem(self) -> str | None:
        await self._read_bits()
        return packed_buckets.describe_overfull(await self.count_stories(), self._bits)

    def _count_key(self, language: Language) -> str:
        return f"neardup:stories:{self._names[language]}"
