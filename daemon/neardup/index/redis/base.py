"""The index in Redis, but for what its two layouts do each in its own way (see neardup.index.redis.layouts).

    SET     neardup:applied         <seq>     the position: the number of the last change applied
    SET     neardup:<fact>                    the ledger, the version, and the settings that decide a story's buckets
    INCR    neardup:filled:<LANG>             when a build starts, and with each of its messages that writes data of
                                              the language
    APPEND  <COLUMN>:<VALUE>        <NUMBER>  a packed bucket (see neardup.index.packed_buckets), the value in four
                                              hexadecimal digits

On a cluster the language is a hash tag, {HINDI}:0:A8D3, so that all of its keys share a slot.  Each language then has
its own neardup:applied, set with its buckets in one MULTI, and the position of the index is the lowest of them.

Between two messages Redis may lose all its data or the latest writes, in a restart or a failover, and still answer the
next message.  Changes may also be applied during a lookup.  A lookup therefore reads the position both before and after
the buckets, and changes are applied under a WATCH of the position.

While an index is built there is no position yet that would show a loss.  Redis applies and persists commands in order,
and the INCR is the last of a message: if Redis loses any part of the message, it loses the INCR too.  The counts are
deleted when the position is set.

Each record is read by an MGET of one key, which returns nothing for a key of another type, so that such a record counts
as lost.
"""

import asyncio
import re
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from neardup.core.candidates.banding import BAND_BITS, FingerprintArrays
from neardup.errors import IndexDamaged
from neardup.index import packed_buckets
from neardup.index.packed_buckets import Additions, Bits, Buckets, Entry, LookupRequest, Spool
from neardup.index.protocol import (
    Bandings,
    Bucket,
    Codes,
    IndexPosition,
    LookupResult,
    extend_record,
    find_earliest,
    is_same_setting,
    make_data_lost,
    mark_other_settings,
    parse_number,
    parse_values,
    record_by_language,
    refuse_gap,
    select_new,
)
from neardup.index.redis.client import (
    KEYS_PER_COMMAND,
    Clients,
    Command,
    Send,
    Server,
    cut_batches,
    translate_unexpected_replies,
)
from neardup.records import BandedFingerprint, Change, Language

PROBES_PER_READ = 256
FEW_PROBES = 4
SCAN_COUNT = 5000
DIGITS = np.frombuffer(b"0123456789ABCDEF", np.uint8)
SHIFTS = np.arange(BAND_BITS - 4, -1, -4)  # of the digits of a value
# The name in the key `neardup:<name>`, and the option.  The layout is one word, the others hold a number per language.
SETTINGS = {"layout": "index.layout", "hamming": "detection.hamming", "bands": "detection.bands"}
PER_LANGUAGE = ("hamming", "bands")
FACTS = ("ledger", "version", "bits", *SETTINGS)

# Lua scripts append to many keys at once: one command for each key would cost the client far more.
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


def make_read_command(key: str) -> Command:
    """The command that reads a record."""
    return ("MGET", key)


def parse_text(reply: Sequence[bytes | None]) -> str | None:
    """The text in the reply to `make_read_command`; None if the key does not exist or is no string."""
    [value] = reply
    return None if value is None else value.decode(errors="replace")


def parse_position(reply: Sequence[bytes | None]) -> int | None:
    """The number in the reply to `make_read_command`; None if there is none."""
    [value] = reply
    return parse_number(value)


class RedisIndex(ABC):
    """The `Index` in a Redis or a Redis cluster; each layout is a subclass.

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
        self._bits = self._bits_of(None)
        self._keys = {language: _PackedKeys(self._column_prefixes(name)) for language, name in self._names.items()}
        # The languages whose buckets share a slot, and so a transaction.
        self._parts = [[language] for language in bandings] if cluster else [list(bandings)]
        self._applied = [f"neardup:applied:{name}" for name in self._names.values()] if cluster else ["neardup:applied"]
        self._server = Server(clients, self._applied)
        self._position_reads = [make_read_command(key) for key in self._applied]
        self._index_key = _compile_key_pattern([*codes, *codes.values()])
        self._guard = _FillGuard(self._send, self._names)

    @abstractmethod
    def _column_prefixes(self, name: str) -> list[bytes]:
        """For each column of a language's packed buckets, the part of their keys before the value.

        A column is a band of the signature or a block of the SimHash; a value is what a story has in it.
        """

    @abstractmethod
    def _bits_of(self, record: str | None) -> Bits:
        """The width in bits of each language's values, by the `record` in `neardup:bits`.  Raises IndexDamaged."""

    @abstractmethod
    def _commands(self, changes: Sequence[Change], languages: Sequence[Language]) -> Iterator[Command]:
        """The commands that apply these changes to these languages."""

    @abstractmethod
    async def count_stories(self) -> dict[Language, int]: ...

    @abstractmethod
    async def find_problem(self) -> str | None: ...

    def _choose_settings(self, sizes: Mapping[Language, int]) -> Mapping[str, str]:
        """The settings that the layout chooses for the numbers of stories by language; `clear` records them."""
        return {}

    async def read_position(self) -> IndexPosition:
        """As `Index`; no position if records are lost or unreadable."""
        replies = await self._send([*(make_read_command(f"neardup:{fact}") for fact in FACTS), *self._position_reads])
        facts = dict(zip(FACTS, map(parse_text, replies), strict=False))
        if self._has_lost(facts):
            return IndexPosition(facts["ledger"], facts["version"], None)
        applied = find_earliest([parse_position(reply) for reply in replies[len(FACTS) :]])
        position = IndexPosition(facts["ledger"], facts["version"], applied)
        changed = [
            option for name, option in SETTINGS.items() if not _is_same(name, facts[name], self._settings.get(name))
        ]
        return mark_other_settings(position, changed)

    def _has_lost(self, facts: Mapping[str, str | None]) -> bool:
        """Whether records that every index of its layout has are lost or unreadable; `facts` are those of FACTS.

        Only the compact layout records `layout`, `hamming` and `bits`.
        """
        is_compact = any(facts[name] is not None for name in ("layout", "hamming", "bits"))
        recorded = ("layout", "hamming", "bands", "bits") if is_compact else ("bands",)
        if any(facts[name] is None for name in ("ledger", "version", *recorded)):
            return True
        try:
            self._bits_of(facts["bits"])
            for name in PER_LANGUAGE:
                parse_values(facts[name])
        except IndexDamaged:
            return True
        return False

    async def look_up(self, probes: Sequence[BandedFingerprint]) -> tuple[int | None, list[LookupResult]]:
        """The last change applied, and the result of each probe's packed buckets.

        The probes are read in batches on separate connections, so that Redis reads one while the candidates of
        another are counted here.
        """
        parts = await asyncio.gather(*map(self._look_up, cut_batches(probes, PROBES_PER_READ) if probes else [()]))
        return find_earliest([applied for applied, _ in parts]), [result for _, results in parts for result in results]

    async def _look_up(self, probes: Sequence[BandedFingerprint]) -> tuple[int | None, list[LookupResult]]:
        bits = self._bits
        few = len(probes) <= FEW_PROBES  # a thread would cost more than these; many would hold up the event loop
        requests, mgets = self._make_requests(probes) if few else await asyncio.to_thread(self._make_requests, probes)
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
            self._bits = self._bits_of(parse_text(bits_record))
            if self._bits != bits:  # this lookup is the first, or the index was rebuilt with other widths
                return await self._look_up(probes)
            computing = map(self._join_results, requests, values)
            results = chain.from_iterable(computing if few else await asyncio.to_thread(list, computing))
            places = chain.from_iterable(packed_buckets.group_places(probes).values())
            by_place = dict(zip(places, results, strict=True))
        return applied, [by_place[n] for n in range(len(probes))]

    def _make_requests(self, probes: Sequence[BandedFingerprint]) -> tuple[list[LookupRequest], list[list[Command]]]:
        """For each language among the probes its request, and the commands that read the requested buckets."""
        places = packed_buckets.group_places(probes)
        requests = [self._make_request(language, [probes[n] for n in each]) for language, each in places.items()]
        return requests, [self._make_reads(request) for request in requests]

    def _make_request(self, language: Language, stories: Sequence[BandedFingerprint]) -> LookupRequest:
        """The buckets that these stories of one language fall into."""
        banding, bits = self._bandings[language], self._bits[language]
        return packed_buckets.make_request(language, stories, banding, bits, blocks=self.packs_simhashes)

    def _make_reads(self, request: LookupRequest) -> list[Command]:
        """The commands that read the requested buckets."""
        return [("MGET", *part) for part in cut_batches(self._keys[request.language].make_keys(request.buckets))]

    def _join_results(self, request: LookupRequest, values: list[bytes | None]) -> list[LookupResult]:
        return packed_buckets.join_results(request, values, self._bandings[request.language])

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
                commands = await asyncio.to_thread(list, self._commands(select_new(changes, before), languages))
                if applied is not None and (before is None or applied > before):
                    commands.append(("SET", key, applied))
                pipe.multi()
                for command in (*commands, *(("DEL", count_key) for count_key in count_keys)):
                    pipe.execute_command(*command)
                with translate_unexpected_replies():
                    await pipe.execute()
                self._guard.finish(languages)

    def _make_inserts(self, changes: Sequence[Change], language: Language) -> Iterator[Command]:
        """The commands that apply these changes to the packed buckets of a language."""
        banding, bits = self._bandings[language], self._bits[language]
        additions = packed_buckets.make_additions(language, changes, banding, bits, blocks=self.packs_simhashes)
        return self._make_appends(additions, language)

    def _make_appends(self, additions: Additions, language: Language) -> Iterator[Command]:
        """The commands that add these numbers to the packed buckets of a language."""
        for chunk in additions.chunks(KEYS_PER_COMMAND):
            keys = self._keys[language].make_keys(chunk.buckets)
            yield ("EVAL", self.append_script, len(keys), *keys, chunk.counts.astype(">u4").tobytes(), chunk.numbers)

    async def build(self, batches: AsyncIterator[FingerprintArrays], scratch: Path) -> AsyncGenerator[int, None]:
        """Fill the empty index; each bucket is written whole.  Raises Transient if Redis loses data meanwhile."""
        await self._guard.start()
        await self._read_bits()
        spool = Spool(scratch)
        async for batch in batches:
            await self._spool_batch(spool, batch)
        for column in packed_buckets.list_columns(spool, self._bandings, blocks=self.packs_simhashes):
            buckets = column.buckets(spool)
            while chunk := await asyncio.to_thread(list, islice(buckets, KEYS_PER_COMMAND)):
                keys = self._keys[column.language].make_keys(np.array([bucket for bucket, _ in chunk]))
                pairs = zip(keys, (numbers for _, numbers in chunk), strict=True)
                await self._guard.write(column.language, [("MSET", *chain.from_iterable(pairs))])
            yield column.stories
        await self._write_rest(spool)

    async def _spool_batch(self, spool: Spool, batch: FingerprintArrays) -> None:
        """Spool a batch of stories during a build."""
        await asyncio.to_thread(
            packed_buckets.spool_batch, spool, batch, self._bandings, self._bits, blocks=self.packs_simhashes
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
            await _delete_keys(self._server.clients.messages, self._index_key)
            facts = {"ledger": ledger_id, **self._settings, **self._choose_settings(sizes), "version": version}
            await self._record(facts)

    async def admit(self, version: str) -> None:
        """Record the settings of the languages that were added since the index was cleared, and then this version.

        Where each language has a position of its own, an added one, which has no stories, takes the earliest.
        """
        names = [name for name in PER_LANGUAGE if name in self._settings]
        replies = await self._send([make_read_command(f"neardup:{name}") for name in ("bits", *names)])
        bits, *recorded = map(parse_text, replies)
        known = parse_values(recorded[names.index("bands")])
        applied = dict(zip(self._names, self._applied, strict=True)) if len(self._parts) > 1 else {}
        replies = await self._send([make_read_command(key) for language, key in applied.items() if language in known])
        position = find_earliest([parse_position(reply) for reply in replies]) if replies else None
        added = [key for language, key in applied.items() if language not in known]
        facts = {name: extend_record(value, self._settings[name]) for name, value in zip(names, recorded, strict=True)}
        if bits is not None:
            facts["bits"] = record_by_language(self._bits_of(bits))
        await self._send([("SET", key, position) for key in added if position is not None])
        await self._record({**facts, "version": version})

    async def _record(self, facts: Mapping[str, str]) -> None:
        await self._send([("SET", f"neardup:{fact}", value) for fact, value in facts.items()])

    async def read_bucket_sizes(self, sample: Sequence[BandedFingerprint]) -> dict[Bucket, int]:
        """The number of members of each packed bucket that a story of the sample falls into."""
        await self._read_bits()
        records, commands = list[Bucket](), list[Command]()
        for language, places in packed_buckets.group_places(sample).items():
            buckets = self._make_request(language, [sample[n] for n in places]).buckets
            records += [packed_buckets.make_bucket(language, bucket) for bucket in buckets.tolist()]
            commands += [("STRLEN", key) for key in self._keys[language].make_keys(buckets)]
        lengths = await self._send(commands)
        return {record: n // packed_buckets.NUMBER_BYTES for record, n in zip(records, lengths, strict=True) if n}

    async def count_missing(self, stories: Sequence[Change]) -> list[int]:
        """For each story, the number of packed buckets that lack it."""
        counts = [0] * len(stories)
        async for _, entries in self._find_lacking(stories):
            for story, _ in entries:
                counts[story] += 1
        return counts

    async def restore(self, stories: Sequence[Change]) -> None:
        """Append the number of each story to those of its packed buckets that lack it."""
        async for language, entries in self._find_lacking(stories):
            if entries:
                additions = packed_buckets.make_missing_additions(entries, stories)
                await self._send(list(self._make_appends(additions, language)))

    async def _find_lacking(self, stories: Sequence[Change]) -> AsyncIterator[tuple[Language, list[Entry]]]:
        """The entries that the packed buckets lack of these stories, for some stories of a language at a time."""
        await self._read_bits()
        async with self._server.forget_positions_if_damaged():
            for inserted in packed_buckets.group_inserted(stories):
                request = self._make_request(inserted.language, inserted.fingerprints)
                contents = list(chain.from_iterable(await self._send(self._make_reads(request))))
                lacking = await asyncio.to_thread(packed_buckets.find_lacking, request, contents, inserted, stories)
                yield inserted.language, lacking

    async def check_writable(self) -> None:
        """Write a key that is not part of the index."""
        await self._send([("SET", "neardup:touched", 1)])

    async def close(self) -> None:
        await self._server.aclose()

    async def _read_bits(self) -> None:
        [record] = await self._send([make_read_command("neardup:bits")])
        async with self._server.forget_positions_if_damaged():
            self._bits = self._bits_of(parse_text(record))

    async def _send(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands as one message; returns their replies."""
        return await self._server.send(commands)


def _is_same(name: str, recorded: str | None, current: str | None) -> bool:
    if current is None or name not in PER_LANGUAGE:
        return recorded == current
    return is_same_setting(recorded, current)


class _PackedKeys:
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


class _FillGuard:
    """Counts the messages of a build for each language, sent by `send`, and compares Redis's counts with its own."""

    def __init__(self, send: Send, names: Mapping[Language, str]) -> None:
        self._send = send
        self._keys = {language: f"neardup:filled:{name}" for language, name in names.items()}
        self._counts: dict[Language, int] = {}

    def reset(self) -> None:
        """Forget all counts, before the index is cleared."""
        self._counts.clear()

    async def start(self) -> None:
        """Start counting, after the index was cleared.  Raises Transient if Redis has lost what the clear wrote."""
        version, *counts = await self._send(
            [("GET", "neardup:version"), *(("INCR", key) for key in self._keys.values())]
        )
        if version is None or set(counts) != {1}:
            raise make_data_lost()
        self._counts = dict.fromkeys(self._keys, 1)

    async def write(self, language: Language, commands: Sequence[Command]) -> None:
        """Write data of a language.  Raises Transient if Redis has lost data written earlier."""
        self._counts[language] += 1
        *_, count = await self._send([*commands, ("INCR", self._keys[language])])
        if count != self._counts[language]:
            raise make_data_lost()

    def list_keys(self, languages: Iterable[Language]) -> list[str]:
        """The keys of the counts of those languages that are counted since `start` and have no position yet."""
        return [self._keys[language] for language in languages if language in self._counts]

    def refuse_loss(self, counts: Sequence[int | None], languages: Iterable[Language]) -> None:
        """Raise Transient if Redis's counts, the values of `list_keys(languages)`, show a loss."""
        if list(counts) != [self._counts[language] for language in languages if language in self._counts]:
            raise make_data_lost()

    def finish(self, languages: Iterable[Language]) -> None:
        """Stop counting for languages whose position is set: from then on the position shows a loss."""
        for language in languages:
            self._counts.pop(language, None)


def _compile_key_pattern(languages: Iterable[str]) -> re.Pattern[bytes]:
    """Matches the keys of the index, in either layout, that contain one of these names or codes of languages."""
    language = rf"\{{?({'|'.join(map(re.escape, languages))})\}}?"
    return re.compile(
        rf"(?:sketch:)?{language}:n?\d+:[0-9A-F]{{4}}"
        rf"|(?:simhashes|neardup:applied|neardup:filled|neardup:stories):{language}".encode()
    )


async def _delete_keys(client: Any, index_key: re.Pattern[bytes]) -> None:
    """Delete every key that `index_key` matches; all other keys stay."""
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
