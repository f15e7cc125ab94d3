"""The stage that reads pages: each executor fetches, extracts and fingerprints, with the reader pool of the daemon.

A page that kills a reader process costs that process, not the Python worker of Spark: it is quarantined and counted.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from neardup.config import Config, Content
from neardup.core.text.extraction import Extraction
from neardup.pages.reader_pool import ReaderPool
from neardup.pages.results import PageResult, read_singly
from neardup.pages.store import WorkPages
from neardup.pipeline.worker import Known, Worker
from neardup.records import DeadLettered, Fingerprinted, Outcome, Skipped, Story
from neardup.spark.listing import STORY, listed_of
from neardup.spark.session import Batches

ROOT = "file:/"  # the store of pages that come with the listing; nothing is read from it
FINGERPRINTED, SKIPPED, DEAD_LETTERED = "fingerprinted", "skipped", "dead_lettered"
READ = (
    f"{STORY}, outcome string, reason string, text_hash binary, simhash binary, signature binary, passages binary,"
    " words long, shingles long, etag string, page_title string, text string"
)


@dataclass(frozen=True, slots=True)
class Reading:
    """How a task reads: its store, what of a page is the text, and how many pages at a time."""

    content: Content
    extraction: Extraction
    works: WorkPages | None
    most: int

    @classmethod
    def of(cls, config: Config, tasks: int, *, with_bodies: bool) -> "Reading":
        """The share of one of so many `tasks` that run at a time; `with_bodies` if the listing has the pages."""
        extract, reference, works = config.extract, config.reference, None
        if reference is not None:
            works = WorkPages(reference.content, Extraction(reference.extract.body, tuple(reference.extract.strip)))
        content = Content(url=ROOT, max_bytes=config.content.max_bytes) if with_bodies else config.content
        return cls(content, Extraction(extract.body, tuple(extract.strip)), works, max(1, config.run.workers // tasks))


def reader(config: Config, reading: Reading) -> Callable[[Batches], Batches]:
    """Listed rows -> READ: the one outcome of each, and of a story that was fingerprinted its text."""

    def read(batches: Batches) -> Batches:
        types = {"long": pa.int64(), "string": pa.string(), "binary": pa.binary()}
        schema = pa.schema([(name, types[kind]) for name, kind in (field.split() for field in READ.split(", "))])
        for batch in batches:
            rows = _runner().run(_read(batch.to_pylist(), config, reading))
            yield pa.RecordBatch.from_pylist(rows, schema)

    return read


@cache
def _runner() -> asyncio.Runner:
    """The event loop of this Python worker, which serves one task after another."""
    return asyncio.Runner()


@cache
def _pool(reading: Reading) -> ReaderPool:
    """The pool of this Python worker: its process ends with the worker."""
    return ReaderPool(reading.content, reading.extraction, reading.most, works=reading.works, processes=1)


async def _read(rows: list[dict[str, Any]], config: Config, reading: Reading) -> list[dict[str, Any]]:
    pool, free = _pool(reading), asyncio.Semaphore(reading.most)

    async def read_one(row: dict[str, Any]) -> dict[str, Any]:
        text: str | None = None

        async def read(story: Story, _: str | None) -> PageResult:
            nonlocal text
            result, text = await pool.read_with_text(story, row["body"])
            return result

        async with free:
            outcome = await Worker(_unknown, read_singly(read), config.registry).outcome(listed_of(row))
        return row_of(outcome, text)

    return await asyncio.gather(*map(read_one, rows))


async def _unknown(_: Sequence[int]) -> dict[int, Known]:
    """A job begins without a ledger."""
    return {}


def row_of(outcome: Outcome, text: str | None) -> dict[str, Any]:
    """An outcome as a row of READ."""
    listed = outcome.story
    row: dict[str, Any] = {}
    if isinstance(listed, Story):
        row = {name: getattr(listed, name) for name in Story.__slots__}
    match outcome:
        case Fingerprinted(_, found, etag, page_title):
            row |= {name: getattr(found, name) for name in found.__slots__}
            row |= {"outcome": FINGERPRINTED, "etag": etag, "page_title": page_title, "text": text}
        case Skipped(_, reason):
            row |= {"outcome": SKIPPED, "reason": reason}
        case DeadLettered(_, reason):
            row |= {"outcome": DEAD_LETTERED, "reason": reason}
    return row
