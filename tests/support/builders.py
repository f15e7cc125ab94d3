"""Builders of test data: texts, fingerprints, stories, workers, and ledgers with candidates and flags."""

import asyncio
import socket
import sqlite3
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import closing
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import numpy as np
from neardup.config import Content, Thresholds
from neardup.core.columns import Outcomes
from neardup.core.languages import LANGUAGES, SHIPPED
from neardup.core.page import Page, PageFingerprinted, Unreadable, extract_story, fingerprint_story
from neardup.core.text.extraction import Extraction
from neardup.core.verify.scores import assess
from neardup.core.verify.text import Text
from neardup.core.verify.tiers import PARTIAL, SIMILAR
from neardup.errors import NeardupError
from neardup.ledger import candidates, connect, schema, stories, transaction, verification
from neardup.ledger.candidates import Matches
from neardup.pages.results import DeliverText, NotModified, PageResult, TextResult, make_failure, read_singly
from neardup.pages.s3 import Transfers
from neardup.pages.store import Pages, make_path
from neardup.pages.text_cache import Texts
from neardup.pipeline.verifier import BEFORE_ALL
from neardup.pipeline.worker import Known, Worker
from neardup.records import (
    NO_SPANS,
    Assessment,
    BandedFingerprint,
    Change,
    Fingerprint,
    Fingerprinted,
    Kind,
    Language,
    Outcome,
    Signals,
    Spans,
    StoredVersion,
    Story,
)
from neardup.retry import retry_call

from tests.support.languages import HINDI

WHOLE_PAGE = Extraction()
NO_SIGNALS = Signals(0)


def fingerprint_of(value: bytes, signature: bytes | None = None, words: int = 100) -> Fingerprint:
    """A fingerprint whose text hash and SimHash are the same 16 bytes."""
    return Fingerprint(value, value, signature, words, words)


def signature_band_values(signature: bytes | None, bands: int) -> list[int]:
    """64 bytes -> the values of its first `bands` bands, 16 bits each; none for a story without a signature."""
    return np.frombuffer(signature, ">u2", bands).tolist() if signature else []


def fingerprinted(
    story_id: int,
    text: int,
    language: Language = HINDI,
    updated_at: int = 1,
    signature: bytes | None = None,
    *,
    text_sha256: bytes | None = None,
) -> Fingerprinted:
    """A fingerprinted story; the number `text` gives its text hash and its SimHash."""
    story, value = Story(story_id, language, updated_at=updated_at), text.to_bytes(16)
    return Fingerprinted(story, fingerprint_of(value, signature), '"e"', text_sha256=text_sha256)


def fetch_page(pages: Pages, path: str, etag: str | None = None) -> Page | None:
    """Fetch one page; None if its ETag is still `etag`.  Raises the errors of `Pages.begin` and `Pages.read_page`."""
    wake_up, sender = socket.socketpair()
    with wake_up, sender:
        transfers = Transfers(wake_up.fileno())
        transfers.begin(pages.begin(path, etag))
        while (get := transfers.pop_finished()) is None:
            transfers.advance(wait=True)
        return pages.read_page(get)


def fingerprint_page(page: Page, extraction: Extraction) -> PageFingerprinted | Unreadable:
    """What a reader process makes of a page."""
    story = extract_story(page, extraction)
    return story if isinstance(story, Unreadable) else fingerprint_story(page, story)


def worker_of(
    content: Content, extraction: Extraction = WHOLE_PAGE, known: Callable[[int], StoredVersion | None] = lambda _: None
) -> Worker:
    """A worker without a pipeline that reads its pages in this process."""
    pages = Pages(content)

    async def known_stories(ids: Sequence[int]) -> dict[int, Known]:
        return {story_id: version for story_id in ids if (version := known(story_id)) is not None}

    async def read(story: Story, etag: str | None) -> PageResult:
        try:
            page = await retry_call(
                "fetch", lambda: asyncio.to_thread(fetch_page, pages, make_path(content, story), etag)
            )
        except NeardupError as error:
            return make_failure(error)
        return NotModified() if page is None else fingerprint_page(page, extraction)

    return Worker(known_stories, read_singly(read), SHIPPED)


def texts_by(read: Callable[[Story], Awaitable[TextResult]]) -> Texts:
    """The texts of candidates, each of which `read` reads."""

    async def read_all(stories: Sequence[Story], deliver: DeliverText) -> None:
        for story in stories:
            deliver(story, await read(story))

    return Texts(read_all)


def stories_as_changes(db: sqlite3.Connection) -> list[Change]:
    """All stories in the order of their numbers, each as the change that inserts it into an empty index."""
    rows = db.execute("SELECT number, id, language, simhash, signature FROM stories ORDER BY number")
    return [
        Change(0, story_id, None, BandedFingerprint(LANGUAGES[spoken], *hashes), n)
        for n, story_id, spoken, *hashes in rows
    ]


def verify_pending(db: sqlite3.Connection, version: str = "v") -> None:
    """Verify every pending candidate by its hashes and signatures, without its texts."""
    pending = candidates.list_pending(db, BEFORE_ALL, 10_000)
    verification.record(db, [(pair, assess(pair, None, None, Thresholds())) for pair in pending], version)


def matches(pairs: Iterable[tuple[int, int]], most: int = 50) -> list[Matches]:
    """The matches of each first story of the pairs."""
    by_story = groupby(sorted(pairs), itemgetter(0))
    return [Matches(story_id, [other for _, other in group], most) for story_id, group in by_story]


def ledger_in_memory() -> sqlite3.Connection:
    """An empty ledger."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.deserialize(_empty_ledger())
    db.execute("UPDATE meta SET value = ? WHERE key = 'ledger_id'", (uuid.uuid4().hex,))
    return db


@cache
def _empty_ledger() -> bytes:
    """The content of an empty ledger, which takes long to make."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        schema.create(db)
        return db.serialize()


def flag_pair(
    db: sqlite3.Connection,
    first: int,
    second: int,
    kind: Kind = SIMILAR,
    *,
    language: Language = HINDI,
    signals: Signals = NO_SIGNALS,
) -> None:
    """Flag two stories, created where they are missing, as a pair of this kind with these signals."""
    missing = {first, second} - stories.read_stored_versions(db, [first, second]).keys()
    commit(db, *(fingerprinted(story_id, story_id, language) for story_id in missing), pairs={(first, second)})
    [pair] = candidates.list_pending(db, BEFORE_ALL, 2)
    verification.record(db, [(pair, Assessment(kind, signals))], "v")


def commit(db: sqlite3.Connection, *outcomes: Outcome, pairs: Iterable[tuple[int, int]] = ()) -> None:
    """Commit a batch and nominate these pairs."""
    stories.commit(db, stories.Batch(Outcomes.of(outcomes), matches(pairs), 1, {}, None))


def fill_ledger(path: Path, end: int, distance: int) -> None:
    """Create a ledger with the stories 1 to `end` - 1; each is nominated with the equal one `distance` before it."""
    with closing(connect(path)) as db:
        outcomes = [fingerprinted(n, n % distance) for n in range(1, end)]
        commit(db, *outcomes, pairs={(n, n - distance) for n in range(distance + 1, end)})


def text_of_words(words: Sequence[bytes]) -> Text:
    """The text with these normalised words."""
    return Text(b" ".join(words), is_normalised=True)


ALIKE = Signals(40, False, 0.3, 0.6, 0.6, 20)


def spans_of(*spans: tuple[int, int]) -> Spans:
    return np.array(spans, np.int32).reshape(-1, 2)


def flag_spans(  # noqa: PLR0917 - a flag in one line
    db: sqlite3.Connection, a: int, b: int, kind: Kind = PARTIAL, spans_a: Spans = NO_SPANS, spans_b: Spans = NO_SPANS
) -> None:
    """Nominate two stories that the ledger has, a < b, and flag them with these copied words."""
    with transaction(db):
        candidates.put(db, a, b)
    assessment = Assessment(kind, ALIKE, spans_a, spans_b)
    verification.record(db, [(pair, assessment) for pair in candidates.list_pending(db, BEFORE_ALL, 99)], "v")
