"""The import of vectors that were made elsewhere by the same model, as on a GPU.

They come in a Parquet file with the columns `id` and `vectors`.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from neardup.config import Config
from neardup.core.text.chunks import MOST_CHUNKS, cut_chunks
from neardup.core.verify.text import Text
from neardup.errors import Fatal, Misuse
from neardup.ledger import transaction, versions
from neardup.meaning import vectors
from neardup.meaning.codes import Vectors
from neardup.meaning.embedders import SAME_MODEL, check_vectors
from neardup.meaning.parts import Parts, make_codes, open_parts
from neardup.meaning.vectors import Embedded, read_dimensions
from neardup.pages.reader_pool import ReaderPool
from neardup.records import format_count
from neardup.source.parse import parse_id
from neardup.source.rows import open_parquet, read_parquet

IMPORTED_COLUMNS = ("id", "vectors")
ROWS_AT_ONCE = 1_000
CHECKED_STORIES = 3


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
            await parts.vectors.do(_put, made)
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


def _put(db: sqlite3.Connection, made: Sequence[Embedded]) -> None:
    with transaction(db):
        vectors.put(db, made)
