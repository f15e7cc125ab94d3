"""Vectors that were made elsewhere, as on a GPU: a Parquet file with the columns `id` and `vectors`."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neardup.errors import Fatal, Misuse
from neardup.meaning.centring import Vectors
from neardup.meaning.chunks import MOST_CHUNKS
from neardup.meaning.embedders import checked
from neardup.source.parquet import open_parquet, parquet_rows
from neardup.source.parse import id_of

COLUMNS = ("id", "vectors")
ROWS_AT_ONCE = 1_000


class Imported(NamedTuple):
    """The id of a story, and the vectors of its chunks: (chunks, dimensions)."""

    story_id: int
    chunks: Vectors


async def batches(path: Path, size: int) -> AsyncIterator[list[Imported]]:
    """The rows of a file, some at a time, whose vectors have `size` dimensions.

    Raises Misuse if the file cannot be read or lacks a column, and Fatal, which names the row, for a bad value.
    """
    file = open_parquet(path, str(path))
    if missing := [column for column in COLUMNS if column not in file.schema_arrow.names]:
        raise Misuse(f"{path} has no column {' and '.join(missing)}")
    batch = list[Imported]()
    async for row in parquet_rows(file, str(path), columns=COLUMNS):
        batch.append(_parsed(row.values, f"{path}, row {row.position + 1}", size))
        if len(batch) == ROWS_AT_ONCE:
            yield batch
            batch = []
    yield batch


def _parsed(values: Any, where: str, size: int) -> Imported:
    try:
        story_id = id_of(str(values["id"]))
        vectors = np.array(values["vectors"], np.float32)
    except (ValueError, TypeError) as error:
        raise Fatal(f"{where}: {error}") from None
    if vectors.ndim != 2 or vectors.shape[1] != size or not 0 < len(vectors) <= MOST_CHUNKS:
        raise Fatal(f"{where}: 1 to {MOST_CHUNKS} vectors of {size} dimensions are needed, not {vectors.shape}")
    return Imported(story_id, checked(vectors, len(vectors), where))
