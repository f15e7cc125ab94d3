"""The flagged pairs as files for review."""

import csv
import json
import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Literal

from daemon.errors import Fatal
from daemon.ledger import clusters, flags, snapshot
from daemon.ledger.selection import Selection
from daemon.moments import rfc3339

Format = Literal["csv", "jsonl"]
COLUMNS = (
    "flag_id",
    "kind",
    "language",
    "story_id",
    "matched_id",
    "hamming",
    "jaccard",
    "containment",
    "matched_containment",
    "longest_run_words",
    "story_title",
    "matched_title",
    "story_author_id",
    "matched_author_id",
    "same_author",
    "story_published_at",
    "matched_published_at",
    "earlier_id",
    "status",
    "flagged_at",
    "fingerprint_version",
    "cluster_id",
    "cluster_size",
    "estimated",
)
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


Clusters = Mapping[int, tuple[int, int]]  # story -> its cluster's likely original, and how many it holds


def clusters_of(db: sqlite3.Connection) -> Clusters:
    """The clusters of the flags, by each of their stories."""
    return {
        story: (cluster.stories[0], len(cluster.stories))
        for cluster in clusters.of_flags(db)
        for story in cluster.stories
    }


def record(row: sqlite3.Row, cluster_of: Clusters) -> dict[str, Any]:
    """A pair from the ledger -> the export's columns, in order; None where a thing is not known."""
    pair = dict(row)
    pair["cluster_id"], pair["cluster_size"] = cluster_of[pair["story_id"]]
    pair["estimated"] = bool(pair["estimated"])
    authors = pair["story_author_id"], pair["matched_author_id"]
    times = pair["story_published_at"], pair["matched_published_at"]
    pair["same_author"] = authors[0] == authors[1] if None not in authors else None
    pair["earlier_id"] = pair["matched_id"] if None not in times and times[0] != times[1] else None
    for column in ("story_published_at", "matched_published_at", "flagged_at"):
        pair[column] = rfc3339(pair[column])
    return {column: pair[column] for column in COLUMNS}


def write_csv(records: Iterable[dict[str, Any]], out: IO[str]) -> None:
    """RFC 4180, UTF-8; a cell that a spreadsheet would run as a formula is led by an apostrophe."""
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for one in records:
        writer.writerow([_cell(value) for value in one.values()])


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f"'{value}"
    return value


def write_jsonl(records: Iterable[dict[str, Any]], out: IO[str]) -> None:
    for one in records:
        out.write(json.dumps(one, ensure_ascii=False) + "\n")


def write(db: sqlite3.Connection, out: IO[str], file_format: Format, *, only_new: bool = False) -> list[int]:
    """Write the open flags, worst first; returns the flag ids given, for `flags.mark_exported`."""
    given: list[int] = []

    def records() -> Iterator[dict[str, Any]]:
        cluster_of = clusters_of(db)
        for row in flags.select(db, Selection(only_new=only_new)):
            given.append(row["flag_id"])
            yield record(row, cluster_of)

    with snapshot(db):
        (write_csv if file_format == "csv" else write_jsonl)(records(), out)
    return given


def write_file(db: sqlite3.Connection, path: Path, file_format: Format, *, only_new: bool = False) -> list[int]:
    """Write a file whole or not at all.  Raises Fatal where it cannot be written."""
    path = path.resolve()
    if path.exists() and not path.is_file():
        raise Fatal(f"cannot write {path}: it is no regular file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", newline="", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as out:
            try:
                given = write(db, out, file_format, only_new=only_new)
                out.flush()
                os.fsync(out.fileno())
                Path(out.name).chmod(0o644)
                Path(out.name).replace(path)
            except BaseException:
                Path(out.name).unlink()
                raise
    except OSError as error:
        raise Fatal(f"cannot write {path}: {error.strerror}") from error
    return given
