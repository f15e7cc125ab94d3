"""The rows of the samples' manifest, the copies planted among the samples, and what a ledger holds after a run."""

import csv
import json
import sqlite3
from contextlib import closing

from tests.support.command import Neardup
from tests.support.paths import SAMPLES

TRUTH = [json.loads(line) for line in (SAMPLES / "truth.jsonl").read_text(encoding="utf-8").splitlines()]
ROWS = list(csv.DictReader((SAMPLES / "manifest.csv").read_text(encoding="utf-8").splitlines()))
PLANTED = {(pair["a"], pair["b"], pair["kind"]) for pair in TRUTH}


def kinds(neardup: Neardup) -> set[tuple[int, int, str]]:
    """The open flags as (lower id, higher id, kind)."""
    return {(min(a, b), max(a, b), kind) for a, b, kind, _ in neardup.flagged_pairs()}


def state(neardup: Neardup) -> dict[str, list[tuple[object, ...]]]:
    """The stories, flags and near misses of a ledger, without numbers and times; and the SQLite index by story ids."""
    scores = "hamming, jaccard, containment_a, containment_b, longest_run_words, estimated"
    queries = {
        "stories": "SELECT id, language, text_hash, simhash, signature, shingles FROM stories ORDER BY id",
        "flags": f"SELECT a, b, kind, status, {scores} FROM flags ORDER BY a, b",
        "near misses": f"SELECT a, b, {scores} FROM candidates WHERE verified_at IS NOT NULL ORDER BY a, b",
        "pending": "SELECT a, b FROM candidates WHERE verified_at IS NULL",
    }
    with closing(sqlite3.connect(neardup.ledger)) as db:
        tables = {name: db.execute(query).fetchall() for name, query in queries.items()}
        assert tables["pending"] == [], "candidates are still pending"
        if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'index_buckets'").fetchone():
            ids = dict(db.execute("SELECT number, id FROM stories"))
            tables["index"] = [
                (bucket, frozenset(ids[number] for number in memoryview(numbers).cast("I")))
                for bucket, numbers in db.execute("SELECT * FROM index_buckets ORDER BY 1")
            ]
    return tables
