"""`neardup export --fingerprints`: writes the fingerprints of the ledger to a Parquet file."""

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from msgspec import Struct, field

from neardup.app import App, list_hooks
from neardup.config import Config
from neardup.core.fingerprint.version import algorithm, version
from neardup.core.verify.tiers import COPIED_WORDS, EXACT, find_tier, list_kinds_of_passages
from neardup.errors import Fatal, Misuse, needs_extra
from neardup.index.passages.join import HashesByStory
from neardup.index.passages.postings import Row, make_keys, merge_keys
from neardup.ledger import Ledger, imports, now_ms, outbox, read, runs, translate_errors
from neardup.ledger.files import make_scratch_folder, translate_scratch_errors
from neardup.ledger.imports import GivenVerdict, ImportedFlag
from neardup.ledger.languages import count_by_language
from neardup.ledger.lock import only_one
from neardup.ledger.passages import count_missing
from neardup.ledger.story_rows import unpack_etag
from neardup.moderation.export.target import write_atomically
from neardup.pipeline import fingerprint_file
from neardup.pipeline.fingerprint_file import CANDIDATES, FLAGS, FOLDER, TIMES, Batch, list_versions, make_schema
from neardup.pipeline.index_sync import admit_ledger_version, admit_version, catch_up, rebuild
from neardup.pipeline.passage_sync import PassageSync, open_passages
from neardup.pipeline.run_lifecycle import carry_out
from neardup.pipeline.summary import Phase, Progress, Summary, Watch, ignore_progress
from neardup.pipeline.sweep import PassageSweep
from neardup.records import (
    DECIDING,
    NO_SPANS,
    PERMITTED,
    Assessment,
    Signals,
    Spans,
    Verdict,
    count_milliseconds,
    format_count,
)
from neardup.source.parse import parse_id

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


OPEN, WITHDRAWN = "open", "withdrawn"
UNDECIDED = (OPEN, PERMITTED)  # the permissions of this ledger decide which of them a flag gets
# An index that lacks more than this share of the stories is rebuilt: a rebuild takes at most a tenth of the time that a
# replay takes for as many stories.
REBUILT_FROM = 0.1

FlagRow = Mapping[str, Any]  # of a Parquet file of flags or candidates


class Seconds(Struct, frozen=True):
    """A time, and how much of it the process computed, on all threads."""

    wall: float = 0.0
    cpu: float = 0.0

    @classmethod
    def now(cls) -> Self:
        return cls(time.perf_counter(), time.process_time())

    def __add__(self, other: "Seconds") -> "Seconds":
        return Seconds(self.wall + other.wall, self.cpu + other.cpu)

    def __sub__(self, other: "Seconds") -> "Seconds":
        return Seconds(self.wall - other.wall, self.cpu - other.cpu)


class ImportSummary(Summary):
    """What an import did.

    `stories` were added.  Of the others, `known` are on record with the same text, `changed` with another text or
    language, and `forgotten` were forgotten on request.  `sweep_owed` says that pairs are still to be found.
    `parts` has the seconds of each part, and those of them that the process computed.
    """

    stories: int = 0
    known: int = 0
    changed: int = 0
    forgotten: int = 0
    flags: int = 0
    candidates: int = 0
    sweep_owed: bool = False
    parts: dict[str, Seconds] = field(default_factory=dict)

    def as_record(self) -> dict[str, object]:
        names = ("stories", "known", "changed", "forgotten", "flags", "candidates", "sweep_owed")
        parts = {part: {"seconds": round(n.wall, 3), "cpu": round(n.cpu, 3)} for part, n in self.parts.items()}
        seconds = {"seconds": round(self.seconds, 3), "parts": parts}
        return {name: getattr(self, name) for name in names} | seconds

    @contextmanager
    def time_part(self, part: str, within: str | None = None) -> Iterator[None]:
        """Add the time that this takes to a part, and take it from the part `within` which it happens."""
        began = Seconds.now()
        try:
            yield
        finally:
            seconds = Seconds.now() - began
            self.parts[part] = self.parts.get(part, Seconds()) + seconds
            if within is not None:
                self.parts[within] = self.parts.get(within, Seconds()) - seconds


def read_flag(row: FlagRow, version: str, now: int) -> ImportedFlag | None:
    """The flag of a row of an export of pairs; None for one that was withdrawn.

    `version` and `now` (milliseconds) are for rows that do not say by which fingerprints and when they were flagged.
    Raises Misuse for a row that describes no flag.
    """
    try:
        status = row.get("status") or OPEN
        return None if status == WITHDRAWN else _make_flag(row, status, version, now)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise Misuse(f"a row of flags is not what an export writes: {type(error).__name__} {error}") from None


def _make_flag(row: FlagRow, status: str, version: str, now: int) -> ImportedFlag:
    story_id, matched_id = _read_ids(row)
    kind, is_turned = find_tier(row["kind"]).kind, story_id > matched_id
    containments, spans = [row.get("containment"), row.get("matched_containment")], _read_spans(row)
    if is_turned:
        containments.reverse()
        spans.reverse()
    extra = json.loads(row.get("signals") or "{}")
    if row.get("copied_words") is not None:
        extra[COPIED_WORDS] = row["copied_words"]
    signals = Signals(
        row["hamming"],
        kind == EXACT,
        row.get("jaccard"),
        containments[0],
        containments[1],
        row.get("longest_run_words"),
        bool(row.get("estimated")),
        extra,
    )
    by_passages = row.get("by_passages")
    return ImportedFlag(
        min(story_id, matched_id),
        max(story_id, matched_id),
        kind,
        Assessment(kind, signals, *spans),
        OPEN if status in UNDECIDED else Verdict(status).value,
        count_milliseconds(row.get("flagged_at")) or now,
        row.get("fingerprint_version") or version,
        kind in list_kinds_of_passages() if by_passages is None else by_passages,
        _read_verdict(row, status, now),
    )


def _read_verdict(row: FlagRow, status: str, now: int) -> GivenVerdict | None:
    """The verdict that stands, if it decides the pair.

    A row describes the latest verdict.  Where that was undone, the status alone says which earlier one stands.
    """
    decided_at = count_milliseconds(row.get("decided_at")) or now
    if row.get("undone_at") is None and row.get("verdict") in DECIDING:
        return GivenVerdict(Verdict(row["verdict"]), row.get("note") or "", row.get("moderator") or "", decided_at)
    return GivenVerdict(Verdict(status), "", "", decided_at) if status in DECIDING else None


def read_candidate(row: FlagRow) -> tuple[int, int, bool]:
    """The two stories of a row of candidates, and whether passages alone nominated the pair.  Raises Misuse."""
    try:
        return *_read_ids(row), bool(row.get("by_passages"))
    except (KeyError, TypeError, ValueError) as error:
        raise Misuse(f"a row of candidates names no two stories: {type(error).__name__} {error}") from None


def _read_ids(row: FlagRow) -> tuple[int, int]:
    """The integers of the story and of its match, which an export shows by their names, if they have names."""
    shown = row["story_id"], row["matched_id"]
    if not all(isinstance(listed, int | str) for listed in shown):
        raise TypeError("an id is neither an integer nor a name")
    return parse_id(str(shown[0])), parse_id(str(shown[1]))


def _read_spans(row: FlagRow) -> list[Spans]:
    return [
        np.array(json.loads(text), np.int32).reshape(-1, 2) if (text := row.get(name)) else NO_SPANS
        for name in ("story_spans", "matched_spans")
    ]


async def import_fingerprints(
    app: App, path: Path, stop: asyncio.Event, watch: Watch = ignore_progress
) -> ImportSummary:
    """Import a Parquet file, or a folder of them, until done or `stop` is set.

    Raises Misuse, before anything is written, for files that do not fit; otherwise as `carry_out` does.
    """
    job = Import(app, path, stop, watch)
    return await carry_out(
        job,
        app.ledger,
        stop,
        shutdown_seconds=app.config.run.shutdown_seconds,
        hooks=list_hooks(app.config, app.ledger, stop),
    )


class Import:
    """One import, for `run_lifecycle.carry_out`."""

    def __init__(self, app: App, path: Path, stop: asyncio.Event, watch: Watch) -> None:
        self.summary = ImportSummary("import")
        self._app, self._path, self._stop, self._watch = app, path, stop, watch
        self._passages = PassageSync(app.passages, app.ledger)
        self.progress = Progress()
        self._files: list[Path] = []
        self._rows = 0
        self._left_out: set[int] = set()  # stories with another text on record: their flags are not of that text
        self._newest: int | None = None

    @property
    def watermark(self) -> int | None:
        """The newest `updated_at` of the stories, as after a backfill; a watermark on record does not move."""
        return self._newest

    async def prepare(self) -> None:
        """Refuse files that do not fit, and bring the passage index in step with the ledger."""
        app = self._app
        self._files = fingerprint_file.find_files(self._path, FOLDER)
        if not self._files:
            raise Misuse(f"{self._path}: no Parquet file of fingerprints is there")
        registry = app.config.registry
        self._rows = await asyncio.to_thread(fingerprint_file.count_fitting_rows, self._files, registry)
        fingerprint_file.refuse_other_times(fingerprint_file.find_files(self._path, FLAGS))
        await admit_version(app.index, app.ledger, app.version)
        await self._passages.start()
        await self._passages.settle(self._stop)

    async def collect_facts(self) -> dict[str, object]:
        """The number of stories in the files."""
        return {"stories": self._rows}

    async def work(self, _: int) -> bool:
        """Import all; returns False if `stop` was set before the end."""
        ledger = self._app.ledger
        moves_watermark = await ledger.do(runs.read_watermark) is None
        self._enter("importing", self._rows)
        await self._add_stories()
        if not moves_watermark:
            self._newest = None
        with self.summary.time_part("merge passages"):
            await self._passages.settle(self._stop)
        await self._update_index()
        await self._add_pairs()
        if not self._stop.is_set() and await self._has_all_flags():
            await self._find_common()
            if not self._stop.is_set():
                await ledger.do(outbox.prove_lookups)
                await ledger.do(runs.owe_sweep, owed=False)
        self.summary.sweep_owed = await ledger.do(runs.owes_sweep)
        return not self._stop.is_set()

    async def _add_stories(self) -> None:
        batches, ledger, summary = fingerprint_file.read_batches(self._files), self._app.ledger, self.summary
        reading = asyncio.create_task(asyncio.to_thread(next, batches, None))
        while (batch := await reading) is not None and not self._stop.is_set():
            reading = asyncio.create_task(asyncio.to_thread(next, batches, None))  # while this one is written
            held = await self._passages.list_held_ranges()
            with summary.time_part("ledger"):
                done = await ledger.do(
                    imports.add_stories, batch.columns, held[-1][1] if held else 0, self._make_writer(batch)
                )
            summary.stories += done.added
            summary.known += done.known
            summary.changed += len(done.changed)
            summary.forgotten += done.forgotten
            self._left_out.update(done.changed)
            times = [at for at in batch.columns["updated_at"] if at is not None and at <= summary.started_at]
            self._newest = max([*times, self._newest or 0]) or None
            self._advance(len(batch))
        await reading

    def _make_writer(self, batch: Batch) -> Callable[[imports.SegmentContent], None]:
        """What writes the segment of a batch; the ledger's last change is then that of the last story of it."""

        def write(content: imports.SegmentContent) -> None:
            with self.summary.time_part("passages", within="ledger"):
                numbers = np.arange(content.last - len(content.rows) + 1, content.last + 1, dtype=np.uint32)
                keys = batch.make_keys(content.rows, numbers)
                if content.waiting:
                    waiting: list[Row] = [(n, np.frombuffer(hashes, np.uint32)) for n, hashes in content.waiting]
                    keys = merge_keys([keys, make_keys(waiting)])
                self._app.passages.flush(content.first, content.last, content.last, keys)

        return write

    async def _update_index(self) -> None:
        """Bring the index to the ledger's last change: by a rebuild if it lacks many stories."""
        app, summary = self._app, self.summary
        last, total = await app.ledger.do(outbox.read_last_seq), await self._count_stories()
        applied = (await app.index.read_position()).applied

        async def build() -> None:
            if applied is None or last - applied > REBUILT_FROM * total:
                await rebuild(app.index, app.ledger, app.version, self._show)
            else:
                await catch_up(app.index, app.ledger, app.version)

        if self._stop.is_set():
            return
        self._enter("building the index", total)
        with summary.time_part("index"):
            await app.index_wait.wait_for_answer("build", build, may_take_long=True)

    async def _add_pairs(self) -> None:
        """Record the flags of these stories, then the candidates."""
        summary, ledger = self.summary, self._app.ledger
        with summary.time_part("flags"):
            for rows in fingerprint_file.read_rows(fingerprint_file.find_files(self._path, FLAGS)):
                if self._stop.is_set():
                    return
                found = [read_flag(row, algorithm(), now_ms()) for row in rows]
                kept = [flag for flag in found if flag is not None and not {flag.a, flag.b} & self._left_out]
                summary.flags += await ledger.do(imports.put_flags, kept)
            for rows in fingerprint_file.read_rows(fingerprint_file.find_files(self._path, CANDIDATES)):
                summary.candidates += await ledger.do(imports.put_candidates, list(map(read_candidate, rows)))

    async def _has_all_flags(self) -> bool:
        """Whether the flags are those of all stories: they came with them, and the ledger holds no other story."""
        if not await self._app.ledger.do(runs.owes_sweep) or not fingerprint_file.find_files(self._path, FLAGS):
            return False
        return await self._count_stories() == self.summary.stories + self.summary.known

    async def _count_stories(self) -> int:
        """The number of stories on record."""
        return sum((await self._app.ledger.do(count_by_language)).values())

    async def _find_common(self) -> None:
        """Record the common passages, as the runs that fingerprint stories do."""
        app, stop = self._app, self._stop
        with self.summary.time_part("common passages"), make_scratch_folder(app.ledger.path, "import") as scratch:
            sweep = PassageSweep(
                self._passages, app.ledger, app.config.detection, scratch, stop=stop, show=lambda _: None
            )
            await sweep.find_common(await app.ledger.do(outbox.read_last_seq))

    def _enter(self, phase: Phase, size: int) -> None:
        self.progress.enter(phase, size)
        self._watch(self.progress)

    def _advance(self, stories: int) -> None:
        self.progress.counts.fingerprinted += stories
        self._show(self.progress.position + stories)

    def _show(self, position: int) -> None:
        self.progress.position = position
        self._watch(self.progress)
