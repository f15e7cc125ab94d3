"""Damage to an index: keys or rows that are deleted, mangled or added behind neardup's back; and to the segments of a
passage index: what disks, power cuts and people do to files.
"""

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import redis
from msgspec import Struct

Damage = Callable[["DamagedIndex"], None]


class DamagedIndex(Struct, frozen=True):
    """An index of a kind `sqlite`, `documented` or `compact`, with the means to damage it."""

    kind: str
    ledger: Path
    url: str

    def keys(self, pattern: str = "*") -> list[Any]:
        """The keys in Redis, or the rows of the buckets in SQLite, in a random order that is always the same."""
        if self.kind == "sqlite":
            found: list[Any] = [row for (row,) in self.query("SELECT bucket FROM index_buckets ORDER BY 1")]
        else:
            with redis.Redis.from_url(self.url) as client:
                found = sorted(client.keys(pattern))
        random.Random(1).shuffle(found)
        return found

    def delete(self, keys: list[Any]) -> None:
        if self.kind == "sqlite":
            self.query(f"DELETE FROM index_buckets WHERE bucket IN ({','.join(map(str, keys))})")
        elif keys:
            self.redis("UNLINK", *keys)

    def redis(self, *command: Any) -> Any:
        with redis.Redis.from_url(self.url) as client:
            return client.execute_command(*command)

    def redis_each(self, keys: list[Any], *commands: tuple[Any, ...]) -> None:
        """Send commands about each key: a command's name, and what follows the key."""
        with redis.Redis.from_url(self.url) as client, client.pipeline(transaction=False) as pipeline:
            for key in keys:
                for name, *arguments in commands:
                    pipeline.execute_command(name, key, *arguments)
            pipeline.execute()

    def query(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.ledger, timeout=30)) as db, db:
            return db.execute(text, values).fetchall()


def share_of_buckets(share: float) -> Damage:
    """Delete so many of the buckets, and of all other keys in Redis."""

    def damage(index: DamagedIndex) -> None:
        keys = index.keys()
        index.delete(keys[: int(len(keys) * share)])

    return damage


def whole_bands(index: DamagedIndex) -> None:
    """Delete all buckets of two bands of the signature, and of two bands or blocks of the SimHash."""
    if index.kind == "sqlite":
        for column in (0, 1, 32, 33):
            index.query("DELETE FROM index_buckets WHERE bucket >> 16 & 63 = ?", column)
    for pattern in ("sketch:HINDI:[01]:*", "HINDI:[01]:*", "hi:[01]:*", "hi:n[01]:*"):
        index.delete(index.keys(pattern) if index.kind != "sqlite" else [-1])


def one_language(index: DamagedIndex) -> None:
    """Delete all buckets and hashes of a language."""
    if index.kind == "sqlite":
        index.query("DELETE FROM index_buckets")
    else:
        for pattern in ("*HINDI*:????", "simhashes:*", "hi:*:????"):
            index.delete(index.keys(pattern))


def records(index: DamagedIndex) -> None:
    """Delete the records of the settings and a tenth of the buckets, but not the position."""
    share_of_buckets(0.1)(index)
    if index.kind == "sqlite":
        index.query("DELETE FROM index_marks WHERE key IN ('bands', 'bits')")
    else:
        index.redis("DEL", "neardup:bands", "neardup:bits")


def mangled_position(index: DamagedIndex) -> None:
    if index.kind == "sqlite":
        index.query("UPDATE index_marks SET value = 'x' WHERE key = 'applied'")
    else:
        index.redis("SET", "neardup:applied", "-1x")


def position_of_another_type(index: DamagedIndex) -> None:
    if index.kind == "sqlite":
        index.query("UPDATE index_marks SET value = x'00' WHERE key = 'applied'")
    else:
        index.redis("DEL", "neardup:applied")
        index.redis("LPUSH", "neardup:applied", "1")


def mangled_widths(index: DamagedIndex) -> None:
    """Not numbers, or numbers that no index has; the documented layout records bands instead."""
    if index.kind == "sqlite":
        index.query("UPDATE index_marks SET value = 'HINDI=99' WHERE key = 'bits'")
    elif index.kind == "compact":
        index.redis("SET", "neardup:bits", b"\xff\xfe=14 HINDI=x")
    else:
        index.redis("SET", "neardup:bands", b"\xff\xfe")


def odd_buckets(index: DamagedIndex) -> None:
    """Cut or extend all packed buckets, so that they no longer consist of numbers of 4 bytes."""
    if index.kind == "sqlite":
        index.query("UPDATE index_buckets SET numbers = CAST(numbers || x'61' AS BLOB)")
        return
    index.redis_each(index.keys("sketch:*" if index.kind == "documented" else "hi:*:????"), ("APPEND", "a"))


def buckets_of_another_type(index: DamagedIndex) -> None:
    if index.kind == "sqlite":
        index.query("UPDATE index_buckets SET numbers = 'text' WHERE bucket % 2")
        return
    index.redis_each(index.keys("*:????")[::2], ("DEL",), ("HSET", "a", "b"))


def shifted_buckets(index: DamagedIndex) -> None:
    """Replace the contents of buckets by other numbers of 4 bytes."""
    if index.kind == "sqlite":
        index.query("UPDATE index_buckets SET numbers = zeroblob(length(numbers))")
        return
    index.redis_each(index.keys("sketch:*" if index.kind == "documented" else "hi:*:????"), ("SET", bytes(4 * 3)))


def lost_hashes(index: DamagedIndex) -> None:
    """Delete half of the SimHashes that the documented layout stores, or what counts the stories elsewhere."""
    if index.kind == "sqlite":
        index.query("UPDATE index_languages SET stories = 1 WHERE stories")
    elif index.kind == "compact":
        index.redis("SET", "neardup:stories:hi", "many")
    else:
        fields = sorted(index.redis("HKEYS", "simhashes:HINDI"))
        index.redis("HDEL", "simhashes:HINDI", *fields[::2])


def foreign_members(index: DamagedIndex) -> None:
    """Add members that no story has to buckets; lookups ignore them."""
    if index.kind == "sqlite":
        index.query("UPDATE index_buckets SET numbers = CAST(numbers || x'ffffffff' AS BLOB)")
        return
    index.redis_each(index.keys("sketch:*" if index.kind == "documented" else "hi:*:????"), ("APPEND", b"\xff" * 4))
    index.redis_each(index.keys("HINDI:?:????"), ("SADD", "x", 10**30, -(10**30), "", 77_777_777))


HEADER_BYTES = 4096
SegmentDamage = Callable[[Path], None]  # of a folder with segments


def each(change: Callable[[bytearray], bytes | bytearray]) -> SegmentDamage:
    """Replace each segment by a changed copy: what a process has read of it before does not change under its feet."""

    def damage(folder: Path) -> None:
        for path in sorted(folder.iterdir()):
            changed = path.with_suffix(".changed")
            changed.write_bytes(change(bytearray(path.read_bytes())))
            changed.replace(path)

    return damage


def flipped_bits(content: bytearray) -> bytearray:
    """Flip a bit in each block after the header: wherever a lookup reads, it meets one."""
    rng = random.Random(len(content))
    for block in range(HEADER_BYTES, len(content), HEADER_BYTES):
        content[block + rng.randrange(HEADER_BYTES)] ^= 1 << rng.randrange(8)
    return content


def flipped_header(content: bytearray) -> bytearray:
    content[10] ^= 1
    return content


def torn(content: bytearray) -> bytearray:
    """Keep the first half only, as a write that was not completed; the file has its size."""
    return content[: len(content) // 2] + bytes(len(content) - len(content) // 2)


def truncated(content: bytearray) -> bytearray:
    return content[: len(content) // 2]


def emptied(_: bytearray) -> bytes:
    return b""


def lost_segment(folder: Path) -> None:
    min(folder.iterdir()).unlink()


def renamed_segment(folder: Path) -> None:
    """Give a segment the name of one with another range."""
    path = min(folder.iterdir())
    generation, first, last = path.stem.split("-")
    path.rename(path.with_name(f"{generation}-{first}-{int(last) + 3:010}{path.suffix}"))


KINDS: dict[str, SegmentDamage] = {
    "flipped bits": each(flipped_bits),
    "flipped header": each(flipped_header),
    "torn": each(torn),
    "truncated": each(truncated),
    "emptied": each(emptied),
    "a lost segment": lost_segment,
    "a renamed segment": renamed_segment,
    "a lost folder": shutil.rmtree,
}
