"""Runs neardup on a corpus: on the texts, as the other detectors run, by `neardup scan`, or on the pages in a backfill.

`python -m tests.bench.detector texts|scan|pages FOLDER` prints a `Detected` by row of the table, as JSON.  Passages are
left out, because no other detector finds them and the known pairs have none.
"""

import asyncio
import json
import resource
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import uvloop
from msgspec import Struct, field
from msgspec.structs import asdict, replace
from neardup.app import App, open_app, run_once
from neardup.cli.console import set_up_logging
from neardup.config import Config, load
from neardup.core.candidates.select import is_worth_comparing
from neardup.core.columns import Outcomes
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.fingerprint.compute import fingerprint_text
from neardup.core.languages import LANGUAGES
from neardup.core.page import make_comparable
from neardup.core.verify.text import Text
from neardup.index.sqlite import SqliteIndex
from neardup.ledger import runs
from neardup.pages.results import TextResult
from neardup.pages.text_cache import Texts
from neardup.pipeline.index_sync import admit_version, catch_up, rebuild
from neardup.pipeline.summary import Counts
from neardup.pipeline.verifier import Verifier
from neardup.pipeline.writer import Writer
from neardup.records import BandedFingerprint, Fingerprinted, Story

from tests.bench.corpus import Document, Pair, ordered, read_documents
from tests.support.builders import texts_by
from tests.support.languages import HINDI
from tests.support.passages import passages_of
from tests.support.resource_meter import cpu_seconds, peak_rss_mb


class Detected(Struct):
    """The pairs that were found, as ids with the lower first; CPU time by stage, and wall time, in seconds.

    The CPU time is that of the process, all its threads, and its children that have ended.  `index_bytes` is the size
    of the index alone, without sketches and texts, and `peak_mb` the peak memory of the largest process in MiB.
    """

    documents: int
    pairs: list[Pair] = field(default_factory=list)
    cpu: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    index_bytes: int | None = None
    peak_mb: float = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time that the enclosed work takes."""
        wall_start, cpu_start = time.perf_counter(), cpu_seconds()
        yield
        self.seconds += time.perf_counter() - wall_start
        self.cpu[name] = self.cpu.get(name, 0.0) + cpu_seconds() - cpu_start


CONFIG = """
[source]
manifest = "{corpus}/manifest.csv"
[content]
url = "file:{corpus}/html"
[ledger]
path = "neardup.db"
"""
NOMINATED, VERIFIED, SCAN, BACKFILL = (f"neardup, {what}" for what in ("nominated", "verified", "scan", "backfill"))
PASSAGE = "passage"
FLAGS = f"flags WHERE kind != '{PASSAGE}'"
Results = dict[str, Detected]


def texts_of(documents: Iterable[Document]) -> Texts:
    """The documents' texts, from memory instead of an object store."""
    texts = {document.id: document.text for document in documents}

    async def read(story: Story) -> TextResult:
        return make_comparable(Text(texts[story.id]))

    return texts_by(read)


async def from_texts(config: Config, corpus: Path) -> Results:
    """Fingerprint all documents, write them to the ledger and the index in batches, then verify the candidates."""
    documents = read_documents(corpus / "manifest.csv", corpus / "html")
    found = Detected(len(documents))
    async with open_app(config) as app:
        await _warm_up(app)
        with found.stage("sketch"):
            sketched = [(Story(d.id, d.language), fingerprint_text(d.text)) for d in documents]
            stories = [Fingerprinted(story, sketch, None) for story, sketch in sketched if sketch]
        with found.stage("index"):
            async with await _writer(app) as writer:
                for at in range(0, len(stories), config.run.batch):
                    batch = Outcomes.of(stories[at : at + config.run.batch])
                    await writer.write(batch, await writer.look_up(batch), 0)
        found.index_bytes = await _index_bytes(app)
        nominated = replace(found, pairs=await app.ledger.do(_pairs, "candidates"), cpu=dict(found.cpu))
        verifier = Verifier(
            app.ledger, config.detection, app.version, texts_of(documents), lambda new_flags, pairs: None
        )
        with found.stage("verify"):
            await verifier.drain()
        found.pairs = await app.ledger.do(_pairs, FLAGS)
    found.peak_mb = nominated.peak_mb = peak_rss_mb()
    return {NOMINATED: nominated, VERIFIED: found}


async def _warm_up(app: App) -> None:
    """Load compiled code now, so that its loading counts for no stage."""
    fingerprint_version.version()
    probe = BandedFingerprint(HINDI, bytes(16), bytes(64))
    await app.index.look_up([probe])
    is_worth_comparing(probe, probe, app.config.detection.of(probe.language))


async def _writer(app: App) -> Writer:
    """A writer for an empty ledger and an empty index."""
    await admit_version(app.index, app.ledger, app.version)
    await catch_up(app.index, app.ledger, app.version)
    return Writer(
        app.ledger,
        app.index,
        app.config.detection,
        app.version,
        passages=await passages_of(app.ledger),
        index_wait=app.index_wait,
        run_id=await app.ledger.do(runs.begin, "backfill"),
        live_facts=dict,
        counts=Counts(),
        checkpoint=lambda position: None,
        committed=lambda: None,
    )


async def _index_bytes(app: App) -> int:
    """The size of a SQLite file that holds the index alone."""
    path = app.config.ledger.path.with_name("index.db")
    index = SqliteIndex(path, app.config.detection.bandings(LANGUAGES))
    await rebuild(index, app.ledger, app.version)
    await index.close()
    return path.stat().st_size


async def by_scan(config: Config, corpus: Path) -> Results:
    """Scan a file of all texts, by the command, with the start of its processes."""
    documents, path = read_documents(corpus / "manifest.csv", corpus / "html"), config.ledger.path.with_name("a.jsonl")
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({"id": d.id, "language": d.language, "text": d.text}) + "\n" for d in documents)
    found = Detected(len(documents))
    with found.stage("all"):
        command = [sys.executable, "-m", "neardup", "scan", str(path), "--format", "jsonl"]
        lines = await asyncio.to_thread(subprocess.check_output, command)
    flags = map(json.loads, lines.splitlines())
    found.pairs = [ordered(int(f["story_title"]), int(f["matched_title"])) for f in flags if f["kind"] != PASSAGE]
    found.peak_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {SCAN: found}


async def from_pages(config: Config, corpus: Path) -> Results:
    """Backfill into an empty ledger; `index_bytes` is the size of the file that holds ledger and index."""
    found = Detected(0)
    async with open_app(config) as app:
        await _warm_up(app)
        with found.stage("all"):
            summary = await run_once(app, "backfill", asyncio.Event())
        found.pairs = await app.ledger.do(_pairs, FLAGS)
    found.peak_mb = peak_rss_mb()
    found.documents = summary.counts.fingerprinted
    found.index_bytes = config.ledger.path.stat().st_size
    return {BACKFILL: found}


def _pairs(db: sqlite3.Connection, table: str) -> list[Pair]:
    return list(db.execute(f"SELECT a, b FROM {table}"))


FLOWS: dict[str, Callable[[Config, Path], Coroutine[Any, Any, Results]]] = {
    "texts": from_texts,
    "scan": by_scan,
    "pages": from_pages,
}


def main(flow: str, corpus: Path) -> Results:
    """Run a flow on an empty ledger."""
    with TemporaryDirectory(prefix="neardup-bench-") as folder:
        path = Path(folder) / "config.toml"
        path.write_text(CONFIG.format(corpus=corpus.absolute()), encoding="utf-8")
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(FLOWS[flow](load(path), corpus))


if __name__ == "__main__":
    set_up_logging()
    results = main(sys.argv[1], Path(sys.argv[2]))
    click.echo(json.dumps({name: asdict(result) for name, result in results.items()}))
