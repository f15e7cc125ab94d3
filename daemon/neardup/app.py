"""Composes the parts of neardup into what commands do: open, compare, check, serve checks, review, run,
sweep, reindex.

The configuration is read here, and the parts get what they need of it.  A function imports the parts that only it
needs, since a command that needs few of them starts in a fraction of the time that all take to load.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, closing, contextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import asdict

from neardup.config import Config, Detection
from neardup.errors import Misuse, Transient
from neardup.index.protocol import Index
from neardup.index.redis import open_redis
from neardup.index.sqlite import SqliteIndex
from neardup.ledger import Do, Ledger, connect, files, languages, read

if TYPE_CHECKING:
    from neardup.core.text.extraction import Extraction
    from neardup.index.passages.index import PassageIndex
    from neardup.ledger.dead_letters import DeadLetterFilter
    from neardup.moderation.desk.parts import Desk
    from neardup.pages.reader_pool import ReaderPool
    from neardup.pages.text_cache import Texts
    from neardup.pipeline.index_sync import IndexWait
    from neardup.pipeline.run import CheckpointWriter, Parts, Run
    from neardup.pipeline.run_lifecycle import Hook
    from neardup.pipeline.summary import RunSummary, Summary, SweepSummary, Watch
    from neardup.query.check import Checker
    from neardup.query.compare import Comparer
    from neardup.query.complaints import Complaints
    from neardup.query.search import PassageSearch
    from neardup.serve.service import Service, ServiceParts
    from neardup.source import Source


REFERENCE_COMMAND = "reference"


class App(Struct, frozen=True):
    """The open parts that commands share; `reader` is a second, read-only connection to the ledger."""

    config: Config
    ledger: Ledger
    reader: Ledger
    index: Index
    passages: "PassageIndex"
    index_wait: "IndexWait"
    version: str


@asynccontextmanager
async def open_app(config: Config) -> AsyncIterator[App]:
    """Open ledger and index.  Raises Transient if Redis does not answer, and Fatal for other failures."""
    from neardup.core.fingerprint import version as fingerprint_version
    from neardup.core.verify.tiers import list_kinds
    from neardup.pipeline.index_sync import IndexWait
    from neardup.pipeline.passage_sync import open_passages
    from neardup.telemetry.metrics import create_series

    connect(config.ledger.path).close()
    with closing(Ledger(config.ledger.path)) as ledger, closing(Ledger(config.ledger.path, read)) as reader:
        await ledger.do(languages.register, config.registry)
        create_series(config.registry, list_kinds())
        index = await open_index(config)
        try:
            with closing(await open_passages(ledger)) as passages:
                version = fingerprint_version.version(config.registry)
                yield App(config, ledger, reader, index, passages, IndexWait(ledger), version)
        finally:
            await index.close()


@contextmanager
def open_ledger(config: Config) -> Iterator[Ledger]:
    """Open an existing ledger.  Raises Fatal if there is none."""
    if config.ledger.path.exists():  # it may be of an earlier schema
        connect(config.ledger.path).close()
    read(config.ledger.path).close()
    with closing(Ledger(config.ledger.path)) as ledger:
        yield ledger


async def open_index(config: Config) -> Index:
    """Open the index that [index] configures: in Redis, or in the ledger's file."""
    bandings, index = config.detection.bandings(config.registry), config.index
    if index.url.startswith("sqlite:"):
        return SqliteIndex(config.ledger.path, bandings)
    return await open_redis(index.url, bandings, config.registry.codes, index.layout)


def open_readers(config: Config) -> "ReaderPool":
    """A pool of reader processes, which start when first needed.  Raises Fatal for a store that does not exist."""
    from neardup.core.text.extraction import Extraction
    from neardup.pages.reader_pool import ReaderPool
    from neardup.pages.store import WorkPages, open_store

    open_store(config.content)
    submitted, works = files.name_submitted_folder(config.ledger.path), None
    if (reference := config.reference) is not None:
        open_store(reference.content)
        works = WorkPages(reference.content, Extraction(reference.extract.body, reference.extract.strip))
    return ReaderPool(config.content, make_extraction(config), config.run.workers, submitted, works)


def make_extraction(config: Config) -> "Extraction":
    from neardup.core.text.extraction import Extraction

    return Extraction(config.extract.body, config.extract.strip)


def make_comparer(config: Config | None) -> "Comparer":
    """The parts of `compare`; without a configuration it compares files only, each with its whole text."""
    from neardup.core.text.extraction import Extraction
    from neardup.query.compare import Comparer

    if config is None:
        return Comparer(None, None, Extraction(), Detection())
    return Comparer(config.ledger.path, lambda: open_readers(config), make_extraction(config), config.detection)


@asynccontextmanager
async def open_checker(config: Config) -> "AsyncIterator[Checker]":
    """A checker of texts against the ledger and the index; its reader processes start when first needed.

    Raises as `open_app` does, and Fatal for a store that does not exist.
    """
    from neardup.pages.text_cache import Texts

    async with aclosing(open_readers(config)) as pool, open_app(config) as app:
        yield make_checker(app, Texts(pool.read_to_compare))


def make_checker(app: App, texts: "Texts") -> "Checker":
    """A checker of texts; `texts` reads the candidates."""
    from neardup.query.check import Checker

    return Checker(app.index, app.passages, app.reader, texts, app.config.detection, app.version)


@asynccontextmanager
async def open_service_parts(config: Config) -> "AsyncIterator[ServiceParts]":
    """The parts of the HTTP service, ready at once; they keep the indexes in step while they are open.

    Raises as `open_checker` does, and Fatal for a ledger or an index with fingerprints of another version.
    """
    from neardup.pages.text_cache import Texts
    from neardup.pipeline.index_sync import admit_version
    from neardup.pipeline.passage_sync import PassageSync
    from neardup.pipeline.upkeep import Upkeep
    from neardup.query.submissions import Submissions
    from neardup.serve.service import ServiceParts
    from neardup.serve.tokens import AuthorTokens

    async with open_app(config) as app, aclosing(open_readers(config)) as pool:
        await admit_version(app.index, app.ledger, app.version)
        await pool.start()
        texts = Texts(pool.read_to_compare)
        checker = make_checker(app, texts)
        passages = PassageSync(app.passages, app.ledger)
        upkeep = Upkeep(app.index, passages, app.ledger, texts, config.detection, app.version)
        keeping_up = asyncio.create_task(upkeep.run(), name="upkeep")
        try:
            max_bytes, languages = config.content.max_bytes, config.registry
            submissions = Submissions(checker, app.ledger, texts, config.detection, max_bytes, languages=languages)
            complaints = make_complaints(config, app.reader.do, app.ledger.do, pool, checker)
            key, hours = config.serve.author_key, timedelta(hours=config.serve.author_token_hours)
            author_tokens = None if key is None else AuthorTokens.open(key, hours)
            async with post_events(config, app.ledger.do):
                yield ServiceParts(config, checker, submissions, app.reader, pool, complaints, author_tokens)
        finally:
            keeping_up.cancel()
            await asyncio.gather(keeping_up, return_exceptions=True)


def make_complaints(
    config: Config,
    read_with: Do,
    write_with: Do,
    pool: "ReaderPool",
    checker: "Checker | None" = None,
) -> "Complaints":
    """What receives complaints; without a `checker`, one is opened for each complaint that needs it."""
    from neardup.pages.text_cache import Texts
    from neardup.query.complaints import Complaints

    @asynccontextmanager
    async def lend_checker() -> "AsyncIterator[Checker]":
        if checker is not None:
            yield checker
            return
        async with open_app(config) as app:
            yield make_checker(app, Texts(pool.read_to_compare))

    days, max_bytes = config.review.complaint_days, config.content.max_bytes
    return Complaints(read_with, write_with, pool, lend_checker, config.detection, days, max_bytes)


@asynccontextmanager
async def open_complaints(config: Config) -> "AsyncIterator[Complaints]":
    """What receives complaints, for a command.  Raises as `open_checker` does."""
    from neardup.pages.text_cache import Texts

    async with aclosing(open_readers(config)) as pool, open_posting_app(config) as app:
        checker = make_checker(app, Texts(pool.read_to_compare))
        yield make_complaints(config, app.reader.do, app.ledger.do, pool, checker)


def make_http_service(
    config: Config, stop: asyncio.Event, announce: Callable[[str], None] = lambda _: None
) -> "Service":
    """The HTTP service, which opens its parts once it is answering; `announce` is as for `Service`.

    Raises Misuse for a file of tokens that cannot be read, or is wrong.
    """
    from neardup.serve.service import Service
    from neardup.serve.tokens import open_tokens

    tokens = None if config.serve.tokens is None else open_tokens(config.serve.tokens)
    return Service(config.serve, partial(open_service_parts, config), tokens, stop, announce=announce)


@asynccontextmanager
async def open_desk(config: Config, listen: str) -> "AsyncIterator[Desk]":
    """Open the parts of the review desk, which is to listen on HOST:PORT.

    Raises Misuse if other machines can reach the address and no token is set, or the file of the moderators is wrong;
    Fatal if the ledger does not exist, or the store cannot be opened; Transient if the ledger is locked.
    """
    from neardup.moderation.desk.moderators import Keys, read_credentials
    from neardup.moderation.desk.parts import Connections, Desk, keep_reading_words
    from neardup.query.compare import load_story
    from neardup.query.search import TextSearch, TitleSearch, open_words

    token, moderators = read_credentials(config, listen)
    with closing(Connections(config.ledger.path)) as ledger:
        async with aclosing(open_readers(config)) as pool:
            path = config.ledger.path
            with (
                closing(open_words(path, files.name_titles_file(path))) as of_titles,
                closing(open_words(path, files.name_texts_file(path))) as of_texts,
            ):
                titles = TitleSearch(of_titles, ledger.read)
                texts = TextSearch(of_texts, ledger.read, partial(load_story, pool))
                open_search = partial(open_passage_search, config)
                async with post_events(config, ledger.write) as wake, keep_reading_words(titles, texts):
                    complaints = make_complaints(config, ledger.read, ledger.write, pool)
                    keys = Keys.of(token)
                    yield Desk(config, ledger, pool, keys, moderators, titles, texts, open_search, wake, complaints)


@asynccontextmanager
async def post_events(config: Config, do: Do) -> AsyncIterator[asyncio.Event]:
    """Post the events of the outbox while the context lasts; yields what is set when there may be new ones.

    Topics are subscribed to first, so that what is decided from now on is posted.  Raises as `Ledger.do` does.
    """
    from neardup.moderation.webhook import list_topics, post_events, subscribe

    wake = asyncio.Event()
    await subscribe(do, config)
    posts = asyncio.create_task(post_events(do, config, wake), name="webhooks") if list_topics(config) else None
    try:
        yield wake
    finally:
        if posts is not None:
            posts.cancel()
            await asyncio.gather(posts, return_exceptions=True)


@asynccontextmanager
async def open_posting_app(config: Config) -> AsyncIterator[App]:
    """As `open_app`; posts the events of the outbox while the app is open."""
    async with open_app(config) as app, post_events(config, app.ledger.do):
        yield app


@asynccontextmanager
async def open_passage_search(config: Config) -> "AsyncIterator[PassageSearch]":
    """A search for the stories that hold a sentence.  Raises Fatal for the passage index of another ledger."""
    from neardup.pipeline.passage_sync import PassageSync, open_passages
    from neardup.query.search import PassageSearch

    with closing(Ledger(config.ledger.path, read)) as ledger, closing(await open_passages(ledger)) as index:
        yield PassageSearch(PassageSync(index, ledger), ledger, config.detection.common_passage)


async def run_once(
    app: App,
    command: str,
    stop: asyncio.Event,
    watch: "Watch | None" = None,
    *,
    since: int | None = None,
    refingerprint: bool = False,
    fresh: bool = False,
    dead_letters: "DeadLetterFilter | None" = None,
    listing: "Source | None" = None,
    hooks: "Sequence[Hook]" = (),
) -> "RunSummary":
    """Run `backfill`, `daily`, `retry` or `reference` until its listing ends or `stop` is set; then hooks.

    `watch` is called with the progress after each batch.  If `dead_letters` are chosen, their stories are listed;
    otherwise those of `listing`, or of [source].  `since` and `fresh` are as in `Options`; `refingerprint` reads all
    pages again.  `hooks` are called before the gauges are set.  Raises as `Run` and `carry_out` do.
    """
    from neardup.moderation.webhook import subscribe
    from neardup.pipeline.run import Options, Run
    from neardup.pipeline.run_lifecycle import carry_out
    from neardup.pipeline.summary import ignore_progress

    config = app.config
    extract = json.dumps(asdict(config.extract), ensure_ascii=False, separators=(",", ":"))
    options = Options(
        command,
        since=since,
        needs_watermark=config.source.kind == "athena",
        refingerprint_for=extract if refingerprint else None,
        fresh=fresh,
        dead_letters=dead_letters is not None,
        moves_watermark=dead_letters is None and listing is None,
    )
    job = Run(_make_run_parts(app, dead_letters, listing), options, stop, watch or ignore_progress)
    await subscribe(app.ledger.do, config)
    return await carry_out(
        job,
        app.ledger,
        stop,
        shutdown_seconds=config.run.shutdown_seconds,
        hooks=[
            *list_hooks(config, app.ledger, stop),
            *_make_measuring_hooks(app, job, scrubs=command == "daily"),
            *hooks,
            *_make_reporting_hooks(app, posts=listing is None),
        ],
    )


def _make_run_parts(app: App, dead_letters: "DeadLetterFilter | None", listing: "Source | None") -> "Parts":
    """The parts of a run, which lists the stories of dead letters or of `listing`, or else those of [source].

    Raises Misuse for a source that only `neardup scan` can list.
    """
    from neardup.ledger import dead_letters as letters
    from neardup.ledger import stories
    from neardup.pipeline.run import Parts
    from neardup.source.listings import DeadLetters, open_source, refuse_scan

    config = app.config
    if listing is None and dead_letters is None:
        refuse_scan(config)  # before the index is built

    async def open_listing(checkpoint: "CheckpointWriter") -> "Source":
        if dead_letters is not None:
            size = sum((await app.ledger.do(letters.count_by_reason, dead_letters)).values())
            return DeadLetters(lambda after: app.ledger.do(letters.list_retriable, dead_letters, after), size)
        return listing or open_source(config, checkpoint, lambda ids: app.reader.do(stories.read_stored_versions, ids))

    return Parts(
        ledger=app.ledger,
        reader=app.reader,
        index=app.index,
        passages=app.passages,
        index_wait=app.index_wait,
        version=app.version,
        section=config.run,
        detection=config.detection,
        languages=config.registry,
        open_source=open_listing,
        open_readers=lambda: open_readers(config),
    )


def _make_measuring_hooks(app: App, job: "Run", *, scrubs: bool) -> "list[Hook]":
    """The hooks that add to the summary of a run: its unusual texts, and the faults of the index if it `scrubs`."""
    from neardup.pipeline.index_check import scrub
    from neardup.pipeline.run_lifecycle import Hook
    from neardup.pipeline.summary import report_unusual_texts

    async def report_texts(_: "Summary") -> None:
        job.summary.unusual_texts = await report_unusual_texts(app.ledger)

    faults = job.summary.index_faults
    scrubbing = Hook("scrub", lambda _: scrub(app.index, app.passages, app.ledger, app.config.detection, faults))
    return [Hook("script health", report_texts), *([scrubbing] if scrubs else [])]


def _make_reporting_hooks(app: App, *, posts: bool) -> "list[Hook]":
    """The hooks that report a run to others: the gauges, the webhook of [export] if it `posts`, and the outbox."""
    from neardup.ledger import stories
    from neardup.moderation.webhook import list_topics, notify_webhook, post_for_a_while
    from neardup.pipeline.gauges import refresh_gauges
    from neardup.pipeline.run_lifecycle import Hook

    config = app.config

    async def notify(summary: "Summary") -> None:
        flagged = await app.ledger.do(stories.count_open_flags_of_works, summary.started_at)
        facts = summary.as_dict() | {"flagged_by_catalogue": flagged}
        await notify_webhook(config.export, summary.command, summary.status, facts, config.webhook.revealed)

    hooks = [Hook("gauges", lambda _: refresh_gauges(app.ledger, app.index, app.passages))]
    if posts:
        hooks.append(Hook("webhook", notify))
    if list_topics(config):
        hooks.append(Hook("events", lambda _: post_for_a_while(app.ledger.do, config)))
    return hooks


async def sweep(config: Config, ledger: Ledger, stop: asyncio.Event, watch: "Watch | None" = None) -> "SweepSummary":
    """Nominate and verify the pairs among all stories of the ledger until done or `stop` is set; then export.

    `watch` is called with the progress, in stories.  Raises as `Sweep` and `carry_out` do.
    """
    from neardup.core.fingerprint import version as fingerprint_version
    from neardup.pipeline.run_lifecycle import carry_out
    from neardup.pipeline.summary import ignore_progress
    from neardup.pipeline.sweep import Sweep

    version = fingerprint_version.version(config.registry)
    job = Sweep(
        ledger,
        config.detection,
        version,
        section=config.run,
        open_readers=lambda: open_readers(config),
        stop=stop,
        watch=watch or ignore_progress,
    )
    return await carry_out(
        job, ledger, stop, shutdown_seconds=config.run.shutdown_seconds, hooks=list_hooks(config, ledger, stop)
    )


def list_hooks(config: Config, ledger: Ledger, stop: asyncio.Event) -> "list[Hook]":
    """The hooks that bring the cases up to date and write the file of [export].

    Once `stop` is set, the export leaves out passages, which take time.
    """
    from neardup.ledger import cases
    from neardup.pipeline.run_lifecycle import Hook

    hooks = [Hook("cases", lambda _: ledger.do(cases.refresh))]
    if config.export.path is not None:
        from neardup.moderation.export.write import check_format, export_after_run

        check_format(config.export.path_format)  # before hours of work, not after
        readers = partial(open_readers, config)
        export = Hook("export", lambda _: export_after_run(config, readers, passages=not stop.is_set()), vital=True)
        hooks.append(export)
    return hooks


class Synced(Struct, frozen=True):
    """The outcome of a sync: the summary of its run, and how many works it added, updated and removed."""

    summary: "RunSummary"
    added: int
    updated: int
    removed: int


async def sync_reference(app: App, stop: asyncio.Event, watch: "Watch | None" = None) -> Synced:
    """List all works of [reference]: add and update them, and remove those that are no longer listed.

    Raises Misuse without [reference], and as `run_once` does.
    """
    from neardup.ledger import stories
    from neardup.ledger.lock import only_one
    from neardup.pipeline.index_sync import catch_up
    from neardup.pipeline.run import WorksListing
    from neardup.source.listings import open_reference

    listing, before = WorksListing(open_reference(app.config), app.ledger), await app.ledger.do(stories.count_works)
    summary = await run_once(app, REFERENCE_COMMAND, stop, watch, listing=listing)
    added = await app.ledger.do(stories.count_works) + listing.removed - before
    if listing.removed:
        with suppress(Transient), only_one(app.ledger.path, REFERENCE_COMMAND):  # or else the next run does it
            await catch_up(app.index, app.ledger, app.version)
    return Synced(summary, added, summary.counts.fingerprinted - added, listing.removed)


async def remove_catalogue(app: App, name: str) -> int:
    """Remove a catalogue with its works, their flags and verdicts; returns the number of works.

    Raises Misuse if there is none of this name, Transient if another command is running.
    """
    from neardup.ledger import dead_letters, stories
    from neardup.ledger.lock import only_one
    from neardup.pipeline.index_sync import catch_up
    from neardup.pipeline.passage_sync import PassageSync
    from neardup.pipeline.run import remove_stories

    with only_one(app.ledger.path, REFERENCE_COMMAND):
        ids = await app.ledger.do(stories.list_works, name)
        await catch_up(app.index, app.ledger, app.version)
        await PassageSync(app.passages, app.ledger).start()
        await remove_stories(app.ledger, ids)
        dropped_letters = await app.ledger.do(dead_letters.remove_catalogue, name)
        await catch_up(app.index, app.ledger, app.version)
    if not ids and not dropped_letters:
        known = ", ".join(catalogue.name for catalogue in await app.ledger.do(stories.list_catalogues)) or "none"
        raise Misuse(f"no catalogue {name} is on record; on record: {known}")
    return len(ids)


async def reindex(app: App, progress: Callable[[int], None]) -> tuple[int, Counter[str]]:
    """Rebuild the index, and read again the pages of the stories that the passage index lacks.

    Every checksum of the passage index is compared first.  Calls `progress` with the number of stories done by the step
    under way.  Returns how many stories are indexed, and the results of the pages read, by name.  The caller holds the
    lock.  Raises Transient, StoreDown and Fatal.
    """
    from neardup.pipeline.index_sync import rebuild
    from neardup.pipeline.passage_sync import PassageReading, PassageSync

    indexed = await rebuild(app.index, app.ledger, app.version, progress)
    sync = PassageSync(app.passages, app.ledger)
    async with aclosing(open_readers(app.config)) as readers:
        reading = PassageReading.of_pool(sync, app.ledger, readers, app.config.run)
        await reading.mend(asyncio.Event(), lambda done, _: progress(done))
    await sync.settle(asyncio.Event())
    return indexed, reading.counts
