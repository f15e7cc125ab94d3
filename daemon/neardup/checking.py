"""Composes the checker of texts, and the parts of the HTTP service, which stores submitted stories as well."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from neardup.app import open_app, open_readers
from neardup.config import Config
from neardup.ledger import Ledger

if TYPE_CHECKING:
    from neardup.pages.reader_pool import ReaderPool
    from neardup.query.check import Checker
    from neardup.query.submissions import Submissions


@asynccontextmanager
async def open_checker(config: Config) -> "AsyncIterator[Checker]":
    """A checker of texts against the ledger and the index; its reader processes start when first needed.

    Raises as `open_app` does, and Fatal for a store that does not exist.
    """
    from neardup.pages.text_cache import Texts
    from neardup.query.check import Checker

    async with aclosing(open_readers(config)) as pool, open_app(config) as app:
        texts = Texts(pool.shingled)
        yield Checker(app.index, app.passages, app.reader, texts, config.detection, app.version)


@dataclass(frozen=True, slots=True)
class ServiceParts:
    """The open parts of the HTTP service; `reader` is a read-only connection to the ledger."""

    config: Config
    checker: "Checker"
    submissions: "Submissions"
    reader: Ledger
    pool: "ReaderPool"


@asynccontextmanager
async def open_submissions(config: Config) -> "AsyncIterator[Submissions]":
    """What checks, stores and forgets stories.  Raises as `open_service_parts` does."""
    async with open_service_parts(config) as parts:
        yield parts.submissions


@asynccontextmanager
async def open_service_parts(config: Config) -> AsyncIterator[ServiceParts]:
    """The parts of the HTTP service, ready at once; they keep the indexes in step while they are open.

    Raises as `open_checker` does, and Fatal for a ledger or an index with fingerprints of another version.
    """
    from neardup.pages.text_cache import Texts
    from neardup.pipeline.index_sync import refuse_mismatch
    from neardup.pipeline.upkeep import Upkeep
    from neardup.query.check import Checker
    from neardup.query.submissions import Submissions

    async with open_app(config) as app, aclosing(open_readers(config)) as pool:
        await refuse_mismatch(app.index, app.ledger, app.version)
        await pool.start()
        texts = Texts(pool.shingled)
        checker = Checker(app.index, app.passages, app.reader, texts, config.detection, app.version)
        upkeep = Upkeep(app.index, app.passages, app.ledger, texts, config.detection, app.version)
        keeping_up = asyncio.create_task(upkeep.run(), name="upkeep")
        try:
            max_bytes, languages = config.content.max_bytes, config.registry
            submissions = Submissions(checker, app.ledger, texts, config.detection, max_bytes, languages=languages)
            yield ServiceParts(config, checker, submissions, app.reader, pool)
        finally:
            keeping_up.cancel()
            await asyncio.gather(keeping_up, return_exceptions=True)
