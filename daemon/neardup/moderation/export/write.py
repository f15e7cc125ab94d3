"""Exports of the selected flags, in a format, to a target."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from neardup.config import Config
from neardup.config.export import Format, Target
from neardup.languages import Languages
from neardup.ledger import clusters, flags, read, snapshot, translate_errors
from neardup.ledger.selection import Selection
from neardup.moderation.export.columnar import require_parquet, write_parquet
from neardup.moderation.export.destination import write_to_target
from neardup.moderation.export.files import write_csv, write_jsonl
from neardup.moderation.export.page import MAX_PAIRS_SHOWN, Passages, write_page
from neardup.moderation.export.pairs import ExportRow, export_row
from neardup.moderation.export.passages import MAX_PAIRS_WITH_PASSAGES, copied_passages
from neardup.pages.reader_pool import OpenReaderPool

ALL_OPEN_FLAGS = Selection()
NO_PASSAGES: Passages = {}


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What to export, and in what format; `bom` applies to CSV only, `passages` to HTML only."""

    file_format: Format
    selection: Selection = ALL_OPEN_FLAGS
    bom: bool = False
    passages: bool = True


async def export(config: Config, open_pool: OpenReaderPool, target: Target | None, options: ExportOptions) -> list[int]:
    """Write the flags, worst first, to a file, an S3 object, or (None) stdout, atomically.

    Returns the ids of the exported flags, for `flags.mark_exported`.  Raises Fatal if the target cannot be written,
    Misuse if the library of the format is missing, Transient if the store does not answer.
    """
    check_format(options.file_format)
    wants_passages = options.file_format == "html" and options.passages
    passages = await _passages(config, open_pool, options.selection) if wants_passages else {}

    def write_selected(file: Path) -> list[int]:
        with closing(read(config.ledger.path)) as db, translate_errors(config.ledger.path), snapshot(db):
            return write(db, file, options, config.registry, passages)

    return await write_to_target(target, config.content, write_selected)


def check_format(file_format: Format) -> None:
    """Raises Misuse if the library of the format is missing."""
    if file_format == "parquet":
        require_parquet()


async def export_after_run(config: Config, open_pool: OpenReaderPool, *, passages: bool = True) -> None:
    """Export all open flags to the path of [export], if it sets one.  Raises as `export` does."""
    if config.export.path is not None:
        await export(config, open_pool, config.export.path, ExportOptions(config.export.path_format, passages=passages))


def write(
    db: sqlite3.Connection, file: Path, options: ExportOptions, languages: Languages, passages: Passages = NO_PASSAGES
) -> list[int]:
    """Write the flags to a local file and return their ids; an HTML page gets the worst MAX_PAIRS_SHOWN."""
    exported: list[int] = []

    def rows(limit: int = -1) -> Iterator[ExportRow]:
        cluster_of = clusters.by_story(db)
        for row in flags.select(db, options.selection, limit=limit):
            exported.append(row["flag_id"])
            yield export_row(row, cluster_of)

    match options.file_format:
        case "csv":
            write_csv(file, rows(), bom=options.bom)
        case "jsonl":
            write_jsonl(file, rows())
        case "xlsx":
            from neardup.moderation.export.workbook import write_xlsx  # noqa: PLC0415 - loads xlsxwriter

            write_xlsx(file, rows())
        case "parquet":
            write_parquet(file, rows())
        case "html":
            shown = flags.select(db, options.selection, limit=MAX_PAIRS_SHOWN)
            tally = Counter((row["language"], row["kind"]) for row in shown)
            chosen = flags.count(db, options.selection)
            write_page(file, rows(MAX_PAIRS_SHOWN), tally, chosen, passages, registry=languages)
    return exported


async def _passages(config: Config, open_pool: OpenReaderPool, selection: Selection) -> Passages:
    """The copied passages, if the pairs are few enough to read their texts again."""
    with closing(read(config.ledger.path)) as db, translate_errors(config.ledger.path), snapshot(db):
        few = flags.count(db, selection) <= MAX_PAIRS_WITH_PASSAGES
        rows = list(flags.select(db, selection)) if few else []
    return await copied_passages(
        config, open_pool, {row["flag_id"]: (row["matched_id"], row["story_id"]) for row in rows}
    )
