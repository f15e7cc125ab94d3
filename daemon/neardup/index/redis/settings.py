"""The settings that an index in Redis records, because they decide which buckets a story falls into."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from neardup.index.packed_buckets import Bits
from neardup.index.positions import earliest, extended_record, record_by_language, same_setting, values_by_language
from neardup.index.redis.commands import Command
from neardup.records import Language

# The name in the key `neardup:<name>`, and the option.  The layout is one word, the others hold a number per language.
SETTINGS = {"layout": "index.layout", "hamming": "detection.hamming", "bands": "detection.bands"}
PER_LANGUAGE = ("hamming", "bands")

Send = Callable[[Sequence[Command]], Awaitable[list[Any]]]


def changed_options(recorded: Sequence[str | None], current: Mapping[str, str]) -> list[str]:
    """The options whose recorded values, in the order of SETTINGS, are not the current ones."""
    values = zip(SETTINGS.items(), recorded, strict=True)
    return [option for (name, option), value in values if not _same(name, value, current.get(name))]


def _same(name: str, recorded: str | None, current: str | None) -> bool:
    if current is None or name not in PER_LANGUAGE:
        return recorded == current
    return same_setting(recorded, current)


async def record_added_languages(
    send: Send,
    current: Mapping[str, str],
    applied: Mapping[Language, str],
    bits_of: Callable[[str | None], Bits],
    version: str,
) -> None:
    """Record the settings of the languages that were added since, and then the version.

    `applied` are the keys of the positions, where each language has its own.  An added language has no stories, so it
    takes the earliest position of the others.  `bits_of` gives the widths for a record of them.
    """
    names = [name for name in PER_LANGUAGE if name in current]
    replies = await send([("GET", f"neardup:{name}") for name in ("bits", *names)])
    bits, *recorded = [reply and reply.decode() for reply in replies]
    known = values_by_language(recorded[names.index("bands")])
    replies = await send([("GET", key) for language, key in applied.items() if language in known])
    position = earliest(replies) if replies else None
    added = [key for language, key in applied.items() if language not in known]
    facts = {name: extended_record(value, current[name]) for name, value in zip(names, recorded, strict=True)}
    if bits is not None:
        facts["bits"] = record_by_language(bits_of(bits))
    await send([("SET", key, position) for key in added if position is not None])
    await send([("SET", f"neardup:{fact}", value) for fact, value in (*facts.items(), ("version", version))])
