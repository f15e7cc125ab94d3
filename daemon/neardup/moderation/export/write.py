"""An export: the flags that a selection takes, in a format, to a target."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from neardup.config import Config
from neardup.config.export import Format, Target
from neardup.languages import Languages
from neardup.ledger import clusters, flags, read, snapshot, translated
from neardup.ledger.selection import Selection
from neardup.moderation.export.columnar import require_parquet, write_parquet
from neardup.moderation.export.files import write_csv, write_jsonl
from neardup.moderation.export.page import MOST_PAIRS_SHOWN, Passages, write_page
from neardup.moderation.export.pairs import Pair, record
from neardup.moderation.export.passages import MOST_PAIRS, copied_in
from neardup.moderation.export.placing import placed
from neardup.moderation.export.workbook import write_xlsx
from neardup.pages.reader_pool import OpenReaderPool

EVERY_OPEN_FLAG = Selection()
NO_PASSAGES: Passages = {}


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be exported, as what; `bom` is CSV's, `passages` are an HTML page's."""

    file_format: Format
    selection: Selection = EVERY_OPEN_FLAG
    bom: bool = False
    passages: bool = True


async def export(config: Config, open_pool: OpenReaderPool, target: Target | None, order: Order) -> list[int]:
    """Write the flags, worst first, to a file, an object of S3, or (None) stdout: whole or not at all.

    Returns the ids of the flags given, for `flags.mark_exported`.  Raises Fatal for what cannot be written,
    Misuse for a format whose library is missing, Transient for a store that does not answer.
    """
    check_format(order.file_format)
    wants_passages = order.file_format == "html" and order.passages
    passages = await _passages(config, open_pool, order.selection) if wants_passages else {}

    def write_selected(file: Path) -> list[int]:
        with closing(read(config.ledger.path)) as db, translated(config.ledger.path), snapshot(db):
            return write(db, file, order, config.registry, passages)

    return await placed(target, config.content, write_selected)


def check_format(file_format: Format) -> None:
    """Raises Misuse for a format whose library is missing."""
    if file_format == "parquet":
        require_parquet()


async def export_after_run(config: Config, open_pool: OpenReaderPool, *, passages: bool = True) -> None:
    """Leave the file that [export] names, of all open flags; none where it names none.  Raises as `export` does."""
    if config.export.path is not None:
        await export(config, open_pool, config.export.path, Order(config.export.path_format, passages=passages))


def write(
    db: sqlite3.Connection, file: Path, order: Order, languages: Languages, passages: Passages = NO_PASSAGES
) -> list[int]:
    """Write the flags to a local file, the worst MOST_PAIRS_SHOWN if it is a page; returns the ids of those given."""
    given: list[int] = []

    def pairs(most: int = -1) -> Iterator[Pair]:
        cluster_of = clusters.by_story(db)
        for row in flags.select(db, order.selection, limit=most):
            given.append(row["flag_id"])
            yield record(row, cluster_of)

    match order.file_format:
        case "csv":
            write_csv(file, pairs(), bom=order.bom)
        case "jsonl":
            write_jsonl(file, pairs())
        case "xlsx":
            write_xlsx(file, pairs())
        case "parquet":
            write_parquet(file, pairs())
        case "html":
            shown = flags.select(db, order.selection, limit=MOST_PAIRS_SHOWN)
            tally = Counter((row["language"], row["kind"]) for row in shown)
            chosen = flags.count(db, order.selection)
            write_page(file, pairs(MOST_PAIRS_SHOWN), tally, chosen, passages, registry=languages)
    return given


async def _passages(config: Config, open_pool: OpenReaderPool, selection: Selection) -> Passages:
    """The copied passages, where there are so few pairs that their texts can be read again."""
    with closing(read(config.ledger.path)) as db, translated(config.ledger.path), snapshot(db):
        few = flags.count(db, selection) <= MOST_PAIRS
        rows = list(flags.select(db, selection)) if few else []
    return await copied_in(config, open_pool, {row["flag_id"]: (row["matched_id"], row["story_id"]) for row in rows})
