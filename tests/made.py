"""Parts made for a purpose: fingerprints, workers, and a verifier's work without an object store."""

import sqlite3
from collections.abc import Callable, Iterable
from itertools import groupby
from operator import itemgetter

from daemon.config import Content, Thresholds
from daemon.core.html import Extraction
from daemon.core.verify import judge
from daemon.fetch import Fetcher
from daemon.ledger import candidates, flags
from daemon.ledger.candidates import Matches
from daemon.records import Document, Fingerprint, Known
from daemon.verifier import BEFORE_ALL
from daemon.worker import Worker, read_page

WHOLE_PAGE = Extraction()


def fingerprint_of(value: bytes, signature: bytes | None = None, words: int = 100) -> Fingerprint:
    """A fingerprint whose text hash and SimHash are the same 16 bytes."""
    return Fingerprint(value, value, signature, words, words)


def worker_of(
    content: Content, extraction: Extraction = WHOLE_PAGE, known: Callable[[int], Known | None] = lambda _: None
) -> Worker:
    """A worker that reads its pages on the spot."""

    async def read(document: Document) -> Fingerprint:
        return read_page(document, extraction)

    return Worker(known, Fetcher(content, most=4), read)


def judge_pending(db: sqlite3.Connection, version: str = "v") -> None:
    """Judge every pending candidate by its hashes and signatures alone."""
    pending = candidates.pending(db, BEFORE_ALL, 10_000)
    flags.decide(db, [(pair, judge(pair, None, None, Thresholds())) for pair in pending], version)


def matches(pairs: Iterable[tuple[int, int]], most: int = 50) -> list[Matches]:
    """Pairs -> each story's matches."""
    return [Matches(one, [other for _, other in mine], most) for one, mine in groupby(sorted(pairs), itemgetter(0))]
