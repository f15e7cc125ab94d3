"""Cuts the rows of a partition, which are sorted by key, into buckets; a bucket larger than memory passes in parts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

ROWS_AT_A_TIME = 50_000

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Cut:
    """Rows of whole buckets: bucket b is the rows from edges[b] to edges[b + 1].

    The first `compared` rows of the first bucket stood in the part of it before this one, too.
    """

    rows: "pa.Table"
    edges: Indices
    compared: int


def cut(batches: "Iterator[pa.RecordBatch]", key: str, limit: int) -> Iterator[Cut]:
    """Batches sorted by `key` -> their buckets.

    Of a bucket with more than `limit` rows and as many again, the first `limit` come with each part of the others.
    """
    import pyarrow as pa  # noqa: PLC0415 - it is optional

    held, compared = list[pa.RecordBatch](), 0
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) < ROWS_AT_A_TIME:
            continue
        rows = pa.Table.from_batches(held)
        keys = rows[key].to_numpy()
        last = len(keys) - int(np.argmax(keys[::-1] != keys[-1])) if keys[0] != keys[-1] else 0
        if last:
            yield Cut(rows.slice(0, last), edges_of(keys[:last]), compared)
            rows, compared = rows.slice(last), 0
        if rows.num_rows > max(2 * limit, ROWS_AT_A_TIME):
            yield Cut(rows, np.array([0, rows.num_rows]), compared)
            rows, compared = rows.slice(0, limit), limit
        held = rows.combine_chunks().to_batches()
    if held:
        rows = pa.Table.from_batches(held)
        yield Cut(rows, edges_of(rows[key].to_numpy()), compared)


def edges_of(keys: npt.NDArray[np.generic]) -> Indices:
    """Sorted keys (n,) -> where each bucket begins, and n."""
    begins = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
    return np.append(np.flatnonzero(begins), len(keys))
