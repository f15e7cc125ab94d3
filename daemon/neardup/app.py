"""The one place where parts are wired."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from neardup.config import Config
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.text.html import Extraction
from neardup.index.protocol import Index
from neardup.index.redis import open_redis
from neardup.index.sqlite import SqliteIndex
from neardup.ledger import Ledger, connect, dead_letters, languages, read
from neardup.ledger.dead_letters import Choice
from neardup.pages.reader_pool import Readers
from neardup.pages.store import open_place
from neardup.records import Checkpoint
from neardup.source import Source
from neardup.source.athena import Athena
from neardup.source.dead_letters import Letters
from neardup.source.manifest import Manifest
from neardup.source.s3_objects import open_range_reader
from neardup.telemetry.metrics import show


@dataclass(frozen=True, slots=True)
class App:
    """The parts of an open neardup."""

    config: Config
    ledger: Ledger
    reader: Ledger
    index: Index
    version: str


@asynccontextmanager
async def open_app(config: Config) -> AsyncIterator[App]:
    """Open ledger and index.  Raises Transient where Redis does not answer, else Fatal."""
    connect(config.ledger.path).close()
    ledger = Ledger(config.ledger.path)
    reader = Ledger(config.ledger.path, read)
    try:
        await ledger.do(languages.register, config.registry)
        show(config.registry)
        index = await open_index(config)
        try:
            yield App(config, ledger, reader, index, fingerprint_version.version(config.registry))
        finally:
            await index.close()
    finally:
        reader.close()
        ledger.close()


async def open_index(config: Config) -> Index:
    """The index that [index] names."""
    bandings = config.detection.bandings(config.registry)
    if config.index.url == "sqlite:":
        return SqliteIndex(config.ledger.path, bandings)
    return await open_redis(config.index.url, bandings, config.registry.codes, config.index.layout)


def open_source(config: Config, began: Callable[[Checkpoint], Awaitable[None]]) -> Source:
    """The lister that [source] names; `began` is told of a listing that can be resumed."""
    if config.source.kind == "athena":
        content = config.content
        return Athena(
            config.source, content.region, config.registry, lambda url: open_range_reader(url, content), began
        )
    assert config.source.manifest is not None
    return Manifest(config.source.manifest, config.registry)


async def open_letters(app: App, choice: Choice) -> Source:
    """The lister of dead letters' stories."""
    size = sum((await app.ledger.do(dead_letters.counted, choice)).values())
    return Letters(lambda after: app.ledger.do(dead_letters.retriable, choice, after), size)


def open_readers(config: Config) -> Readers:
    """Processes that read pages, started when the first is asked for.  Raises Fatal for a store that is not there."""
    open_place(config.content)
    return Readers(config.content, extraction(config), config.run.workers)


def extraction(config: Config) -> Extraction:
    return Extraction(config.extract.body, config.extract.strip)
