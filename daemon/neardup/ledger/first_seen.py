"""What was seen first: a log of texts that only grows, over which a Merkle tree is made (neardup.core.merkle).

An entry says that a text, known by its SHA-256, stood under an id at a time, by this machine's clock.  A story has one
entry for each text that it ever had, so an edit that is undone keeps the time of its first entry.  A forgotten story
leaves only the hashes of its entries, which say nothing of it, and the tree stays as it is.

The hash of each full block of entries is kept.  So the root of 15.8 million entries is computed from 62,000 hashes.

Before and after each run, the size and the root of the tree are added to a file beside the ledger.  A ledger that was
restored from a copy has fewer entries than that file says, and one that was rewritten has other roots.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from neardup.core.merkle import EMPTY_ROOT, SubtreeHash, compute_root, hash_leaf
from neardup.ledger import AMONG, dump_list, files

BLOCK = 256  # entries, a power of two


class Entry(NamedTuple):
    """One entry of the log: `seen_at` in milliseconds, and the SHA-256 of the text, 32 bytes."""

    position: int
    story_id: int
    seen_at: int
    text_sha256: bytes


class TreeHead(NamedTuple):
    """The size of the tree, and its root of 32 bytes."""

    size: int
    root: bytes


class History(StrEnum):
    """How the ledger's log relates to the heads that earlier runs recorded."""

    WHOLE = "whole"
    RESTORED = "restored"  # it is a prefix of what was recorded
    REWRITTEN = "rewritten"


def encode_entry(story_id: int, seen_at: int, text_sha256: bytes) -> bytes:
    """What is hashed of an entry: a JSON object with its keys in this order, and no spaces."""
    return f'{{"story":"{story_id}","seen_at":{seen_at},"text_sha256":"{text_sha256.hex()}"}}'.encode()


def append(db: sqlite3.Connection, ids: Sequence[int], digests: Sequence[bytes | None], now: int) -> None:
    """Append the texts that these stories did not have before, within the caller's transaction; None is left out."""
    seen = set(db.execute(f"SELECT story_id, hash FROM first_seen WHERE story_id {AMONG}", (dump_list(ids),)))
    new = [row for row in zip(ids, digests, strict=True) if row[1] is not None and row not in seen]
    before = count_entries(db)
    db.executemany(
        "INSERT INTO first_seen VALUES (?, ?, ?, ?)",
        ((before + n, story_id, now, digest) for n, (story_id, digest) in enumerate(new)),
    )
    full = range(before // BLOCK, (before + len(new)) // BLOCK)
    hashes = [(block, _hash_rows(db, block * BLOCK, (block + 1) * BLOCK)) for block in full]
    db.executemany("INSERT INTO first_seen_blocks VALUES (?, ?)", hashes)


def forget(db: sqlite3.Connection, ids: Iterable[int]) -> int:
    """Leave only the hashes of the entries of these stories, within the caller's transaction; returns their number."""
    entries = [entry for story_id in ids for entry in list_entries(db, story_id)]
    for entry in entries:
        leaf = hash_leaf(encode_entry(*entry[1:]))
        db.execute("UPDATE first_seen SET story_id = NULL, hash = ? WHERE position = ?", (leaf, entry.position))
    return len(entries)


def list_entries(db: sqlite3.Connection, story_id: int) -> list[Entry]:
    """The entries of a story, the earliest first."""
    rows = db.execute("SELECT position, story_id, seen_at, hash FROM first_seen WHERE story_id = ?", (story_id,))
    return sorted(Entry(*row) for row in rows)


def count_entries(db: sqlite3.Connection) -> int:
    """The number of entries."""
    return int(db.execute("SELECT coalesce(max(position) + 1, 0) FROM first_seen").fetchone()[0])


def compute_head(db: sqlite3.Connection, entries: int | None = None) -> TreeHead:
    """The head of the tree of the first entries, or of all."""
    end = count_entries(db) if entries is None else entries
    return TreeHead(end, make_subtree_hash(db)(0, end) if end else EMPTY_ROOT)


def make_subtree_hash(db: sqlite3.Connection) -> SubtreeHash:
    """The hash of a subtree of the tree of this ledger."""

    def hash_subtree(start: int, end: int) -> bytes:
        if start % BLOCK or end - start < BLOCK:
            return _hash_rows(db, start, end)
        blocks = db.execute(
            "SELECT hash FROM first_seen_blocks WHERE block >= ? AND block < ? ORDER BY block",
            (start // BLOCK, end // BLOCK),
        )
        rest = [_hash_rows(db, end - end % BLOCK, end)] if end % BLOCK else []
        return compute_root([*(block for (block,) in blocks), *rest])

    return hash_subtree


def _hash_rows(db: sqlite3.Connection, start: int, end: int) -> bytes:
    rows = db.execute(
        "SELECT story_id, seen_at, hash FROM first_seen WHERE position >= ? AND position < ? ORDER BY position",
        (start, end),
    )
    return compute_root([row[2] if row[0] is None else hash_leaf(encode_entry(*row)) for row in rows])


def record_head(db: sqlite3.Connection, ledger: Path) -> History:
    """Add the head of the tree to the file beside the ledger, unless it is the last one there.  Raises OSError.

    Call it before a run appends, so that a restored ledger is recognised: its head replaces the larger ones.  The head
    of a rewritten ledger is not recorded.
    """
    heads, current = read_heads(ledger), compute_head(db)
    history = compare_with_heads(db, heads)
    if history is not History.REWRITTEN and heads[-1:] != [current]:
        path = files.name_heads_file(ledger)
        files.make_file(path)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"size": current.size, "root": current.root.hex()}) + "\n")
    return history


def read_heads(ledger: Path) -> list[TreeHead]:
    """The heads that runs recorded, in order; a line that a power cut left half written is left out.

    A head that is smaller than earlier ones is of a restored ledger, and replaces them.
    """
    heads = list[TreeHead]()
    with suppress(FileNotFoundError):
        for line in files.name_heads_file(ledger).read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(ValueError, KeyError, TypeError):
                made = json.loads(line)
                recorded = TreeHead(int(made["size"]), bytes.fromhex(made["root"]))
                heads = [*(former for former in heads if former.size <= recorded.size), recorded]
    return heads


def compare_with_heads(db: sqlite3.Connection, heads: Sequence[TreeHead]) -> History:
    """How the log relates to the heads that runs recorded.

    Of the heads that are not larger than the log only the largest is compared: its root covers the smaller ones.
    """
    present = count_entries(db)
    covered = max((recorded for recorded in heads if recorded.size <= present), default=None)
    if covered is not None and compute_head(db, covered.size) != covered:
        return History.REWRITTEN
    return History.RESTORED if any(recorded.size > present for recorded in heads) else History.WHOLE
