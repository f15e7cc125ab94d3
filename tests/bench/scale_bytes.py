"""How much room the ledger and the indexes take: all of it, and by table, or by language and tier."""

import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import redis
from neardup.core.candidates.banding import BAND_BITS
from neardup.index import packed_buckets
from neardup.index.sqlite import COLUMN_BITS
from neardup.languages import LANGUAGES
from neardup.ledger import read, runs
from neardup.records import Language

from tests.support.languages import CODES

KEYS_A_SCAN = 10_000
KEYS = 2_000_000  # are looked at; SCAN goes by the keys' hashes, so these stand for all
FIELDS = 1000  # of a hash

Part = tuple[Language, str]  # a tier of a language

# ARGV: a cursor and a count.  Gives the next cursor, and of the keys by name without their numbers how many there
# are and their bytes.
TALLY = """
local reply = redis.call('SCAN', ARGV[1], 'COUNT', ARGV[2])
local keys, bytes, told = {}, {}, {}
for _, key in ipairs(reply[2]) do
    local name = string.gsub(key, '%d*:%x+$', '')
    keys[name] = (keys[name] or 0) + 1
    bytes[name] = (bytes[name] or 0) + redis.call('MEMORY', 'USAGE', key)
end
for name, n in pairs(keys) do
    told[#told + 1] = {name, n, bytes[name]}
end
return {reply[1], told}
"""
TIER_OF = {  # of either layout
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
    """Stories by language; bytes in `all`, and by table and index."""
    with closing(read(path)) as db:
        # not dbstat's own aggregate, which counts in 32 bits
        tables = dict(db.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name"))
        stories = runs.stories_by_language(db)
    return {"stories": stories, "all": sum(tables.values()), "tables": tables}


def of_sqlite(path: Path) -> dict[str, Any]:
    """Bytes in `all` of an index's file, and shared out by what buckets hold: language by language, by tier."""
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute(
            "SELECT bucket >> ?, (bucket >> ? & ?) >= ?, sum(length(numbers)) FROM index_buckets GROUP BY 1, 2",
            (COLUMN_BITS + BAND_BITS, BAND_BITS, (1 << COLUMN_BITS) - 1, packed_buckets.FIRST_BLOCK),
        )
        held = {(LANGUAGES[place], "near" if is_near else "signature"): n for place, is_near, n in rows}
    size = path.stat().st_size
    return {"all": size, "languages": _by_language({of: size * n / sum(held.values()) for of, n in held.items()})}


def of_redis(client: redis.Redis, empty: int) -> dict[str, Any]:
    """Bytes in `all`, of which a Redis had so many when `empty`; keys; and language by language bytes by tier.

    What is no key's own, most of it the table of all keys, is shared out among the keys of buckets.
    """
    keys, own = Counter[Part](), Counter[Part]()
    cursor: Any = b"0"
    while keys.total() < KEYS:
        reply: Any = client.eval(TALLY, 0, cursor, KEYS_A_SCAN)
        cursor, told = reply
        for name, n, taken in told:
            if (of := TIER_OF.get(name.decode())) is not None:
                keys[of] += n
                own[of] += taken
        if cursor == b"0":
            break
    hashes: dict[Part, Any] = {
        (language, "near"): client.memory_usage(f"simhashes:{language}", FIELDS) or 0 for language in LANGUAGES
    }
    size, every = used(client) - empty, client.dbsize() / keys.total()
    shared = size - sum(hashes.values()) - every * own.total()
    taken_by = {of: every * own[of] + hashes.get(of, 0) + shared * n / keys.total() for of, n in keys.items()}
    return {"all": size, "keys": round(every * keys.total()), "languages": _by_language(taken_by)}


def _by_language(sizes: Mapping[Part, float]) -> dict[Language, dict[str, int]]:
    languages: dict[Language, dict[str, int]] = {}
    for (language, tier), size in sizes.items():
        languages.setdefault(language, {})[tier] = round(size)
    return languages


def used(client: redis.Redis) -> int:
    said: Any = client.info("memory")
    return int(said["used_memory"])
