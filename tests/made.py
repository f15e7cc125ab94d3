"""Fingerprints made for a purpose, and a verifier's work without an object store."""

import sqlite3
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter

from daemon.config import Thresholds
from daemon.core.verify import judge
from daemon.ledger import candidates, flags
from daemon.ledger.candidates import Matches
from daemon.records import Fingerprint
from daemon.verifier import BEFORE_ALL


def fingerprint_of(value: bytes, signature: bytes | None = None, words: int = 100) -> Fingerprint:
    """A fingerprint whose text hash and SimHash are the same 16 bytes."""
    return Fingerprint(value, value, signature, words, words)


def judge_pending(db: sqlite3.Connection, version: str = "v") -> None:
    """Judge every pending candidate by its hashes and signatures alone."""
    pending = candidates.pending(db, BEFORE_ALL, 10_000)
    flags.decide(db, [(pair, judge(pair, None, None, Thresholds())) for pair in pending], version)


def matches(pairs: Iterable[tuple[int, int]], most: int = 50) -> list[Matches]:
    """Pairs -> each story's matches."""
    return [Matches(one, [other for _, other in mine], most) for one, mine in groupby(sorted(pairs), itemgetter(0))]
