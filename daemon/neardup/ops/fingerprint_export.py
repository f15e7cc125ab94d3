"""`neardup export --fingerprints`: writes the fingerprints of the ledger to a Parquet file."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import chain, pairwise
from pathlib import Path

import numpy as np

from neardup.config import Config
from neardup.core.fingerprint.version import version
from neardup.errors import Fatal, needs_extra
from neardup.index.passages.join import HashesByStory
from neardup.ledger import Ledger, read, translate_errors
from neardup.ledger.lock import only_one
from neardup.ledger.passages import count_missing
from neardup.ledger.story_rows import unpack_etag
from neardup.moderation.export.target import write_atomically
from neardup.pipeline.fingerprint_file import TIMES, list_versions, make_schema
from neardup.pipeline.index_sync import admit_ledger_version
from neardup.pipeline.passage_sync import PassageSync, open_passages
from neardup.pipeline.scratch import make_scratch_folder, translate_scratch_errors
from neardup.records import format_count

ROWS_PER_GROUP = 20_000

# The stories of the platform; the works of the reference are left out.
SELECT = """SELECT s.number, s.id, l.name AS language, text_hash, simhash, signature, words, shingles, published_at,
    etag, updated_at, CAST(author_id AS TEXT) AS author_id, path, title, page_title, s.name AS name,
    CAST(series_id AS TEXT) AS series_id, known_since,
    -- of two texts that a story had it is not known which is the present one
    (SELECT iif(count(*) = 1, max(hash), NULL) FROM first_seen f WHERE f.story_id = s.id) AS text_sha256
    FROM stories s JOIN languages l ON l.number = s.language
    WHERE s.number > ? AND s.number <= ? AND id >= 0 ORDER BY s.number LIMIT ?"""

Columns = dict[str, list[object]]


async def export_fingerprints(config: Config, path: Path) -> int:
    """Write a row for each story, in order of the numbers, to a Parquet file; returns how many rows.

    No run may be under way.  Raises Fatal if the fingerprints are of another version, or if the passage index lacks
    stories, Transient if the ledger is in use, and Misuse if the library of Parquet is not installed.
    """
    with needs_extra("parquet", "--fingerprints"):
        import pyarrow.parquet  # type: ignore[import-untyped]  # noqa: F401, PLC0415 - before the work
    read(config.ledger.path).close()
    with closing(Ledger(config.ledger.path)) as ledger, only_one(config.ledger.path, "export"):
        await admit_ledger_version(ledger, version(config.registry))
        with closing(await open_passages(ledger)) as passages:
            sync = PassageSync(passages, ledger)
            await sync.start()
            if missing := await ledger.do(count_missing, await sync.list_held_ranges()):
                lacks = format_count(missing, "story", "stories")
                raise Fatal(f"the passage index lacks {lacks}: `neardup reindex` reads the pages again")
            with (
                translate_errors(ledger.path),
                closing(read(ledger.path)) as db,
                make_scratch_folder(ledger.path, "export") as scratch,
                translate_scratch_errors(scratch),
            ):
                ranges = passages.regroup_by_story(scratch)
                return write_atomically(path, lambda file: _write(file, db, ranges, list_versions(config.registry)))


def _write(path: Path, db: sqlite3.Connection, ranges: Iterator[HashesByStory], version_of: dict[str, str]) -> int:
    import pyarrow as pa  # noqa: PLC0415 - it is optional
    from pyarrow.parquet import ParquetWriter  # noqa: PLC0415 - likewise

    columns, rows = make_schema(), 0
    with ParquetWriter(path, columns, compression="zstd") as out:
        for group in chain.from_iterable(_read_groups(db, numbers) for numbers in ranges):
            group["version"] = [version_of[str(language)] for language in group["language"]]
            group["etag"] = [unpack_etag(etag) for etag in group["etag"]]  # type: ignore[arg-type]
            arrays = [
                pa.array(group[name], pa.int64()).cast(type_) if name in TIMES else pa.array(group[name], type_)
                for name, type_ in zip(columns.names, columns.types, strict=True)
            ]
            out.write_table(pa.Table.from_arrays(arrays, schema=columns))
            rows += len(group["id"])
    return rows


def _read_groups(db: sqlite3.Connection, hashes: HashesByStory) -> Iterator[Columns]:
    """The stories of a range of numbers, as columns, ROWS_PER_GROUP at a time."""
    last = hashes.first - 1
    while True:
        cursor = db.execute(SELECT, (last, hashes.last, ROWS_PER_GROUP))
        names = [name for name, *_ in cursor.description]
        rows = cursor.fetchall()
        if not rows:
            return
        columns: Columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        starts, found = hashes.of(np.array(columns.pop("number"), np.uint32))
        data, ends = found.astype("<u4").tobytes(), (starts.astype(np.int64) * 4).tolist()
        columns["passages"] = [data[start:end] for start, end in pairwise(ends)]
        yield columns
        last = rows[-1][0]
