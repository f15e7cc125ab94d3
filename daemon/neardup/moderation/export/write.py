"""Exports of the selected flags, or of the stories that copy by them, in a format, to a target."""

import asyncio
import sqlite3
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Literal

from msgspec import Struct

from neardup.config import Config
from neardup.core.languages import Languages
from neardup.core.verify.clusters import Policy
from neardup.errors import Misuse, NeardupError, needs_extra
from neardup.ledger import (
    Row,
    cases,
    flags,
    meaning_flags,
    open_snapshot,
    open_to_write,
    similarities,
    story_rows,
)
from neardup.ledger.flags import Selection
from neardup.moderation.export.formats import write_csv, write_jsonl, write_parquet, write_xlsx
from neardup.moderation.export.page import (
    MAX_STORIES_SHOWN,
    Passages,
    choose,
    find_copied_passages,
    list_cases,
    write_members_page,
    write_page,
    write_stories_page,
)
from neardup.moderation.export.tables import (
    MEANING_PAIRS,
    MEMBERS,
    PAIRS,
    STORIES,
    WHOLE_PAIRS,
    ExportRow,
    Table,
    convert_meaning_row,
    convert_story_row,
    export_row,
    is_of_meaning,
    list_member_rows,
    make_whole_row,
)
from neardup.moderation.export.target import write_to_target
from neardup.option_values import Format, Target
from neardup.pages.reader_pool import OpenReaderPool
from neardup.telemetry.log import log

ALL_OPEN_FLAGS = Selection()
NO_PASSAGES: Passages = {}
LIBRARIES = {"parquet": "pyarrow.parquet", "xlsx": "xlsxwriter"}  # of formats, each an extra of the same name


class ExportOptions(Struct, frozen=True):
    """What to export, and in what format; `bom` applies to CSV, `passages` to pairs in HTML, `keep` to members."""

    file_format: Format
    selection: Selection = ALL_OPEN_FLAGS
    bom: bool = False
    passages: bool = True
    by: Literal["pair", "story", "member"] = "pair"
    keep: Policy = "earliest"


async def export(config: Config, open_pool: OpenReaderPool, target: Target | None, options: ExportOptions) -> list[int]:
    """Write flags, the worst first, stories, the most similar first, or members, the largest cluster first; atomically.

    The target is a file, S3 or (None) stdout.  Returns the ids of what was exported: of flags, for
    `mark_exported` of `flags` or `meaning_flags`, or of stories.  Raises Fatal if the target cannot be written, Misuse
    if the library of the format is missing, Transient if the store does not answer.
    """
    check_format(options.file_format)
    if is_of_meaning(options.selection):
        _refuse_all_but_tables(options)
    lists_cases = options.by == "pair" and options.file_format == "html"
    if lists_cases:
        await asyncio.to_thread(_refresh_cases, config.ledger.path)
    passages = await _find_passages(config, open_pool, options.selection) if lists_cases and options.passages else {}

    def write_selected(file: Path) -> list[int]:
        with open_snapshot(config.ledger.path) as db:
            if options.by == "story":
                return write_stories(db, file, options, config.registry)
            if options.by == "member":
                return write_members(db, file, options, config.registry)
            if is_of_meaning(options.selection):
                return write_meaning(db, file, options)
            return write(db, file, options, config.registry, passages)

    return await write_to_target(target, config.content, write_selected)


def _refuse_all_but_tables(options: ExportOptions) -> None:
    if options.by != "pair" or options.file_format == "html":
        kinds = " and ".join(options.selection.kinds)
        raise Misuse(f"--kind: {kinds} pairs can be exported as a table of pairs only")


def check_format(file_format: Format) -> None:
    """Raise Misuse if the library of the format is missing."""
    if library := LIBRARIES.get(file_format):
        with needs_extra(file_format, f"the format {file_format}"):
            import_module(library)


async def export_after_run(config: Config, open_pool: OpenReaderPool, *, passages: bool = True) -> None:
    """Export all open flags to the path of [export], if it sets one.  Raises as `export` does."""
    if config.export.path is not None:
        selection = Selection(same_author=config.detection.same_author == "keep")
        options = ExportOptions(config.export.path_format, selection, passages=passages)
        await export(config, open_pool, config.export.path, options)


def write(
    db: sqlite3.Connection, file: Path, options: ExportOptions, languages: Languages, passages: Passages = NO_PASSAGES
) -> list[int]:
    """Write the flags to a local file and return their ids; an HTML page gets some, by their cases."""
    exported: list[int] = []

    def read_rows(selected: Iterator[Row]) -> Iterator[ExportRow]:
        cluster_of = flags.map_clusters(db)
        for row in selected:
            exported.append(row["flag_id"])
            shown = export_row(row, cluster_of)
            yield make_whole_row(db, shown) if table is WHOLE_PAIRS else shown

    table = WHOLE_PAIRS if options.file_format == "parquet" else PAIRS
    if options.file_format == "html":
        chosen, tally = choose(db, options.selection)
        shown = list_cases(db, chosen)
        exported += (pair["flag_id"] for case in shown for pair in case.pairs)
        write_page(file, shown, tally, passages, registry=languages)
    else:
        _write_rows(db, file, read_rows(flags.select(db, options.selection)), table, options)
    return exported


def write_meaning(db: sqlite3.Connection, file: Path, options: ExportOptions) -> list[int]:
    """Write the translated and retold pairs to a local file and return their ids, for `meaning_flags.mark_exported`."""
    selected = list(meaning_flags.select(db, options.selection))
    _write_rows(db, file, map(convert_meaning_row, selected), MEANING_PAIRS, options)
    return [row["flag_id"] for row in selected]


def write_stories(db: sqlite3.Connection, file: Path, options: ExportOptions, languages: Languages) -> list[int]:
    """Write the stories to a local file and return their ids; an HTML page gets at most MAX_STORIES_SHOWN."""
    exported: list[int] = []

    def read_rows(limit: int) -> Iterator[ExportRow]:
        for row in similarities.select(db, options.selection, limit=limit):
            exported.append(row["story_id"])
            yield convert_story_row(row)

    if options.file_format == "html":
        chosen = similarities.tally(db, options.selection).total()
        shown = story_rows.show_ids(db, read_rows(MAX_STORIES_SHOWN), STORIES.story_ids)
        write_stories_page(file, shown, chosen, registry=languages)
    else:
        _write_rows(db, file, read_rows(-1), STORIES, options)
    return exported


def write_members(db: sqlite3.Connection, file: Path, options: ExportOptions, languages: Languages) -> list[int]:
    """Write the members of clusters to a local file and return their ids; an HTML page gets some of them."""
    rows = list(list_member_rows(db, options.selection, options.keep))
    chosen = len(rows)
    if options.file_format == "html":
        rows = rows[:MAX_STORIES_SHOWN]
        write_members_page(file, story_rows.show_ids(db, rows, MEMBERS.story_ids), chosen, registry=languages)
    else:
        _write_rows(db, file, rows, MEMBERS, options)
    return [row["story_id"] for row in rows]


def _write_rows(
    db: sqlite3.Connection, file: Path, rows: Iterable[ExportRow], table: Table, options: ExportOptions
) -> None:
    shown = story_rows.show_ids(db, rows, table.story_ids)
    match options.file_format:
        case "csv":
            write_csv(file, shown, table, bom=options.bom)
        case "jsonl":
            write_jsonl(file, shown)
        case "xlsx":
            write_xlsx(file, shown, table)
        case "parquet":
            write_parquet(file, shown, table, with_names=story_rows.are_held(db))
        case _:
            raise ValueError(f"{options.file_format} is no format of rows")


async def _find_passages(config: Config, open_pool: OpenReaderPool, selection: Selection) -> Passages:
    """The copied passages of the pairs that the page lists."""
    with open_snapshot(config.ledger.path) as db:
        chosen, _ = choose(db, selection)
        rows = flags.read_by_id(db, [flag_id for flag_ids in chosen.values() for flag_id in flag_ids])
    return await find_copied_passages(
        config, open_pool, {flag_id: (row["matched_id"], row["story_id"]) for flag_id, row in rows.items()}
    )


def _refresh_cases(path: Path) -> None:
    """Bring the cases up to date, if the ledger can be written."""
    with open_snapshot(path) as db:
        if not cases.is_due(db):
            return
    try:
        with open_to_write(path) as db:
            cases.refresh(db)
    except NeardupError as error:
        log.warning("the latest pairs are listed as cases of their own", why=str(error))
