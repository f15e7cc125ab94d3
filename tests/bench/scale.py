"""`make bench-scale`: measures ledger and indexes with 15.8 million synthetic stories, or a fraction of them.

The ledger is filled to a sixteenth, a quarter and all of the size.  At each of these steps the benchmark measures the
sweep; then for each index the rebuild from the ledger, the bytes, lookups of unrelated stories and of planted copies,
inserts, and the work of a daily run on new stories.  The passage index is measured on passage hashes of its own.  Each
stage runs in a process of its own; Redis runs on the same machine.  The SQLite index has a file of its own, so its
bytes are not mixed with the ledger's.  The documented layout is the slowest and is not measured at a quarter, except
with uniform stories, which are measured only there.  Figures are printed, never asserted.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from fractions import Fraction
from itertools import groupby, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO

import click
import numpy as np
import redis
from msgspec import Struct
from neardup.core.candidates.banding import FingerprintArrays
from neardup.core.languages import LANGUAGES
from neardup.index.redis import Layout
from neardup.ledger import connect, outbox, read, versions
from neardup.records import Fingerprinted, Language

from tests.bench import report, scale_bytes, scale_stages
from tests.bench.ledger_size import BATCH
from tests.bench.report import MICRO
from tests.bench.scale_corpus import ALL, Corpus
from tests.bench.scale_stages import INDEXES, LAYOUTS, TIERS, Figures, Lookups, Setup, in_own_process
from tests.support.resource_meter import machine
from tests.support.servers import redis_server
from tests.support.synthetic import commit


class StartState(Struct, frozen=True):
    """The folder that holds these files; if it is empty, runs start with an empty ledger and index."""

    folder: Path

    def copy_ledger(self, into: Path) -> None:
        if self.ledger.exists():
            shutil.copyfile(self.ledger, into)

    def settings(self, layout: Layout) -> list[str]:
        """Arguments with which a redis-server loads the snapshot of the index, if there is one."""
        return [*memory_settings(), "--dir", str(self.folder), "--dbfilename", f"{layout}.rdb"]

    def fill(self, kind: str, stories: int, shares: Mapping[Language, int], layouts: Sequence[Layout]) -> None:
        """Fill the ledger with stories in these shares, and snapshot an index of each layout built from it."""
        with closing(connect(self.ledger)) as db:
            for page in Corpus(kind, shares).pages(stories):
                commit(db, page)
        for layout in layouts:
            click.echo(f"index of {stories:,} stories, {layout}", err=True)
            with (
                redis_server(self.folder, *self.settings(layout)) as url,
                redis.Redis.from_url(url, socket_timeout=None) as client,
            ):
                in_own_process(scale_stages.reindex, Setup(self.ledger, layout, url))
                client.save()
        with closing(connect(self.ledger)) as db:
            outbox.prove_lookups(db)  # that building the index doubted: a run would look up all stories again

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.db"


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


SWEEP, PASSAGES = "sweep", "passages"
PARTS = (SWEEP, PASSAGES, *INDEXES)
PLAN: dict[str, dict[int, Sequence[str]]] = {  # kind of stories -> divisor of the size -> the parts measured there
    "prose": {16: PARTS, 4: (SWEEP, "compact", "sqlite"), 1: PARTS},
    "uniform": {4: LAYOUTS},
}
MIN_SIZE = 5000
MAX_PROBES, PROBE_DIVISOR = 10_000, 16  # a sixteenth of the stories are looked up, inserted and added, at most 10,000
CONF = Path(__file__).parents[2] / "deploy" / "redis.conf"
MEMORY = ("set-max-", "hash-max-", "list-max-", "active", "lazyfree-", "hz ")  # prefixes of settings that affect memory

Stories = Sequence[Fingerprinted]


def measure(folder: Path, kind: str, size: int, only: Sequence[str]) -> Iterator[Figures]:
    """The figures of the ledger and the indexes at each step towards `size` stories."""
    corpus, ledger = Corpus(kind), folder / "neardup.db"
    for divisor, all_parts in PLAN[kind].items():
        if not (parts := [part for part in all_parts if part in only]):
            continue
        stories = fill(ledger, corpus, size // divisor)
        click.echo(f"{kind}: {stories:,} stories", err=True)
        figures: Figures = {"kind": kind, "stories": stories, "ledger": scale_bytes.of_ledger(ledger)}
        if SWEEP in parts:
            figures[SWEEP] = in_own_process(scale_stages.sweep, Setup(ledger))
        if PASSAGES in parts:
            figures[PASSAGES] = scale_stages.measure(ledger, stories)
        count = min(MAX_PROBES, stories // PROBE_DIVISOR)
        probes = corpus.probes(sample(ledger, stories, count))
        indexes = [part for part in parts if part in INDEXES]
        new_stories = iter(corpus.take(2 * count * len(indexes)))
        for name in indexes:
            click.echo(f"  {name}", err=True)
            inserted, daily = list(islice(new_stories, count)), list(islice(new_stories, count))
            figures[name] = _measure_index(folder, name, Lookups(probes, stories), inserted, daily)
        yield figures


def _measure_index(folder: Path, name: str, lookups: Lookups, inserted: Stories, daily: Stories) -> Figures:
    with empty_index(folder, name) as (setup, client):
        empty = scale_bytes.used_memory(client) if client else 0
        built = in_own_process(scale_stages.reindex, setup)
        return {
            "reindex": built,
            "bytes": scale_bytes.of_redis(client, empty) if client else scale_bytes.of_sqlite(setup.file),
            "look_up": in_own_process(scale_stages.look_up, setup, lookups),
            "insert": in_own_process(scale_stages.insert, setup, inserted),
            "daily": in_own_process(scale_stages.daily, setup, daily),
        }


def fill(ledger: Path, corpus: Corpus, target: int) -> int:
    """Fill the ledger up to `target` stories; returns how many it has."""
    with closing(connect(ledger)) as db:
        for page in corpus.pages(max(target - corpus.drawn, 0)):
            commit(db, page)
    return corpus.drawn


def sample(ledger: Path, stories: int, size: int) -> FingerprintArrays:
    """About `size` random stories of the ledger: duplicates are dropped."""
    numbers = np.random.default_rng(size).integers(1, stories + 1, size)
    with closing(read(ledger)) as db:
        return versions.read_existing_fingerprints(db, (), np.unique(numbers).tolist())


@contextmanager
def empty_index(folder: Path, name: str) -> Iterator[tuple[Setup, redis.Redis | None]]:
    """One of the INDEXES, empty, and a client of its Redis if it has one."""
    ledger = folder / "neardup.db"
    for layout in LAYOUTS:
        if layout == name:
            with redis_server(folder, *memory_settings()) as url, redis.Redis.from_url(url) as client:
                yield Setup(ledger, layout, url), client
            return
    setup = Setup(ledger)
    yield setup, None
    setup.file.unlink()


def memory_settings() -> list[str]:
    """The settings of deploy/redis.conf that affect memory, as arguments of redis-server; `maxmemory` is not set."""
    settings = [line.split() for line in CONF.read_text(encoding="utf-8").splitlines() if line.startswith(MEMORY)]
    return [word for name, value in settings for word in (f"--{name}", value)]


class Size(click.ParamType[int]):
    """A number of stories, or a fraction of the platform's number."""

    name = "size"

    def convert(self, value: str, param: click.Parameter | None, context: click.Context | None) -> int:
        try:
            stories = round(ALL * Fraction(value)) if "/" in value else int(value)
        except (ValueError, ZeroDivisionError):
            self.fail(f"{value!r} is neither a number nor a fraction", param, context)
        if stories < MIN_SIZE:
            self.fail(f"{stories:,} stories are too few; the minimum is {MIN_SIZE:,}", param, context)
        return stories


@click.command()
@click.option("--size", default="1/1", show_default=True, type=Size(), help="Stories, or a fraction of 15.8 million.")
@click.option("--only", multiple=True, type=click.Choice([*PLAN, *PARTS]), help="Measure these kinds or parts only.")
@click.option("--json", "into", type=click.File("w"), is_flag=False, flag_value="-", help="Write the figures as JSON.")
def main(size: int, only: Sequence[str], into: TextIO | None) -> None:
    """Measure ledger, sweep and indexes with synthetic stories, uniform and as skewed as prose.

    The full size takes 15 GB of disk in TMPDIR and 12 GB of memory.
    """
    kinds = [kind for kind in PLAN if kind in only] or list(PLAN)
    parts = [part for part in PARTS if part in only] or PARTS
    rows: list[Figures] = []
    for kind in kinds:
        with TemporaryDirectory(prefix="neardup-bench-") as folder:
            rows += measure(Path(folder), kind, size, parts)
    click.echo(f"{machine()}; Redis and the client share the cores; one run each, batches of {BATCH}\n")
    show(rows)
    if into is not None:
        measured = [row | {"languages": by_language(row)} for row in rows]
        click.echo(json.dumps({"machine": machine(), "measured": measured}), into)


if __name__ == "__main__":
    main()
