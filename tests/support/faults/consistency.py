"""Compares a ledger with an undisturbed one after a fault, and an index with its ledger."""

import json
import random
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import redis
from msgspec import Struct
from neardup.core.candidates.banding import BAND_BITS, BANDS, Banding, cut_band_values
from neardup.core.fingerprint.minhash import stack_signatures
from neardup.core.fingerprint.word_hashes import hash_rows
from neardup.core.languages import LANGUAGES
from neardup.index import packed_buckets
from neardup.index.passages.folder import list_segments
from neardup.index.passages.postings import HASH_SHIFT, NUMBER_MASK, PREFIXES
from neardup.index.passages.segment import Segment
from neardup.index.sqlite import COLUMN_BITS
from neardup.ledger import files
from neardup.records import Language

from tests.support.languages import CODES
from tests.support.sampling import CHAOS

KEYS_PER_READ = 5000
INDEXES = ("sqlite", "documented", "compact")
REDIS = "a layout of Redis"
SOME_INDEXES = INDEXES if CHAOS > 1 else ("sqlite", REDIS)
BANDING = Banding()
SCORES = "hamming, jaccard, containment_a, containment_b, longest_run_words, estimated"
QUERIES = {  # numbers and times may differ
    "stories": "SELECT id, language, text_hash, simhash, signature, shingles, updated_at FROM stories ORDER BY id",
    "flags": f"SELECT a, b, kind, status, {SCORES} FROM flags ORDER BY a, b",
    "near misses": f"SELECT a, b, {SCORES} FROM candidates WHERE verified_at IS NOT NULL ORDER BY a, b",
    "pending": "SELECT a, b FROM candidates WHERE verified_at IS NULL ORDER BY a, b",
    "verdicts": "SELECT a, b, kind, verdict, note, moderator, undone_by FROM verdicts ORDER BY a, b, verdict_id",
    "kept": "SELECT k.a, k.b, verdict FROM suppressed_pairs k JOIN verdicts USING (verdict_id) ORDER BY 1, 2",
    "dead letters": "SELECT key, reason FROM dead_letters ORDER BY key",
    "languages": "SELECT name, stories FROM languages ORDER BY name",
    "runs under way": "SELECT command FROM runs WHERE status = 'running'",
    "standing": "SELECT key, value FROM meta WHERE key IN ('checkpoint', 'sweep_owed', 'watermark') ORDER BY key",
}
PASSAGES = "passages"
State = dict[str, list[tuple[object, ...]]]


def draw_index(index: str) -> str:
    """The one of the INDEXES that one of SOME_INDEXES means: for REDIS either layout, another in each run."""
    return random.choice(INDEXES[1:]) if index == REDIS else index


def state_of(ledger: Path) -> State:
    """The rows of all QUERIES and the passage hashes, after SQLite has checked the integrity of the file."""
    with closing(sqlite3.connect(ledger)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        state = {name: db.execute(query).fetchall() for name, query in QUERIES.items()}
        return state | {PASSAGES: _passages(db, ledger)}


def _passages(db: sqlite3.Connection, ledger: Path) -> list[tuple[object, ...]]:
    """The passage hashes of each story, by its id, from the segments and the outbox."""
    hashes = defaultdict[int, set[int]](set)
    for number, data in db.execute("SELECT number, hashes FROM passage_hashes"):
        hashes[number].update(np.frombuffer(data, np.uint32).tolist())
    folder = files.name_passages_folder(ledger)
    for segment in list_segments(folder):
        keys = Segment(segment.path).read_keys_of_prefixes(range(PREFIXES))
        for key in keys.tolist():
            hashes[key & int(NUMBER_MASK)].add(key >> int(HASH_SHIFT))
    rows = db.execute("SELECT number, id FROM stories ORDER BY id").fetchall()
    return [(story_id, *sorted(hashes[number])) for number, story_id in rows]


def differences(actual: State, expected: State) -> list[str]:
    """The rows that are missing or unexpected, a line for each."""
    return [
        f"{name}: {side} {row}"
        for name in expected
        for side, rows in (
            ("lacks", Counter(expected[name]) - Counter(actual[name])),
            ("has unexpected", Counter(actual[name]) - Counter(expected[name])),
        )
        for row in rows
    ]


class LedgerStory(Struct, frozen=True):
    """A story in the ledger."""

    number: int
    id: int
    language: Language
    simhash: bytes
    signature: bytes | None


def index_faults(ledger: Path, kind: str, url: str = "") -> list[str]:
    """The differences between an index of one of the INDEXES and its ledger, a line for each."""
    with closing(sqlite3.connect(ledger)) as db:
        rows = db.execute("SELECT number, id, language, simhash, signature FROM stories").fetchall()
        ledger_stories = [
            LedgerStory(number, n, Language(LANGUAGES[language_number]), *hashes)
            for number, n, language_number, *hashes in rows
        ]
        last = int(db.execute("SELECT value FROM meta WHERE key = 'last_seq'").fetchone()[0])
        if kind == "sqlite":
            marks = dict(db.execute("SELECT key, value FROM index_marks"))
            sizes = dict(db.execute("SELECT language, stories FROM index_languages WHERE stories"))
            buckets = {row: packed_numbers(data) for row, data in db.execute("SELECT * FROM index_buckets")}
            wanted = _wanted(ledger_stories, packed_buckets.parse_bits(marks["bits"], LANGUAGES))
            faults = (
                [] if marks.get("applied") == last else [f"applied {marks.get('applied')}, the ledger is at {last}"]
            )
            return [*faults, *_sizes(sizes, ledger_stories), *_misplaced(buckets, wanted, ledger_stories, last)]
    with redis.Redis.from_url(url) as client:
        applied = client.get("neardup:applied")
        faults = [] if applied == str(last).encode() else [f"applied {applied}, the ledger is at {last}"]
        return faults + (_documented if kind == "documented" else _compact)(client, ledger_stories, last)


def packed_numbers(data: bytes) -> list[int]:
    return [int(number) for number in np.frombuffer(data, packed_buckets.NUMBER)]


def _row(language: Language, bucket: int) -> int:
    return LANGUAGES.index(language) << COLUMN_BITS + BAND_BITS | bucket


def _wanted(
    ledger_stories: list[LedgerStory], bits: packed_buckets.Bits, *, blocks: bool = True
) -> dict[int, set[int]]:
    """The story numbers of each packed bucket that is not empty, by its row number in SQLite."""
    wanted: dict[int, set[int]] = defaultdict(set)
    for story in ledger_stories:
        width = bits[story.language]
        columns = (
            packed_buckets.list_block_buckets(hash_rows([story.simhash]), BANDING, width)[0].tolist() if blocks else []
        )
        if story.signature:
            columns += packed_buckets.list_band_buckets(stack_signatures([story.signature]), BANDING, width)[0].tolist()
        for bucket in columns:
            wanted[_row(story.language, bucket)].add(story.number)
    return wanted


def _misplaced(
    buckets: dict[int, list[int]], wanted: dict[int, set[int]], ledger_stories: list[LedgerStory], last: int
) -> Iterator[str]:
    """Report stories that are not exactly once in each of their buckets, or are in other buckets.

    Buckets may still hold numbers of superseded versions.
    """
    current = {story.number for story in ledger_stories}
    for bucket in buckets.keys() | wanted.keys():
        counted = Counter(buckets.get(bucket, []))
        present = {number: n for number, n in counted.items() if number in current}
        if present != dict.fromkeys(wanted.get(bucket, set()), 1):
            yield f"bucket {bucket} holds {present}, but the ledger says {wanted.get(bucket)}"
        if unknown := [number for number in counted if not 0 < number <= last]:
            yield f"bucket {bucket} holds numbers that no story ever had: {unknown}"


def _sizes(sizes: dict[str, int], ledger_stories: list[LedgerStory]) -> list[str]:
    expected = Counter(str(story.language) for story in ledger_stories)
    return [] if sizes == expected else [f"counts {sizes} stories, but the ledger holds {dict(expected)}"]


def _packed_keys(client: Any, names: dict[Language, str], prefix: str) -> dict[int, list[int]]:
    """The story numbers of the packed buckets in Redis, by the row numbers that SQLite would give the buckets."""
    buckets = {}
    for language, name in names.items():
        for key, numbers in _read_all(client, "GET", f"{prefix}{name}:*:????"):
            column, value = key.removeprefix(f"{prefix}{name}:").split(":")
            place = packed_buckets.FIRST_BLOCK + int(column[1:]) if column.startswith("n") else int(column)
            buckets[_row(language, place << BAND_BITS | int(value, 16))] = packed_numbers(numbers)
    return buckets


def _read_all(client: Any, command: str, pattern: str) -> Iterator[tuple[str, Any]]:
    """The keys that match `pattern`, each with the reply to `command`; reads KEYS_PER_READ keys at a time."""
    keys = client.scan_iter(match=pattern, count=KEYS_PER_READ)
    while batch := list(islice(keys, KEYS_PER_READ)):
        pipe = client.pipeline(transaction=False)
        for key in batch:
            pipe.execute_command(command, key)
        yield from zip((key.decode() for key in batch), pipe.execute(), strict=True)


def _compact(client: Any, ledger_stories: list[LedgerStory], last: int) -> list[str]:
    wanted = _wanted(ledger_stories, packed_buckets.parse_bits((client.get("neardup:bits") or b"").decode(), LANGUAGES))
    sizes = {str(language): int(client.get(f"neardup:stories:{code}") or 0) for language, code in CODES.items()}
    counted = {language: n for language, n in sizes.items() if n}
    return [
        *_sizes(counted, ledger_stories),
        *_misplaced(_packed_keys(client, CODES, ""), wanted, ledger_stories, last),
    ]


def _documented(client: Any, ledger_stories: list[LedgerStory], last: int) -> list[str]:
    """Report band sets and hashes that differ from the ledger, such as members that an edit left behind."""
    sets: dict[str, set[int]] = defaultdict(set)
    digits: dict[str, dict[int, str]] = defaultdict(dict)
    for story in ledger_stories:
        for band, value in enumerate(cut_band_values(story.simhash)):
            sets[f"{story.language}:{band}:{value}"].add(story.id)
        digits[f"simhashes:{story.language}"][story.id] = story.simhash.hex()
    names = {language: str(language) for language in LANGUAGES}
    found = {
        key: {int(member) for member in members}
        for name in names.values()
        for key, members in _read_all(client, "SMEMBERS", f"{name}:?:????")
    }
    hashes = {
        key: {int(field): value.decode() for field, value in client.hgetall(key).items()}
        for key in (f"simhashes:{language}" for language in LANGUAGES)
        if client.exists(key)
    }
    assert all(0 <= int(key.split(":")[1]) < BANDS for key in found), list(found)
    out = [
        f"{key}: the index has {have.get(key)}, the ledger {want.get(key)}"
        for have, want in ((found, sets), (hashes, digits))
        for key in have.keys() | want.keys()
        if have.get(key) != want.get(key)
    ]
    bits = dict.fromkeys(LANGUAGES, BAND_BITS)
    wanted = _wanted(ledger_stories, bits, blocks=False)
    return out + list(_misplaced(_packed_keys(client, names, "sketch:"), wanted, ledger_stories, last))


def exported_pairs(lines: str) -> Counter[tuple[int, int]]:
    """The pairs of an export in JSON Lines format."""
    rows = [json.loads(line) for line in lines.split("\n") if line]
    return Counter((row["story_id"], row["matched_id"]) for row in rows)
