"""Parts made for a purpose: fingerprints, workers, and a verifier's work without an object store."""

import asyncio
import socket
import sqlite3
from collections.abc import Callable, Iterable
from itertools import groupby
from operator import itemgetter

import numpy as np
from neardup.config import Content, Thresholds
from neardup.core.text.html import Extraction
from neardup.core.verify.scores import judge
from neardup.languages import LANGUAGES
from neardup.ledger import candidates, flags, languages, stories
from neardup.ledger.candidates import Matches
from neardup.ledger.schema import MIGRATIONS
from neardup.pages.curl_multi import Transfers
from neardup.pages.reader_process import Read, read_page
from neardup.pages.store import Document, Pages, path_of
from neardup.pipeline.verifier import BEFORE_ALL
from neardup.pipeline.worker import Worker
from neardup.records import (
    Banded,
    Change,
    Finding,
    Fingerprint,
    Fingerprinted,
    Kind,
    Known,
    Language,
    Outcome,
    Scores,
    Story,
)
from neardup.retry import retried

from tests.support.languages import HINDI

WHOLE_PAGE = Extraction()


def fingerprint_of(value: bytes, signature: bytes | None = None, words: int = 100) -> Fingerprint:
    """A fingerprint whose text hash and SimHash are the same 16 bytes."""
    return Fingerprint(value, value, signature, words, words)


def sketch_values(signature: bytes | None, bands: int) -> list[int]:
    """64 bytes -> the values of its first `bands` bands, 16 bits each; none for a story without a signature."""
    return np.frombuffer(signature, ">u2", bands).tolist() if signature else []


def made(
    story_id: int,
    text: int,
    language: Language = HINDI,
    updated_at: int = 1,
    signature: bytes | None = None,
) -> Fingerprinted:
    """A story of which one number makes the text hash and the SimHash."""
    value = text.to_bytes(16)
    return Fingerprinted(Story(story_id, language, updated_at=updated_at), fingerprint_of(value, signature), '"e"')


def got(pages: Pages, path: str, etag: str | None = None) -> Document | None:
    """One page; None where it still has this ETag.  Raises as `Pages.begin` and `Pages.taken` do."""
    ours, other = socket.socketpair()
    with ours, other:
        transfers = Transfers(ours.fileno())
        transfers.begin(pages.begin(path, etag))
        while (get := transfers.next()) is None:
            transfers.go_on(wait=True)
        return pages.taken(get)


def worker_of(
    content: Content, extraction: Extraction = WHOLE_PAGE, known: Callable[[int], Known | None] = lambda _: None
) -> Worker:
    """A worker on its own, that reads its pages in this process."""
    pages = Pages(content)

    async def ask(story_id: int) -> Known | None:
        return known(story_id)

    async def read(story: Story, etag: str | None) -> Read | None:
        document = await retried("fetch", lambda: asyncio.to_thread(got, pages, path_of(content, story), etag))
        return None if document is None else read_page(document, extraction)

    return Worker(ask, read)


def held_as_changes(db: sqlite3.Connection) -> list[Change]:
    """All stories by number, each as the change that puts it into an empty index."""
    rows = db.execute("SELECT number, id, language, simhash, signature FROM stories ORDER BY number")
    return [Change(0, story_id, None, Banded(LANGUAGES[spoken], *hashes), n) for n, story_id, spoken, *hashes in rows]


def judge_pending(db: sqlite3.Connection, version: str = "v") -> None:
    """Judge every pending candidate by its hashes and signatures alone."""
    pending = candidates.pending(db, BEFORE_ALL, 10_000)
    flags.decide(db, [(pair, judge(pair, None, None, Thresholds())) for pair in pending], version)


def matches(pairs: Iterable[tuple[int, int]], most: int = 50) -> list[Matches]:
    """Pairs -> each story's matches."""
    return [Matches(one, [other for _, other in mine], most) for one, mine in groupby(sorted(pairs), itemgetter(0))]


def ledger_in_memory() -> sqlite3.Connection:
    """An empty ledger."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    for statement in ";\n".join(MIGRATIONS).split(";\n"):
        db.execute(statement)
    languages.register(db, LANGUAGES)
    return db


def flagged(
    db: sqlite3.Connection,
    one: int,
    other: int,
    kind: Kind = Kind.SIMILAR,
    *,
    language: Language = HINDI,
    scores: Scores | None = None,
    bits: int = 0,
) -> None:
    """Put two stories, made where they are missing, in the ledger as a pair of this kind; its texts compared or not."""
    missing = {one, other} - stories.known_many(db, [one, other]).keys()
    commit(db, *(made(story_id, story_id, language) for story_id in missing), pairs={(one, other)})
    [pair] = candidates.pending(db, BEFORE_ALL, 2)
    flags.decide(db, [(pair, Finding(kind, bits, scores))], "v")


def commit(db: sqlite3.Connection, *outcomes: Outcome, pairs: Iterable[tuple[int, int]] = ()) -> None:
    """Commit a batch, with these pairs nominated."""
    stories.commit(db, stories.Batch(outcomes, matches(pairs), 1, {}, None))
