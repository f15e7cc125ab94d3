"""The import of vectors that were made elsewhere, by the same model."""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from neardup.app import open_readers
from neardup.config import Config
from neardup.core.page import PageText
from neardup.embedding.parts import Parts, make_codes, open_parts
from neardup.errors import Misuse
from neardup.ledger import transaction, versions
from neardup.meaning import vectors
from neardup.meaning.chunks import chunks
from neardup.meaning.embedders import SAME_MODEL
from neardup.meaning.imported import Imported, batches
from neardup.meaning.vectors import Embedded
from neardup.meaning.vectors_file import dimensions
from neardup.pages.reader_pool import ReaderPool

CHECKED_STORIES = 3


@dataclass(slots=True)
class ImportSummary:
    """How many stories of the file got vectors, and how many neardup does not know."""

    imported: int = 0
    unknown: int = 0


async def import_vectors(config: Config, path: Path, stop: asyncio.Event) -> ImportSummary:
    """Import the vectors of a Parquet file; what was written when `stop` is set remains.

    The first stories are embedded here as well.  Raises Misuse if their vectors differ, as with another model or other
    chunks, or if the page of none can be read; otherwise as `open_parts` and `meaning.imported.batches` do.
    """
    summary, checked = ImportSummary(), 0
    async with open_parts(config) as parts, aclosing(open_readers(config)) as readers:
        size = await parts.vectors.do(dimensions)
        async for batch in batches(path, size):
            known = await parts.ledger.do(versions.texts, [one.story_id for one in batch])
            found = [(one, known[one.story_id]) for one in batch if one.story_id in known]
            for one, version in found:
                if checked == CHECKED_STORIES:
                    break
                checked += await _is_checked(parts, readers, one, version)
            if found and not checked:
                raise Misuse(f"{path}: the page of no story could be read to check its vectors")
            made = [Embedded(one.story_id, of.story.language, of.text_hash, one.chunks) for one, of in found]
            await parts.vectors.do(_put, made)
            summary.imported += len(made)
            summary.unknown += len(batch) - len(made)
            if stop.is_set():
                break
        await make_codes(parts, stop)
    return summary


async def _is_checked(parts: Parts, readers: ReaderPool, one: Imported, version: versions.TextVersion) -> bool:
    """Whether the vectors could be compared with those made here.  Raises Misuse if they differ."""
    result = await readers.text(version.story)
    if not isinstance(result, PageText):
        return False
    made = await parts.embedder.embed(chunks(result.text))
    if made.shape != one.chunks.shape or float((made * one.chunks).sum(axis=1).min()) < SAME_MODEL:
        raise Misuse(
            f"the vectors of story {one.story_id} are not those that {parts.embedder.model} gives for its"
            f" {len(made)} chunks: another model, or other chunks"
        )
    return True


def _put(db: sqlite3.Connection, made: Sequence[Embedded]) -> None:
    with transaction(db):
        vectors.put(db, made)
