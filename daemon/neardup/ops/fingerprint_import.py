"""`neardup import`: adds the stories, flags and candidates of Parquet files to the ledger and the indexes, in bulk.

A story on record stays as it is.  So an import that was interrupted, at whatever instant, is resumed by the same
command: it passes over what is on record.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

import numpy as np

from neardup import __version__
from neardup.app import App
from neardup.core.fingerprint.version import algorithm
from neardup.errors import Misuse
from neardup.index.passages.postings import Row, keys_of, merge_keys
from neardup.ledger import changes, imported, imported_pairs, lookup_proof, now_ms, runs
from neardup.ops import fingerprint_file
from neardup.ops.fingerprint_file import CANDIDATES, FLAGS, FOLDER, Batch
from neardup.ops.flag_rows import candidate_of, flag_of
from neardup.ops.import_summary import ImportSummary
from neardup.pipeline.index_sync import catch_up, rebuild, refuse_mismatch
from neardup.pipeline.passage_sweep import PassageSweep
from neardup.pipeline.passage_sync import PassageSync
from neardup.pipeline.progress import Phase, Progress, Watch, ignore_progress
from neardup.pipeline.run_lifecycle import carry_out
from neardup.pipeline.scratch import scratch_folder
from neardup.running import after_run

REBUILT_FROM = 0.1  # of the stories, that the index lacks: a rebuild takes a tenth of the time of a replay, or less


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
        release=__version__,
        shutdown_seconds=app.config.run.shutdown_seconds,
        hooks=after_run(app.config, app.ledger, stop),
    )


class Import:
    """One import, for `run_lifecycle.carry_out`."""

    def __init__(self, app: App, path: Path, stop: asyncio.Event, watch: Watch) -> None:
        self.summary = ImportSummary("import")
        self._app, self._path, self._stop, self._watch = app, path, stop, watch
        self._passages = PassageSync(app.passages, app.ledger)
        self._progress = Progress()
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
        self._files = fingerprint_file.files_of(self._path, FOLDER)
        if not self._files:
            raise Misuse(f"{self._path}: no Parquet file of fingerprints is there")
        registry = app.config.registry
        self._rows = await asyncio.to_thread(fingerprint_file.refuse_others, self._files, registry)
        await refuse_mismatch(app.index, app.ledger, app.version)
        await self._passages.start()
        await self._passages.settle(self._stop)

    async def facts(self) -> dict[str, object]:
        """The number of stories in the files."""
        return {"stories": self._rows}

    async def work(self, _: int) -> bool:
        """Import all; returns False if `stop` was set before the end."""
        ledger = self._app.ledger
        moves_watermark = await ledger.do(runs.watermark) is None
        self._enter("importing", self._rows)
        await self._add_stories()
        if not moves_watermark:
            self._newest = None
        with self.summary.timed("merge passages"):
            await self._passages.settle(self._stop)
        await self._index()
        await self._add_pairs()
        if not self._stop.is_set() and await self._is_compared():
            await self._find_common()
            if not self._stop.is_set():
                await ledger.do(lookup_proof.prove)
                await ledger.do(runs.owe_sweep, owed=False)
        self.summary.sweep_owed = await ledger.do(runs.owes_sweep)
        return not self._stop.is_set()

    async def _add_stories(self) -> None:
        batches, ledger, summary = fingerprint_file.batches(self._files), self._app.ledger, self.summary
        reading = asyncio.create_task(asyncio.to_thread(next, batches, None))
        while (batch := await reading) is not None and not self._stop.is_set():
            reading = asyncio.create_task(asyncio.to_thread(next, batches, None))  # while this one is written
            held = await self._passages.held()
            with summary.timed("ledger"):
                done = await ledger.do(imported.add, batch.columns, held[-1][1] if held else 0, self._writer(batch))
            summary.stories += done.added
            summary.known += done.known
            summary.changed += len(done.changed)
            summary.forgotten += done.forgotten
            self._left_out.update(done.changed)
            times = [at for at in batch.columns["updated_at"] if at is not None and at <= summary.started_at]
            self._newest = max([*times, self._newest or 0]) or None
            self._advance(len(batch))
        await reading

    def _writer(self, batch: Batch) -> Callable[[imported.SegmentContent], None]:
        def write(content: imported.SegmentContent) -> None:
            with self.summary.timed("passages", within="ledger"):
                numbers = np.arange(content.last - len(content.rows) + 1, content.last + 1, dtype=np.uint32)
                keys = batch.keys(content.rows, numbers)
                if content.waiting:
                    waiting: list[Row] = [(n, np.frombuffer(hashes, np.uint32)) for n, hashes in content.waiting]
                    keys = merge_keys([keys, keys_of(waiting)])
                self._app.passages.flush(content.first, content.last, content.last, keys)

        return write

    async def _index(self) -> None:
        """Bring the index to the ledger's last change: by a rebuild if it lacks many stories."""
        app, summary = self._app, self.summary
        last, total = await app.ledger.do(changes.last_seq), await self._held()
        applied = (await app.index.position()).applied

        async def build() -> None:
            if applied is None or last - applied > REBUILT_FROM * total:
                await rebuild(app.index, app.ledger, app.version, self._show)
            else:
                await catch_up(app.index, app.ledger, app.version)

        if self._stop.is_set():
            return
        self._enter("building the index", total)
        with summary.timed("index"):
            await app.index_wait.until_answered("build", build, may_take_long=True)

    async def _add_pairs(self) -> None:
        """Record the flags of these stories, then the candidates."""
        summary, ledger = self.summary, self._app.ledger
        with summary.timed("flags"):
            for rows in fingerprint_file.rows_of(fingerprint_file.files_of(self._path, FLAGS)):
                if self._stop.is_set():
                    return
                found = [flag_of(row, algorithm(), now_ms()) for row in rows]
                kept = [one for one in found if one is not None and not {one.a, one.b} & self._left_out]
                summary.flags += await ledger.do(imported_pairs.put_flags, kept)
            for rows in fingerprint_file.rows_of(fingerprint_file.files_of(self._path, CANDIDATES)):
                summary.candidates += await ledger.do(imported_pairs.put_candidates, list(map(candidate_of, rows)))

    async def _is_compared(self) -> bool:
        """Whether the flags are those of all stories: they came with them, and the ledger holds no other story."""
        if not await self._app.ledger.do(runs.owes_sweep) or not fingerprint_file.files_of(self._path, FLAGS):
            return False
        return await self._held() == self.summary.stories + self.summary.known

    async def _held(self) -> int:
        """The number of stories on record."""
        return sum((await self._app.ledger.do(runs.stories_by_language)).values())

    async def _find_common(self) -> None:
        """Record the common passages, as the runs that fingerprint stories do."""
        app, stop = self._app, self._stop
        with self.summary.timed("common passages"), scratch_folder(app.ledger.path, "import") as scratch:
            sweep = PassageSweep(
                self._passages, app.ledger, app.config.detection, scratch, stop=stop, show=lambda _: None
            )
            await sweep.find_common(await app.ledger.do(changes.last_seq))

    def _enter(self, phase: Phase, size: int) -> None:
        self._progress.enter(phase, size)
        self._watch(self._progress)

    def _advance(self, stories: int) -> None:
        self._progress.counts.fingerprinted += stories
        self._show(self._progress.position + stories)

    def _show(self, position: int) -> None:
        self._progress.position = position
        self._watch(self._progress)
