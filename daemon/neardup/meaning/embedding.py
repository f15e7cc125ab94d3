"""Embedding: works and new stories get vectors, within the budget of a day; then their copies are searched for.

Each batch is one transaction, so that a run that ends anywhere goes on where it was.

Vectors that were made elsewhere by the same model, as on a GPU, are imported from a Parquet file with the columns `id`
and `vectors`.
"""

import asyncio
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, field

from neardup.config import Config
from neardup.core.page import Unreadable
from neardup.core.text.chunks import MOST_CHUNKS, cut_chunks
from neardup.core.verify.text import Text
from neardup.errors import Fatal, Misuse, VectorsDamaged
from neardup.ledger import Ledger, now_ms, transaction, versions
from neardup.ledger.outbox import read_last_seq
from neardup.ledger.versions import Numbered
from neardup.meaning import vectors
from neardup.meaning.codes import Vectors
from neardup.meaning.embedders import SAME_MODEL, check_vectors
from neardup.meaning.search import SearchSummary, search
from neardup.meaning.vectors import Embedded, Parts, VectorsFile, open_parts, read_dimensions
from neardup.pages.reader_pool import ReaderPool
from neardup.pages.results import ReadFailed
from neardup.records import format_count
from neardup.source.parse import parse_id
from neardup.source.rows import open_parquet, read_parquet

IMPORTED_COLUMNS = ("id", "vectors")
ROWS_AT_ONCE = 1_000
CHECKED_STORIES = 3  # of an import
BATCH_STORIES = 8  # some seconds of one core, after which a signal to stop is obeyed

Report = Callable[[int], None]  # receives how many stories have been embedded so far


class EmbeddingSummary(Struct):
    """What a run has done: `waiting` stories are left for the next, because of the budget or of their store."""

    embedded: int = 0
    unchanged: int = 0
    unreadable: dict[str, int] = field(default_factory=dict)
    removed: int = 0
    texts: int = 0
    core_seconds: float = 0.0
    waiting: int = 0
    budget_is_spent: bool = False
    search: SearchSummary = field(default_factory=SearchSummary)


async def embed(
    config: Config,
    open_readers: Callable[[Config], ReaderPool],
    stop: asyncio.Event,
    since: int | None = None,
    report: Report = lambda _: None,
) -> EmbeddingSummary:
    """Embed what waits until the queue is empty, the budget of the day is spent or `stop` is set; then search.

    Stories known since a time in milliseconds, if one is given, join the queue.  Raises as `open_parts` does.

    Raises VectorsDamaged as well; the story is then in the queue.
    """
    summary = EmbeddingSummary()
    async with open_parts(config) as parts:
        summary.removed = await remove_gone_vectors(parts.ledger, parts.vectors)
        await fill_queue(parts.ledger, parts.vectors, since)
        async with aclosing(open_readers(config)) as readers:
            await _work_off(parts, readers, summary, stop, report)
            try:
                await make_codes(parts, stop)
                summary.search = await search(config, parts, readers, stop)
            except VectorsDamaged as error:
                await parts.vectors.do(vectors.begin_again, error.story_id)
                raise
        summary.waiting = await parts.vectors.do(vectors.count_waiting)
    return summary


async def _work_off(
    parts: Parts, readers: ReaderPool, summary: EmbeddingSummary, stop: asyncio.Event, report: Report
) -> None:
    """Embed the stories of the queue; those whose page cannot be read now stay in it."""
    place = vectors.QUEUE_START
    while not stop.is_set():
        core_seconds, texts = await parts.vectors.do(vectors.read_spending, _format_today())
        most = parts.section.texts_a_day
        if core_seconds >= parts.section.core_seconds_a_day or (most is not None and texts >= most):
            summary.budget_is_spent = True
            return
        waiting = await parts.vectors.do(vectors.read_waiting, place, BATCH_STORIES)
        if not waiting:
            return
        place = waiting[-1].place
        await _embed_batch(parts, readers, [story.story_id for story in waiting], summary)
        report(summary.embedded)


async def _embed_batch(parts: Parts, readers: ReaderPool, ids: Sequence[int], summary: EmbeddingSummary) -> None:
    started = time.process_time()
    known = await parts.ledger.do(versions.read_texts, ids)
    held = await parts.vectors.do(vectors.read_held, ids)
    wanted = [
        version
        for version in known.values()
        if held.get(version.story.id) != (version.story.language, version.text_hash)
    ]
    settled = set(ids) - {version.story.id for version in wanted}
    summary.unchanged += len(settled & set(known))
    of_story, unreadable = dict[int, list[str]](), Counter(summary.unreadable)
    read = await asyncio.gather(*(readers.read_text(version.story) for version in wanted))
    for version, result in zip(wanted, read, strict=True):
        match result:
            case Text() as text:
                of_story[version.story.id] = cut_chunks(text.written)
            case Unreadable(reason=reason):
                unreadable[reason] += 1
                settled.add(version.story.id)
            case ReadFailed(reason=reason):
                unreadable[reason] += 1
    texts = [text for texts_of_story in of_story.values() for text in texts_of_story]
    found, made = iter(await parts.embedder.embed(texts) if texts else ()), list[Embedded]()
    for version in wanted:
        if (texts_of_story := of_story.get(version.story.id)) is not None:
            of_chunks: Vectors = np.stack([next(found) for _ in texts_of_story])
            made.append(Embedded(version.story.id, version.story.language, version.text_hash, of_chunks))
    core_seconds = time.process_time() - started
    await parts.vectors.do(_commit, made, sorted(settled), core_seconds, len(texts))
    summary.unreadable = dict(unreadable)
    summary.embedded += len(made)
    summary.texts += len(texts)
    summary.core_seconds += core_seconds


def _commit(
    db: sqlite3.Connection, made: Sequence[Embedded], settled: Sequence[int], core_seconds: float, texts: int
) -> None:
    with transaction(db):
        vectors.put(db, made)
        vectors.drop_from_queue(db, settled)
        vectors.add_spending(db, _format_today(), core_seconds, texts)


def _format_today() -> str:
    return datetime.fromtimestamp(now_ms() / 1000, UTC).date().isoformat()


async def make_codes(parts: Parts, stop: asyncio.Event) -> None:
    """Fit what centres the vectors if the corpus has grown, and make the codes that are missing."""
    await parts.vectors.do(vectors.fit_means)
    await parts.vectors.do(vectors.fit_directions)
    made = 1
    while made and not stop.is_set():
        made = await parts.vectors.do(vectors.make_codes)


async def fill_queue(ledger: Ledger, file: VectorsFile, since: int | None) -> None:
    """Put into the queue what is to be embedded.

    These are the works, the stories that are new or changed since the last call, and those known since a time in
    milliseconds, if one is given.
    """
    considered = await file.do(vectors.read_considered)
    considered = min(considered, await ledger.do(read_last_seq))  # the ledger may be an older copy
    while stories := await ledger.do(versions.list_numbers_after, considered):
        considered = stories[-1].number
        await file.do(vectors.enqueue, stories, considered)
    await _enqueue_missing(file, await ledger.do(versions.list_numbers_of_works))
    if since is not None:
        await _enqueue_missing(file, await ledger.do(versions.list_numbers_known_since, since))


async def _enqueue_missing(file: VectorsFile, stories: Sequence[Numbered]) -> None:
    for at in range(0, len(stories), ROWS_AT_ONCE):
        part = stories[at : at + ROWS_AT_ONCE]
        known = await file.do(vectors.read_held, [story.story_id for story in part])
        await file.do(vectors.enqueue, [story for story in part if story.story_id not in known])


async def remove_gone_vectors(ledger: Ledger, file: VectorsFile) -> int:
    """Remove the vectors of the stories that the ledger does not hold any more; returns how many those are."""
    removed, last = 0, vectors.BEFORE_ALL
    while ids := await file.do(vectors.read_ids_after, last):
        last = ids[-1]
        if gone := set(ids) - await ledger.do(versions.find_known_ids, ids):
            await file.do(vectors.remove, gone)
            removed += len(gone)
    return removed


class Imported(NamedTuple):
    """The id of a story, and the vectors of its chunks: (chunks, dimensions)."""

    story_id: int
    chunks: Vectors


async def read_batches(path: Path, size: int) -> AsyncIterator[list[Imported]]:
    """The rows of a file, some at a time, whose vectors have `size` dimensions.

    Raises Misuse if the file cannot be read or lacks a column, and Fatal, which names the row, for a bad value.
    """
    file = open_parquet(path, str(path))
    if missing := [column for column in IMPORTED_COLUMNS if column not in file.schema_arrow.names]:
        raise Misuse(f"{path} has no column {' and '.join(missing)}")
    batch = list[Imported]()
    async for row in read_parquet(file, str(path), columns=IMPORTED_COLUMNS):
        batch.append(_parse_row(row.values, f"{path}, row {row.position + 1}", size))
        if len(batch) == ROWS_AT_ONCE:
            yield batch
            batch = []
    yield batch


def _parse_row(values: Any, where: str, size: int) -> Imported:
    try:
        story_id = parse_id(str(values["id"]))
        vectors = np.array(values["vectors"], np.float32)
    except (ValueError, TypeError) as error:
        raise Fatal(f"{where}: {error}") from None
    if vectors.ndim != 2 or vectors.shape[1] != size or not 0 < len(vectors) <= MOST_CHUNKS:
        raise Fatal(f"{where}: 1 to {MOST_CHUNKS} vectors of {size} dimensions are needed, not {vectors.shape}")
    return Imported(story_id, check_vectors(vectors, len(vectors), where))


class ImportSummary(Struct):
    """How many stories of the file got vectors, and how many neardup does not know."""

    imported: int = 0
    unknown: int = 0


async def import_vectors(
    config: Config, open_readers: Callable[[Config], ReaderPool], path: Path, stop: asyncio.Event
) -> ImportSummary:
    """Import the vectors of a Parquet file; what was written when `stop` is set remains.

    The first stories are embedded here as well.  Raises Misuse if their vectors differ, as with another model or other
    chunks, or if the page of none can be read; otherwise as `open_parts` and `read_batches` do.
    """
    summary, checked = ImportSummary(), 0
    async with open_parts(config) as parts, aclosing(open_readers(config)) as readers:
        size = await parts.vectors.do(read_dimensions)
        async for batch in read_batches(path, size):
            known = await parts.ledger.do(versions.read_texts, [story.story_id for story in batch])
            found = [(story, known[story.story_id]) for story in batch if story.story_id in known]
            for story, version in found:
                if checked == CHECKED_STORIES:
                    break
                checked += await _is_checked(parts, readers, story, version)
            if found and not checked:
                raise Misuse(f"{path}: the page of no story could be read to check its vectors")
            made = [
                Embedded(story.story_id, version.story.language, version.text_hash, story.chunks)
                for story, version in found
            ]
            await parts.vectors.do(vectors.put, made)
            summary.imported += len(made)
            summary.unknown += len(batch) - len(made)
            if stop.is_set():
                break
        await make_codes(parts, stop)
    return summary


async def _is_checked(parts: Parts, readers: ReaderPool, story: Imported, version: versions.TextVersion) -> bool:
    """Whether the vectors could be compared with those made here.  Raises Misuse if they differ."""
    result = await readers.read_text(version.story)
    if not isinstance(result, Text):
        return False
    made = await parts.embedder.embed(cut_chunks(result.written))
    if made.shape != story.chunks.shape or float((made * story.chunks).sum(axis=1).min()) < SAME_MODEL:
        raise Misuse(
            f"the vectors of story {story.story_id} are not those that {parts.embedder.model} gives for its"
            f" {format_count(len(made), 'chunk', 'chunks')}: another model, or other chunks"
        )
    return True
