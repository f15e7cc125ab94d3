"""The tables of `make bench-scale`."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from neardup.core.languages import LANGUAGES
from neardup.records import Language

from tests.bench import report
from tests.bench.report import MICRO
from tests.bench.scale_lookups import TIERS
from tests.bench.scale_stages import INDEXES

Figures = Mapping[str, Any]
Facts = Iterator[tuple[str, float]]


def show(rows: Sequence[Figures]) -> None:
    """Print a table for each kind of stories, with a column for each size, and tables by language for the last size."""
    for kind, group in groupby(rows, lambda row: row["kind"]):
        sizes = list(group)
        columns = [dict(_facts(row)) for row in sizes]
        table = report.table_of(kind, *(f"{row['stories']:,}" for row in sizes), "growth")
        for name, last in columns[-1].items():
            first = columns[0].get(name)
            growth = f"{last / first:.2f}" if first and len(sizes) > 1 else ""
            table.add_row(name, *(_number(column.get(name)) for column in columns), growth)
        report.out.print(table)
        _show_languages(sizes[-1])


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.{1 if value < 100 else 0}f}"


def _facts(row: Figures) -> Facts:
    yield "ledger, bytes/story", row["ledger"]["all"] / row["stories"]
    if "sweep" in row:
        for name, value in _of_sweep(row["sweep"]):
            yield f"sweep, {name}", value
    if "passages" in row:
        for name, value in _of_passages(row["passages"]):
            yield f"passages, {name}", value
    for index in INDEXES:
        if index in row:
            for name, value in _of_index(row[index]):
                yield f"{index}, {name}", value


def _of_sweep(figures: Figures) -> Facts:
    yield "seconds", figures["load"] + figures["nominate"]
    for step in ("load", "near", "nominate"):
        yield f"{step}, us/story", figures[step] * MICRO / figures["stories"]
    yield "pairs", figures["pairs"]
    yield "peak RSS, MiB", figures["peak_rss_mb"]


def _of_passages(figures: Figures) -> Facts:
    yield "bytes/story", figures["build"]["bytes a story"]
    yield "bytes/story as projected", figures["build"]["projected"]
    for cache in ("cold", "warm"):
        yield f"lookup {cache}, us/story", figures[cache]["us a story"]
    yield "4 KiB pages read by 10,000 cold lookups", figures["cold"]["4 KiB pages read"]
    yield "memory that lookups take, MiB", figures["cold"]["RSS MB"]
    for stage in ("build", "join", "check"):
        yield f"{stage}, seconds", figures[stage]["seconds"]
        yield f"{stage}, peak RSS, MiB", figures[stage]["peak_rss_mb"]
    yield "join, pairs", figures["join"]["pairs"]


def _of_index(figures: Figures) -> Facts:
    reindex, insert, daily = (figures[stage] for stage in ("reindex", "insert", "daily"))
    yield "bytes/story", figures["bytes"]["all"] / reindex["stories"]
    yield "reindex, seconds", reindex["seconds"]
    yield "reindex, us/story", reindex["seconds"] * MICRO / reindex["stories"]
    for tier in TIERS:
        for name, value in _of_lookups(figures["look_up"][tier]):
            yield f"lookup {tier}, {name}", value
    yield "insert, stories/s", insert["stories"] / insert["seconds"]
    yield "daily, seconds", daily["seconds"]
    for stage, seconds in daily["stages"].items():
        yield f"daily, {stage}, us/story", seconds * MICRO / daily["stories"]
    for stage in ("reindex", "look_up", "insert", "daily"):
        yield f"{stage}, peak RSS, MiB", figures[stage]["peak_rss_mb"]


def _of_lookups(figures: Figures) -> Facts:
    yield "per second", figures["per_second"]
    for spread in ("p50", "p99"):
        yield f"batch {spread}, ms", figures["batch_milliseconds"][spread]
    for spread in ("mean", "p50", "p99"):
        yield f"candidates, {spread}", figures["candidates"]["all"][spread]
    yield "recall of copies", figures["recall"]
    yield "lookups with a bucket over max_bucket", figures["large"]


def by_language(row: Figures) -> dict[Language, dict[str, Any]]:
    """For each language, stories and bytes in the ledger, and by index stories, bytes by tier, candidates per lookup.

    The ledger's bytes are divided in proportion to stories, whose rows are alike in all languages.  Each index has more
    stories than the one measured before it, because the ledger keeps the stories inserted for that one.
    """
    indexes = [name for name in INDEXES if name in row]
    languages: dict[Language, dict[str, Any]] = {}
    for language in LANGUAGES:
        stories = row["ledger"]["stories"].get(language, 0)
        ledger_bytes = round(row["ledger"]["all"] * stories / row["stories"])
        languages[language] = {"stories": stories, "ledger_bytes": ledger_bytes}
        for name in indexes:
            figures = row[name]
            languages[language][name] = {
                "stories": figures["reindex"]["in_index"].get(language, 0),
                "bytes": figures["bytes"]["languages"].get(language, {}),
                "candidates": {
                    tier: figures["look_up"][tier]["candidates"].get(language, {}).get("mean") for tier in TIERS
                },
            }
    return languages


def _show_languages(row: Figures) -> None:
    languages = by_language(row)
    for name in [name for name in INDEXES if name in row]:
        columns = ("near, bytes/story", "signature, bytes/story", "near, candidates", "both, candidates")
        table = report.table_of(f"{row['kind']}, {name}", "stories", *columns)
        for language, figures in languages.items():
            of_index = figures[name]
            sizes = [of_index["bytes"].get(tier, 0) / max(of_index["stories"], 1) for tier in ("near", "signature")]
            values = map(_number, (*sizes, *of_index["candidates"].values()))
            table.add_row(language, f"{of_index['stories']:,}", *values)
        report.out.print(table)
