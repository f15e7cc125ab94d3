"""The sizes of the ledger and the indexes: in total, and by table or by language and tier."""

import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import redis
from neardup.core.candidates.banding import BAND_BITS
from neardup.core.languages import LANGUAGES
from neardup.index import packed_buckets
from neardup.index.sqlite import COLUMN_BITS
from neardup.ledger import read
from neardup.ledger.languages import count_by_language
from neardup.records import Language

from tests.support.languages import CODES

KEYS_PER_SCAN = 10_000
MAX_KEYS = 2_000_000  # SCAN goes by the hashes of the keys, so the first keys are a random sample of all
FIELDS = 1000  # of a hash, sampled to estimate its memory

Part = tuple[Language, str]  # a language and a tier

# ARGV: a cursor and a count.  Returns the next cursor, and for each prefix of keys (a name without its numbers) the
# number of keys and their bytes.
TALLY = """
local reply = redis.call('SCAN', ARGV[1], 'COUNT', ARGV[2])
local keys, bytes, result = {}, {}, {}
for _, key in ipairs(reply[2]) do
    local name = string.gsub(key, '%d*:%x+$', '')
    keys[name] = (keys[name] or 0) + 1
    bytes[name] = (bytes[name] or 0) + redis.call('MEMORY', 'USAGE', key)
end
for name, n in pairs(keys) do
    result[#result + 1] = {name, n, bytes[name]}
end
return {reply[1], result}
"""
TIER_OF = {  # prefix of keys -> part, for both layouts
    name: (language, tier)
    for language, code in CODES.items()
    for name, tier in (
        (f"{code}:", "signature"),
        (f"{code}:n", "near"),
        (f"sketch:{language}:", "signature"),
        (f"{language}:", "near"),
    )
}


def of_ledger(path: Path) -> dict[str, Any]:
    """Stories by language, and bytes in total (`all`) and by table and index."""
    with closing(read(path)) as db:
        # dbstat's own aggregate overflows 32 bits, so sum the pages
        tables = dict(db.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name"))
        stories = count_by_language(db)
    return {"stories": stories, "all": sum(tables.values()), "tables": tables}


def of_sqlite(path: Path) -> dict[str, Any]:
    """Bytes of an index's file in total (`all`), and by language and tier, in proportion to the bytes in buckets."""
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute(
            "SELECT bucket >> ?, (bucket >> ? & ?) >= ?, sum(length(numbers)) FROM index_buckets GROUP BY 1, 2",
            (COLUMN_BITS + BAND_BITS, BAND_BITS, (1 << COLUMN_BITS) - 1, packed_buckets.FIRST_BLOCK),
        )
        buckets = {(LANGUAGES[number], "near" if is_near else "signature"): n for number, is_near, n in rows}
    size, total = path.stat().st_size, sum(buckets.values())
    return {"all": size, "languages": _by_language({part: size * n / total for part, n in buckets.items()})}


def of_redis(client: redis.Redis, empty: int) -> dict[str, Any]:
    """Bytes in total (`all`) without those of the `empty` server, number of keys, and bytes by language and tier.

    Memory that belongs to no key, most of it the table of all keys, is divided equally among the keys of buckets.
    """
    keys, own = Counter[Part](), Counter[Part]()
    cursor: Any = b"0"
    while keys.total() < MAX_KEYS:
        reply: Any = client.eval(TALLY, 0, cursor, KEYS_PER_SCAN)
        cursor, counts = reply
        for name, n, size in counts:
            if (part := TIER_OF.get(name.decode())) is not None:
                keys[part] += n
                own[part] += size
        if cursor == b"0":
            break
    hashes: dict[Part, Any] = {
        (language, "near"): client.memory_usage(f"simhashes:{language}", FIELDS) or 0 for language in LANGUAGES
    }
    total, factor = used_memory(client) - empty, client.dbsize() / keys.total()
    shared = total - sum(hashes.values()) - factor * own.total()
    sizes = {part: factor * own[part] + hashes.get(part, 0) + shared * n / keys.total() for part, n in keys.items()}
    return {"all": total, "keys": round(factor * keys.total()), "languages": _by_language(sizes)}


def _by_language(sizes: Mapping[Part, float]) -> dict[Language, dict[str, int]]:
    languages: dict[Language, dict[str, int]] = {}
    for (language, tier), size in sizes.items():
        languages.setdefault(language, {})[tier] = round(size)
    return languages


def used_memory(client: redis.Redis) -> int:
    """The bytes that Redis has allocated."""
    info: Any = client.info("memory")
    return int(info["used_memory"])
