"""Embedding: works and new stories get vectors, within the budget of a day; then their copies are searched for.

Each batch is one transaction, so that a run that ends anywhere goes on where it was.
"""

import asyncio
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime

import numpy as np
from msgspec import Struct, field

from neardup.config import Config
from neardup.core.page import Unreadable
from neardup.core.text.chunks import cut_chunks
from neardup.core.verify.text import Text
from neardup.errors import VectorsDamaged
from neardup.ledger import now_ms, transaction, versions
from neardup.meaning import vectors
from neardup.meaning.codes import Vectors
from neardup.meaning.parts import Parts, fill_queue, make_codes, open_parts, remove_gone_vectors
from neardup.meaning.search import SearchSummary, search
from neardup.meaning.vectors import Embedded
from neardup.pages.reader_pool import ReaderPool
from neardup.pages.results import ReadFailed

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
