"""Composes the parts of neardup that commands share: ledger, index and reader pool.

What loads a large library imports it where it is used: `status` starts without compiler, S3 and Redis.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from neardup.config import Config, Detection
from neardup.index import backends
from neardup.index.protocol import Index
from neardup.ledger import Ledger, connect, files, languages, read

if TYPE_CHECKING:
    from neardup.core.text.extraction import Extraction
    from neardup.index.passages.index import PassageIndex
    from neardup.pages.reader_pool import ReaderPool
    from neardup.pipeline.index_wait import IndexWait
    from neardup.query.compare import Comparer


@dataclass(frozen=True, slots=True)
class App:
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
    from neardup.pipeline.index_wait import IndexWait
    from neardup.pipeline.passage_sync import open_passages
    from neardup.telemetry.metrics import create_series

    connect(config.ledger.path).close()
    with closing(Ledger(config.ledger.path)) as ledger, closing(Ledger(config.ledger.path, read)) as reader:
        await ledger.do(languages.register, config.registry)
        create_series(config.registry)
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
    read(config.ledger.path).close()
    with closing(Ledger(config.ledger.path)) as ledger:
        yield ledger


async def open_index(config: Config) -> Index:
    """Open the index that [index] configures."""
    bandings = config.detection.bandings(config.registry)
    return await backends.open_index(config.index, config.ledger.path, bandings, config.registry.codes)


def open_readers(config: Config) -> "ReaderPool":
    """A pool of reader processes, which start when first needed.  Raises Fatal for a store that does not exist."""
    from neardup.core.text.extraction import Extraction
    from neardup.pages.reader_pool import ReaderPool
    from neardup.pages.store import WorkPages, open_store

    open_store(config.content)
    submitted, works = files.submitted_folder(config.ledger.path), None
    if (reference := config.reference) is not None:
        open_store(reference.content)
        works = WorkPages(reference.content, Extraction(reference.extract.body, reference.extract.strip))
    return ReaderPool(config.content, extraction(config), config.run.workers, submitted, works)


def extraction(config: Config) -> "Extraction":
    from neardup.core.text.extraction import Extraction

    return Extraction(config.extract.body, config.extract.strip)


def comparer(config: Config | None) -> "Comparer":
    """The parts of `compare`; without a configuration it compares files only, each with its whole text."""
    from neardup.core.text.extraction import Extraction
    from neardup.query.compare import Comparer

    if config is None:
        return Comparer(None, None, Extraction(), Detection())
    return Comparer(config.ledger.path, lambda: open_readers(config), extraction(config), config.detection)
