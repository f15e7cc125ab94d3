"""The stories to compare, and the stage that reads their pages.

The stories are rows of a data frame: those that a configuration lists, or those of a table with texts.  Each executor
fetches, extracts and fingerprints, with the reader pool of the daemon.  A page that kills a reader process costs that
process, not the Python worker of Spark: it is quarantined and counted.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from msgspec import Struct
from msgspec.structs import asdict
from pyspark.sql import DataFrame, SparkSession

from neardup.config import Config, Content
from neardup.core.text.extraction import Extraction
from neardup.errors import Misuse
from neardup.pages.reader_pool import ReaderPool
from neardup.pages.results import PageResult, read_singly
from neardup.pages.store import WorkPages
from neardup.pipeline.worker import Worker
from neardup.records import (
    BadRow,
    Dead,
    DeadLettered,
    Fingerprinted,
    Language,
    ListedRow,
    Outcome,
    Skipped,
    Story,
)
from neardup.source import list_rows
from neardup.source.documents import Columns, choose_columns
from neardup.source.listings import know_nothing, open_reference, open_source
from neardup.source.parse import parse_row
from neardup.source.rows import OPTIONAL, REQUIRED, SHOWN_CHARACTERS, Row
from neardup.spark.session import Batches, find_path, parse_schema, translate_spark_errors

ROWS_AT_A_TIME = 1_000
STORY = (
    "id long, language string, path string, author_id string, title string, published_at long, updated_at long,"
    " position long, name string, catalogue string, licence string, series_id string"
)
READ = (
    f"{STORY}, outcome string, reason string, text_hash binary, simhash binary, signature binary, passages binary,"
    " words long, shingles long, etag string, page_title string, text_sha256 binary, text string"
)
LISTED = f"{STORY}, key string, reason string, error string, body binary"
FINGERPRINTED, SKIPPED, DEAD_LETTERED = "fingerprinted", "skipped", "dead_lettered"
ROOT = "file:/"  # the store of pages that come with the listing; nothing is read from it
FORMATS = {"parquet": "parquet", "jsonl": "json", "ndjson": "json", "json": "json", "csv": "csv"}
TEXT_TYPES = ("string", "binary")
FIELDS = ("published_at", "updated_at", "author_id", "title", "path", "series_id")  # of a story, which a table may have


def make_listed_row(listed: ListedRow, body: bytes | None = None) -> dict[str, Any]:
    """A listed story or a bad row as a row of LISTED; `body` is the page where the listing has it."""
    if isinstance(listed, Story):
        return asdict(listed) | {"body": body}
    return {"key": listed.key, "reason": listed.reason, "error": listed.error, "position": listed.position}


def read_listed_row(row: dict[str, Any]) -> ListedRow:
    """The inverse of `make_listed_row`."""
    if row["reason"] is not None:
        return BadRow(row["key"], Dead(row["reason"]), row["error"], row["position"])
    return Story(**{name: row[name] for name in Story.__struct_fields__})


def list_configured(spark: SparkSession, config: Config) -> DataFrame:
    """What [source] lists, and [reference]: one task reads the listing, which is never in memory as a whole."""

    def list_stories(_: Batches) -> Batches:
        yield from _make_batches(map(make_listed_row, _list_sources(config)))

    return spark.range(0, 1, 1, 1).mapInArrow(list_stories, LISTED)


def _list_sources(config: Config) -> Iterator[ListedRow]:
    sources = [open_source(config)]
    sources += [open_reference(config)] if config.reference is not None else []
    with asyncio.Runner() as runner:
        for source in sources:
            stories = list_rows(source)
            while rows := runner.run(_read_next_rows(stories)):
                yield from rows


async def _read_next_rows(stories: AsyncIterator[ListedRow]) -> list[ListedRow]:
    rows = list[ListedRow]()
    async for row in stories:
        rows.append(row)
        if len(rows) == ROWS_AT_A_TIME:
            break
    return rows


def list_table(spark: SparkSession, config: Config, name: str, wanted: Columns, language: Language | None) -> DataFrame:
    """The rows of a table, or of the files of a path, with a column of texts or of HTML pages.

    Raises Misuse if there is no such table, if it lacks a column, or if that of the texts is of another type.
    """
    with translate_spark_errors(Misuse, f"--input: cannot read {name}"):
        table = _load_table(spark, name)
    columns = choose_columns(name, table.columns, wanted)
    if columns.language is None and language is None:
        raise Misuse(f"--input: {name} has no column language: name the language of all texts with --language")
    assert columns.text is not None
    kind = table.schema[columns.text].dataType.typeName()
    if kind not in TEXT_TYPES:
        raise Misuse(f"--text: the column {columns.text} of {name} has no texts: its type is {kind}")
    given = {column.lower(): column for column in table.columns}
    chosen = {"body": columns.text, "id": columns.id, "language": columns.language}
    chosen |= {field: given[field] for field in FIELDS if field in given and given[field] != columns.text}
    selected = table.select([table[column].alias(field) for field, column in chosen.items() if column is not None])
    return selected.mapInArrow(_make_table_parser(config, language), LISTED)


def _load_table(spark: SparkSession, name: str) -> DataFrame:
    ending = name.rstrip("/").rpartition(".")[2].lower()
    if ending not in FORMATS and "/" not in name:
        return spark.table(name)
    files, path = find_path(spark, name)
    if not files.globStatus(path):  # Spark would log a stack trace
        raise Misuse(f"--input: cannot read {name}: no such file or folder")
    reader = spark.read.option("header", True).option("multiLine", ending == "csv").option("escape", '"')
    return reader.format(FORMATS.get(ending, "parquet")).load(name)


def _make_table_parser(config: Config, language: Language | None) -> Callable[[Batches], Batches]:
    def parse(batches: Batches) -> Batches:
        for batch in batches:
            yield from _make_batches(_parse_values(row, config, language) for row in batch.to_pylist())

    return parse


def _parse_values(values: dict[str, Any], config: Config, language: Language | None) -> dict[str, Any]:
    body = values.pop("body")
    texts = {name: _write_date(value) for name, value in values.items() if name in REQUIRED + OPTIONAL}
    texts |= {"language": language} if language is not None else {}
    error = None if isinstance(body, str | bytes) else "it has no text"
    row = Row(0, texts, str(texts)[:SHOWN_CHARACTERS], error)
    listed = parse_row(row, config.registry, config.content.key)
    return make_listed_row(listed, body.encode("utf-8", "replace") if isinstance(body, str) else body)


def _write_date(value: object) -> object:
    """A date or a time as text; another value as it is."""
    return value.isoformat() if hasattr(value, "isoformat") else value


def _make_batches(rows: Iterator[dict[str, Any]]) -> Batches:
    """Rows of LISTED as record batches."""
    schema, held = parse_schema(LISTED), list[dict[str, Any]]()
    for row in rows:
        held.append(row)
        if len(held) == ROWS_AT_A_TIME:
            yield pa.RecordBatch.from_pylist(held, schema)
            held = []
    if held:
        yield pa.RecordBatch.from_pylist(held, schema)


class Reading(Struct, frozen=True):
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


def make_reader(config: Config, reading: Reading) -> Callable[[Batches], Batches]:
    """Listed rows -> READ: the one outcome of each, and of a story that was fingerprinted its text."""

    def read(batches: Batches) -> Batches:
        schema = parse_schema(READ)
        for batch in batches:
            rows = _get_runner().run(_read_rows(batch.to_pylist(), config, reading))
            yield pa.RecordBatch.from_pylist(rows, schema)

    return read


@cache
def _get_runner() -> asyncio.Runner:
    """The event loop of this Python worker, which serves one task after another."""
    return asyncio.Runner()


@cache
def _get_pool(reading: Reading) -> ReaderPool:
    """The pool of this Python worker: its process ends with the worker."""
    return ReaderPool(reading.content, reading.extraction, reading.most, works=reading.works, processes=1)


async def _read_rows(rows: list[dict[str, Any]], config: Config, reading: Reading) -> list[dict[str, Any]]:
    pool, free = _get_pool(reading), asyncio.Semaphore(reading.most)

    async def read_one(row: dict[str, Any]) -> dict[str, Any]:
        text: str | None = None

        async def read(story: Story, _: str | None) -> PageResult:
            nonlocal text
            result, text = await pool.read_with_text(story, row["body"])
            return result

        async with free:
            outcome = await Worker(know_nothing, read_singly(read), config.registry).outcome(read_listed_row(row))
        return make_outcome_row(outcome, text)

    return await asyncio.gather(*map(read_one, rows))


def make_outcome_row(outcome: Outcome, text: str | None) -> dict[str, Any]:
    """An outcome as a row of READ."""
    listed = outcome.story
    row: dict[str, Any] = {}
    if isinstance(listed, Story):
        row = {name: getattr(listed, name) for name in Story.__struct_fields__}
    match outcome:
        case Fingerprinted(_, found, etag, page_title, text_sha256=text_sha256):
            row |= {name: getattr(found, name) for name in found.__struct_fields__}
            row |= {"outcome": FINGERPRINTED, "etag": etag, "page_title": page_title, "text": text}
            row |= {"text_sha256": text_sha256}
        case Skipped(_, reason):
            row |= {"outcome": SKIPPED, "reason": reason}
        case DeadLettered(_, reason):
            row |= {"outcome": DEAD_LETTERED, "reason": reason}
    return row
