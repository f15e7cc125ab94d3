"""The tables of `make bench-scale`."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from neardup.languages import LANGUAGES
from neardup.records import Language

from tests.bench import report
from tests.bench.report import MICRO
from tests.bench.scale_lookups import TIERS
from tests.bench.scale_stages import INDEXES

Figures = Mapping[str, Any]
Facts = Iterator[tuple[str, float]]


def show(rows: Sequence[Figures]) -> None:
    """A table for each kind of stories, a column for each size; below it the languages, at the last size."""
    for kind, group in groupby(rows, lambda row: row["kind"]):
        mine = list(group)
        columns = [dict(_facts(row)) for row in mine]
        table = report.table_of(kind, *(f"{row['stories']:,}" for row in mine), "growth")
        for name, last in columns[-1].items():
            first = columns[0].get(name)
            growth = f"{last / first:.2f}" if first and len(mine) > 1 else ""
            table.add_row(name, *(_told(column.get(name)) for column in columns), growth)
        report.out.print(table)
        _show_languages(mine[-1])


def _told(value: float | None) -> str:
    return "-" if value is None else f"{value:,.{1 if value < 100 else 0}f}"


def _facts(row: Figures) -> Facts:
    yield "ledger, bytes a story", row["ledger"]["all"] / row["stories"]
    if "sweep" in row:
        for name, value in _of_sweep(row["sweep"]):
            yield f"sweep, {name}", value
    for index in INDEXES:
        if index in row:
            for name, value in _of_index(row[index]):
                yield f"{index}, {name}", value


def _of_sweep(figures: Figures) -> Facts:
    yield "seconds", figures["load"] + figures["nominate"]
    for step in ("load", "near", "nominate"):
        yield f"{step}, us a story", figures[step] * MICRO / figures["stories"]
    yield "pairs", figures["pairs"]
    yield "peak RSS, MB", figures["peak_rss_mb"]


def _of_index(figures: Figures) -> Facts:
    reindex, insert, daily = (figures[stage] for stage in ("reindex", "insert", "daily"))
    yield "bytes a story", figures["bytes"]["all"] / reindex["stories"]
    yield "reindex, seconds", reindex["seconds"]
    yield "reindex, us a story", reindex["seconds"] * MICRO / reindex["stories"]
    for tier in TIERS:
        for name, value in _of_lookups(figures["look_up"][tier]):
            yield f"look up {tier}, {name}", value
    yield "inserted per second", insert["stories"] / insert["seconds"]
    yield "daily, seconds", daily["seconds"]
    for stage, seconds in daily["stages"].items():
        yield f"daily, {stage}, us a story", seconds * MICRO / daily["stories"]
    for stage in ("reindex", "look_up", "insert", "daily"):
        yield f"{stage}, peak RSS, MB", figures[stage]["peak_rss_mb"]


def _of_lookups(figures: Figures) -> Facts:
    yield "per second", figures["per_second"]
    for spread in ("p50", "p99"):
        yield f"a batch, {spread} ms", figures["batch_milliseconds"][spread]
    for spread in ("mean", "p50", "p99"):
        yield f"candidates, {spread}", figures["candidates"]["all"][spread]
    yield "recall of copies", figures["recall"]
    yield "lookups that met a cap", figures["capped"]


def by_language(row: Figures) -> dict[Language, dict[str, Any]]:
    """Of each language stories and bytes in the ledger; and by index stories, bytes of each tier, candidates a lookup.

    The ledger's bytes are shared out by stories, whose rows are drawn alike.  The index that comes after another
    has some more stories, those that were inserted in the other.
    """
    indexes = [name for name in INDEXES if name in row]
    told: dict[Language, dict[str, Any]] = {}
    for language in LANGUAGES:
        stories = row["ledger"]["stories"].get(language, 0)
        told[language] = {"stories": stories, "ledger_bytes": round(row["ledger"]["all"] * stories / row["stories"])}
        for name in indexes:
            figures = row[name]
            told[language][name] = {
                "stories": figures["reindex"]["in_index"].get(language, 0),
                "bytes": figures["bytes"]["languages"].get(language, {}),
                "candidates": {
                    tier: figures["look_up"][tier]["candidates"].get(language, {}).get("mean") for tier in TIERS
                },
            }
    return told


def _show_languages(row: Figures) -> None:
    languages = by_language(row)
    for name in [name for name in INDEXES if name in row]:
        columns = ("near, bytes", "signature, bytes", "near, candidates", "both, candidates")
        table = report.table_of(f"{row['kind']}, {name}", "stories", *columns)
        for language, told in languages.items():
            mine = told[name]
            room = [mine["bytes"].get(tier, 0) / max(mine["stories"], 1) for tier in ("near", "signature")]
            table.add_row(language, f"{mine['stories']:,}", *map(_told, (*room, *mine["candidates"].values())))
        report.out.print(table)
