"""`neardup plan`: projects the memory, disk space and time that a corpus needs, before a long backfill begins.

What depends on the stories is measured on them: a backfill of a quarter, of a half and of all of a sample, each into a
scratch folder.  The ledger, the passages and the time grow by the same amount with each story: the slope of the line
through the three.

**The bytes of an index** do not grow so: at first nearly every story opens new buckets, and later it joins those that
there are.  With V values for each band, stories that are spread evenly fill V (1 - exp(-n / V)) of them, and prose,
which is uneven, as many as V s values would.  So an index of n stories of a language takes

    a n + b V (1 - exp(-n / (s V)))  bytes,

a for what each story adds, b for each value whose buckets are there.  These three are fitted to the sizes of
real indexes of three numbers of stories (`python -m tests.bench.plan_sizes`).  V doubles with the stories, as
`packed_buckets.choose_bits` chooses, in all but the documented layout.

**The time in an index** is interpolated between its times at three sizes of the platform (`make bench-scale`).
"""

import asyncio
import math
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from rich.table import Table
from rich.text import Text

from neardup.app import open_app, run_once
from neardup.config import Config, Export, Index, Ledger
from neardup.core.candidates.banding import BAND_BITS
from neardup.core.columns import StoryColumns
from neardup.index import packed_buckets
from neardup.index.passages.segment import estimate_bytes
from neardup.index.redis import LAYOUTS
from neardup.ledger import read
from neardup.records import Checkpoint, Language, Story, format_count
from neardup.source import list_rows
from neardup.source.listings import open_source

GIB, MEGA = 1 << 30, 1 << 20
HOUR, MINUTE, MICRO = 3600, 60, 1e6
INDEXES = (*LAYOUTS, "sqlite")

SYSTEM = GIB // 2  # the operating system
DAEMON = 400_000_000
FORK = 0.2  # share of Redis's memory that is copied because it is written to while a child rewrites the AOF
# Measured at 0.4 and 1.5 million stories of one language (tests/bench/sweep_size.py), plus the memory of the top-k
# lists.
SWEEP_BASE = 350_000_000
SWEEP_A_STORY = 89  # bytes for every story
SWEEP_OF_LARGEST = 130  # more bytes for each story of the largest language, whose bucket join is in memory
SWEEP_MOST = 4_000_000_000
HORIZON, HALVINGS = 3650, 10  # days to look ahead, and steps of the bisection
SOON = 365  # days; a box that is full earlier gets a warning


# The sample

SEED = 1
FEW = 200  # stories; with fewer, what a story takes is typical instead of measured


class StoryCost(Struct, frozen=True):
    """What a story takes: bytes in the ledger, hashes in the passage index, and seconds of `backfill --fresh`.

    The defaults are for bare pages of 1,000 words, and for titles of 48 bytes, on two x86-64 cores.
    """

    ledger: float = 251.0
    passages: float = 116.0  # 78 of passages, 24 of the skeleton, 14 of rare pairs
    seconds: float = 1 / 3379


class Sample(Struct):
    """The stories listed by language, how many of a sample were read and why others were not, and a story's cost."""

    listed: Counter[Language] = field(default_factory=Counter)
    bad_rows: int = 0
    fingerprinted: int = 0
    unread: Counter[str] = field(default_factory=Counter)
    skipped: int = 0
    cost: StoryCost = field(default_factory=StoryCost)

    @property
    def readable(self) -> float:
        """The share of the listed stories that can be fingerprinted, now or once their pages can be fetched."""
        read = self.fingerprinted + self.unread.total()
        return 1 - self.skipped / read if read else 1.0


class _SampleListing:
    """A listing of some stories."""

    name = "sample"

    def __init__(self, stories: Sequence[Story]) -> None:
        self._stories = [replace(story, position=n) for n, story in enumerate(stories, 1)]
        self.size = len(stories)

    async def list_blocks(self, *, since: int | None, resume: Checkpoint | None) -> AsyncIterator[StoryColumns]:
        """All of them; `since` and `resume` are ignored."""
        if self._stories:
            yield StoryColumns.of(self._stories)


async def read_sample(config: Config, size: int, show_listed: Callable[[int], None]) -> Sample:
    """List all stories and run the pipeline on `size` of them; the same listing gives the same stories.

    `show_listed` is called with the number of stories listed so far.
    """
    sample = Sample()
    stories = await draw(config, size, sample, show_listed)
    if not stories:
        return sample
    parts = [len(stories) // 4, len(stories) // 2, len(stories)] if len(stories) >= FEW else [len(stories)]
    runs = np.array([await measure_run(config, stories[:part], sample) for part in parts])
    if len(parts) > 1 and sample.fingerprinted >= FEW:
        slopes = np.polynomial.polynomial.polyfit(parts, runs, 1)[1]
        ledger, passages, seconds = (slopes * len(stories) / sample.fingerprinted).tolist()
        whole = runs[-1, 2] / sample.fingerprinted  # with the start of the readers
        sample.cost = StoryCost(ledger, passages, seconds if 0 < seconds < whole else whole)
    return sample


async def draw(config: Config, size: int, sample: Sample, show_listed: Callable[[int], None]) -> list[Story]:
    """Draw `size` stories in random order, and count what is listed in `sample`.

    Algorithm R (Vitter, "Random sampling with a reservoir", 1985).
    """
    rng = random.Random(SEED)  # noqa: S311 - not for cryptography
    reservoir = list[Story]()
    async for story in list_rows(open_source(config)):
        if not isinstance(story, Story):
            sample.bad_rows += 1
            continue
        sample.listed[story.language] += 1
        listed = sample.listed.total()
        show_listed(listed)
        if len(reservoir) < size:
            reservoir.append(story)
        elif (place := rng.randrange(listed)) < size:
            reservoir[place] = story
    rng.shuffle(reservoir)
    return reservoir


async def measure_run(config: Config, stories: Sequence[Story], sample: Sample) -> tuple[int, int, float]:
    """Run `backfill --fresh` on some stories in a scratch folder; counts the outcomes in `sample`.

    Returns the bytes of the ledger, the hashes in the passage index, and the seconds.
    """
    with TemporaryDirectory() as folder:
        ledger = Path(folder) / "neardup.db"
        scratch = replace(config, index=Index(), ledger=Ledger(path=ledger), export=Export())
        async with open_app(scratch) as app:
            started = time.perf_counter()
            done = await run_once(app, "backfill", asyncio.Event(), fresh=True, listing=_SampleListing(stories))
            seconds = time.perf_counter() - started
            passages = app.passages.postings
            await app.index.clear("", "")  # which is in the ledger's file
        counts = done.counts
        sample.fingerprinted, sample.skipped = counts.fingerprinted, counts.skipped.total()
        sample.unread = counts.skipped + counts.dead_lettered
        with closing(read(ledger)) as db:
            pages, free, page = (
                db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
            )
    return (pages - free) * page, passages, seconds


# What an index takes


class Growth(NamedTuple):
    """The bytes of an index of one language: `story` for each story, `value` for each value of a band in use."""

    story: float
    value: float

    def bytes(self, stories: float, bits: int, spread: float = 1.0) -> float:
        """The bytes with so many stories, if values have `bits` bits and stories are spread over `spread` as many."""
        values = 1 << bits
        return self.story * stories + self.value * values * -math.expm1(-stories / (spread * values))


# Fitted to indexes of 25,000 to 800,000 stories of one language: in Redis 7.0 they grew in batches, in SQLite they were
# built at once.
GROWTHS = {"documented": Growth(382.0, 3754.0), "compact": Growth(158.0, 3174.0), "sqlite": Growth(159.0, 305.0)}
# The packed layouts hash the values of a band, which spreads them evenly.  In the documented one they are as uneven as
# the words of a language.
SPREADS = {"HINDI": 1.45, "GUJARATI": 1.5, "ENGLISH": 1.5, "BENGALI": 1.13, "ODIA": 1.15, "PUNJABI": 1.18}
TYPICAL_SPREAD = 1.05
# Microseconds to look up a story by both fingerprints and to insert it, by the stories of all languages in the index.
INDEX_TIMES = {
    "documented": {987_500: 187, 15_800_000: 352},
    "compact": {987_500: 191, 3_950_000: 232, 15_800_000: 301},
    "sqlite": {987_500: 525, 3_950_000: 713, 15_800_000: 815},
}
BUILDING = {"documented": 15, "compact": 6, "sqlite": 5}  # microseconds a story, in an index built from the ledger


def project_bytes(index: str, stories: Mapping[Language, float]) -> dict[Language, float]:
    """The projected bytes of an index, by language."""
    bits = packed_buckets.choose_bits({language: round(n) for language, n in stories.items()}, stories)
    growth = GROWTHS[index]
    if index == "documented":
        return {
            language: growth.bytes(n, BAND_BITS, SPREADS.get(language, TYPICAL_SPREAD))
            for language, n in stories.items()
        }
    return {language: growth.bytes(n, bits[language]) for language, n in stories.items()}


def project_seconds(index: str, stories: float) -> float:
    """The seconds that a story takes in an index with so many stories."""
    sizes, times = zip(*INDEX_TIMES[index].items(), strict=True)
    return float(np.interp(math.log(max(stories, 1)), np.log(sizes), times)) / MICRO


# The projection


def sweep_bytes(stories: Mapping[Language, float]) -> float:
    """The peak memory of a sweep, in bytes."""
    return SWEEP_BASE + SWEEP_A_STORY * sum(stories.values()) + SWEEP_OF_LARGEST * max(stories.values(), default=0)


def project_memory(stories: Mapping[Language, float], layout: str) -> dict[str, float]:
    """The memory that the box needs, in bytes, by part and in total."""
    redis = sum(project_bytes(layout, stories).values())
    parts = {"redis": redis, "rewrite": FORK * redis, "daemon": DAEMON, "sweep": sweep_bytes(stories), "system": SYSTEM}
    return {**parts, "needed": sum(parts.values())}


def project_days_until_full(stories: Mapping[Language, float], layout: str, daily: int, memory: float) -> float | None:
    """The days of `daily` new stories until the box is full; None if that takes more than HORIZON days."""
    total = sum(stories.values())

    def fits(days: float) -> bool:
        grown = {language: n * (1 + days * daily / total) for language, n in stories.items()}
        return project_memory(grown, layout)["needed"] <= memory

    if not total or fits(HORIZON):
        return None
    if not fits(0):
        return 0.0
    low, high = 0.0, float(HORIZON)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def run_seconds(cost: StoryCost, index: str, stories: float, held: float) -> float:
    """The seconds to process so many stories, and to look them up and insert them in an index that holds `held`.

    The index works while pages are read, on any core.
    """
    in_index = project_seconds(index, held)
    return stories * max(cost.seconds + in_index / (os.cpu_count() or 1), in_index)


def plan(sample: Sample | None, counts: Mapping[Language, int], daily: int, memory: int) -> dict[str, Any]:
    """Project what `counts` stories need, and `daily` more each day, on a box with `memory` bytes: the JSON object."""
    known = sample or Sample()
    cost = known.cost
    stories = {language: n * known.readable for language, n in counts.items()}
    total = sum(stories.values())
    sizes = {index: project_bytes(index, stories) for index in INDEXES}
    facts: dict[str, Any] = {
        "sample": {
            "fingerprinted": sample.fingerprinted,
            "not_fingerprinted": dict(sample.unread),
            "bad_rows": sample.bad_rows,
        }
        if sample
        else None,
        "story": {"ledger_bytes": cost.ledger, "passages": cost.passages, "seconds": cost.seconds},
        "languages": {
            str(language): {
                "listed": counts[language],
                "stories": n,
                "ledger_bytes": cost.ledger * n,
                **{f"{index}_bytes": sizes[index][language] for index in INDEXES},
            }
            for language, n in stories.items()
        },
        "index": {index: sum(sizes[index].values()) for index in INDEXES},
        "ledger_bytes": cost.ledger * total,
        "passage_bytes": estimate_bytes(round(cost.passages * total), max(round(total), 1)),
        "memory": {"box": memory, **{layout: project_memory(stories, layout) for layout in LAYOUTS}},
        "days_until_full": {layout: project_days_until_full(stories, layout, daily, memory) for layout in LAYOUTS},
        "daily_stories": daily,
        "backfill": {index: run_seconds(cost, index, total, total / 2) for index in INDEXES},
        "fresh": {index: total * (cost.seconds + BUILDING[index] / MICRO) for index in INDEXES},
        "daily": {index: run_seconds(cost, index, daily, total) for index in INDEXES},
    }
    facts["warnings"] = list(_list_warnings(facts, sample))
    return _round_facts(facts)


def _list_warnings(facts: Mapping[str, Any], sample: Sample | None) -> Iterable[str]:
    for layout, days in facts["days_until_full"].items():
        memory = facts["memory"]
        needed, box = map(format_gigabytes, (memory[layout]["needed"], memory["box"]))
        if days == 0:
            yield f'does not fit with index.layout = "{layout}": needs {needed} of {box}'
        elif days is not None and days < SOON:
            yield f'the box is full in {format_count(round(days), "day", "days")} with index.layout = "{layout}"'
    if (sweep := facts["memory"]["compact"]["sweep"]) > SWEEP_MOST:
        yield f"a sweep takes {format_gigabytes(sweep)} of memory, more than {format_gigabytes(SWEEP_MOST)}"
    if sample is not None:
        if sample.fingerprinted < FEW:
            yield f"few stories sampled ({sample.fingerprinted:,}): what a story takes is assumed to be typical"
        if sample.bad_rows:
            bad_rows = format_count(sample.bad_rows, "row of the listing names", "rows of the listing name")
            yield f"{bad_rows} no story"
        if sample.unread:
            unread = ", ".join(f"{reason} {n:,}" for reason, n in sample.unread.items())
            yield f"sampled but not fingerprinted: {unread}"


def format_gigabytes(size: float) -> str:
    """Format bytes in GiB, or in MiB below half a GiB."""
    return f"{size / GIB:.2f} GiB" if size >= GIB / 2 else f"{size / MEGA:,.1f} MiB"


def _round_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Round to the precision of the projection: four digits, and whole numbers from 1,000."""
    rounded = dict(facts)
    for name, fact in facts.items():
        if isinstance(fact, dict):
            rounded[name] = _round_facts(fact)
        elif isinstance(fact, float):
            rounded[name] = round(fact) if fact >= 1000 else float(f"{fact:.4g}")
    return rounded


# The projection as tables


def plan_tables(facts: Mapping[str, Any]) -> Iterable[Table | Text]:
    """The tables by language, in total and of the box's memory, an explanation, and the warnings."""
    columns = [*(f"{index}_bytes" for index in INDEXES), "ledger_bytes"]
    table = _make_table("MiB of", "stories", "documented", "compact", "SQLite index", "ledger")
    for language, own in facts["languages"].items():
        table.add_row(language, f"{own['stories']:,.0f}", *(f"{own[column] / MEGA:,.1f}" for column in columns))
    yield table
    yield _make_totals(facts)
    boxes = [facts["memory"][layout] for layout in LAYOUTS]
    box = _make_table(f"of {format_gigabytes(facts['memory']['box'])} of memory", *LAYOUTS)
    for part in boxes[0]:
        box.add_row(part, *(format_gigabytes(memory[part]) for memory in boxes))
    box.add_row("days until it is full", *map(_format_days, facts["days_until_full"].values()))
    yield box
    yield Text(
        "The box holds Redis as it grows story by story, a fifth of it copied while the append-only file is rewritten, "
        "the daemon, a sweep, and 0.5 GiB for the operating system.  The times do not include verification."
    )
    if facts["warnings"]:
        yield Text("\n".join(f"! {warning}" for warning in facts["warnings"]))


def _make_totals(facts: Mapping[str, Any]) -> Table:
    table = _make_table("in all", "documented", "compact", "SQLite index")
    stories = max(sum(own["stories"] for own in facts["languages"].values()), 1)
    table.add_row("index", *map(format_gigabytes, facts["index"].values()))
    table.add_row("  bytes a story", *(f"{size / stories:,.0f}" for size in facts["index"].values()))
    table.add_row("ledger, on disk", *[format_gigabytes(facts["ledger_bytes"])] * len(INDEXES))
    table.add_row("passage index, on disk", *[format_gigabytes(facts["passage_bytes"])] * len(INDEXES))
    kinds = {
        "backfill": "backfill",
        "fresh": "  with --fresh, before its sweep",
        "daily": format_count(facts["daily_stories"], "new story", "new stories"),
    }
    for kind, name in kinds.items():
        table.add_row(name, *map(_format_time, facts[kind].values()))
    return table


def _format_time(seconds: float) -> str:
    if seconds < MINUTE:
        return f"{seconds:,.1f} s"
    return f"{seconds / HOUR:,.1f} h" if seconds >= HOUR else f"{seconds / MINUTE:,.1f} min"


def _format_days(days: float | None) -> str:
    return "over ten years" if days is None else "does not fit" if not days else f"{days:,.0f}"


def _make_table(first: str, *others: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column(first, vertical="bottom")
    for name in others:
        table.add_column(name, justify="right")
    return table
