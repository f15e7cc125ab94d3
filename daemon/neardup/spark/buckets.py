"""Cuts the rows of a partition, which are sorted by key, into buckets; a bucket larger than memory passes in parts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]

from neardup.spark.session import Batches

ROWS_AT_A_TIME = 50_000

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Cut:
    """Rows of whole buckets: bucket b is the rows from edges[b] to edges[b + 1].

    The first `compared` rows of the first bucket stood in the part of it before this one, too.
    """

    rows: pa.Table
    edges: Indices
    compared: int


def cut(batches: Batches, keys: Sequence[str], limit: int) -> Iterator[Cut]:
    """Batches sorted by the columns `keys` -> their buckets, of rows that are equal in these.

    Of a bucket with more than `limit` rows and as many again, the first `limit` come with each part of the others.
    """
    held, compared = list[pa.RecordBatch](), 0
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) < ROWS_AT_A_TIME:
            continue
        rows = pa.Table.from_batches(held)
        edges = edges_of(*(rows[key].to_numpy() for key in keys))
        last = int(edges[-2])
        if last:
            yield Cut(rows.slice(0, last), edges[:-1], compared)
            rows, compared = rows.slice(last), 0
        if rows.num_rows > max(2 * limit, ROWS_AT_A_TIME):
            yield Cut(rows, np.array([0, rows.num_rows]), compared)
            rows, compared = rows.slice(0, limit), limit
        held = rows.combine_chunks().to_batches()
    if held:
        rows = pa.Table.from_batches(held)
        yield Cut(rows, edges_of(*(rows[key].to_numpy() for key in keys)), compared)


def edges_of(*keys: npt.NDArray[np.generic]) -> Indices:
    """Columns (n,) that rows are sorted by -> where each bucket begins, and n."""
    begins = np.zeros(len(keys[0]), np.bool_)
    begins[:1] = True
    for column in keys:
        begins[1:] |= column[1:] != column[:-1]
    return np.append(np.flatnonzero(begins), len(begins))
