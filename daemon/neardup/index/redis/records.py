"""What an index in Redis records about itself beside its position, and how it notices what Redis has lost.

    SET   neardup:<fact>         the ledger, the version, and the settings that decide a story's buckets
    INCR  neardup:filled:<LANG>  when a build starts, and with each of its messages that writes data of the language

Each record is read by an MGET of one key, which returns nothing for a key of another type, so that such a record counts
as lost.

While an index is built there is no position yet that would show a loss.  Redis applies and persists commands in order,
and the INCR is the last of a message: if Redis loses any part of the message, it loses the INCR too.  The counts are
deleted when the position is set.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from neardup.errors import IndexDamaged
from neardup.index.packed_buckets import Bits
from neardup.index.positions import (
    extend_record,
    find_earliest,
    is_same_setting,
    make_data_lost,
    parse_number,
    parse_values,
    record_by_language,
)
from neardup.index.redis.client import Command, Send
from neardup.records import Language

# The name in the key `neardup:<name>`, and the option.  The layout is one word, the others hold a number per language.
SETTINGS = {"layout": "index.layout", "hamming": "detection.hamming", "bands": "detection.bands"}
PER_LANGUAGE = ("hamming", "bands")
FACTS = ("ledger", "version", "bits", *SETTINGS)


def make_read_command(key: str) -> Command:
    return ("MGET", key)


def parse_text(reply: Sequence[bytes | None]) -> str | None:
    """The text in the reply to `make_read_command`; None if the key does not exist or is no string."""
    [value] = reply
    return None if value is None else value.decode(errors="replace")


def parse_position(reply: Sequence[bytes | None]) -> int | None:
    """The number in the reply to `make_read_command`; None if there is none."""
    [value] = reply
    return parse_number(value)


def is_damaged(facts: Mapping[str, str | None], bits_of: Callable[[str | None], Bits]) -> bool:
    """Whether records that every index of its layout has are lost or unreadable; `facts` are those of FACTS.

    Only the compact layout records `layout`, `hamming` and `bits`.
    """
    is_compact = any(facts[name] is not None for name in ("layout", "hamming", "bits"))
    recorded = ("layout", "hamming", "bands", "bits") if is_compact else ("bands",)
    if facts["ledger"] is None or facts["version"] is None or any(facts[name] is None for name in recorded):
        return True
    try:
        bits_of(facts["bits"])
        for name in PER_LANGUAGE:
            parse_values(facts[name])
    except IndexDamaged:
        return True
    return False


def list_changed_options(recorded: Mapping[str, str | None], current: Mapping[str, str]) -> list[str]:
    """The options whose recorded values are not the current ones."""
    return [option for name, option in SETTINGS.items() if not _is_same(name, recorded[name], current.get(name))]


def _is_same(name: str, recorded: str | None, current: str | None) -> bool:
    if current is None or name not in PER_LANGUAGE:
        return recorded == current
    return is_same_setting(recorded, current)


async def record_added_languages(
    send: Send,
    current: Mapping[str, str],
    applied: Mapping[Language, str],
    bits_of: Callable[[str | None], Bits],
    version: str,
) -> None:
    """Record the settings of the languages that were added since the index was cleared, and then the version.

    `applied` are the keys of the positions, where each language has its own.  An added language has no stories, so it
    takes the earliest position of the others.  `bits_of` parses the record in `neardup:bits` into the width for each
    language, also the added ones.
    """
    names = [name for name in PER_LANGUAGE if name in current]
    replies = await send([make_read_command(f"neardup:{name}") for name in ("bits", *names)])
    bits, *recorded = map(parse_text, replies)
    known = parse_values(recorded[names.index("bands")])
    replies = await send([make_read_command(key) for language, key in applied.items() if language in known])
    position = find_earliest([parse_position(reply) for reply in replies]) if replies else None
    added = [key for language, key in applied.items() if language not in known]
    facts = {name: extend_record(value, current[name]) for name, value in zip(names, recorded, strict=True)}
    if bits is not None:
        facts["bits"] = record_by_language(bits_of(bits))
    await send([("SET", key, position) for key in added if position is not None])
    await send([("SET", f"neardup:{fact}", value) for fact, value in (*facts.items(), ("version", version))])


class FillGuard:
    """Counts the messages sent for each language and compares Redis's counts with its own; `send` sends one message."""

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
