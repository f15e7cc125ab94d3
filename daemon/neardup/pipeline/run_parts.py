"""The parts that a run works with."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from neardup.config import Detection
from neardup.config import Run as RunSection
from neardup.index.passages.index import PassageIndex
from neardup.index.protocol import Index
from neardup.languages import Languages
from neardup.ledger import Ledger
from neardup.pages.reader_pool import OpenReaderPool
from neardup.pipeline.index_wait import IndexWait
from neardup.records import Checkpoint
from neardup.source import Source

CheckpointWriter = Callable[[Checkpoint], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that a run works with.

    `reader` is a second, read-only connection to the ledger; `section` is [run] of the configuration.  `open_source`
    opens the listing, and gives it the function with which a resumable listing records its first checkpoint.
    """

    ledger: Ledger
    reader: Ledger
    index: Index
    passages: PassageIndex
    index_wait: IndexWait
    version: str
    section: RunSection
    detection: Detection
    languages: Languages
    open_source: Callable[[CheckpointWriter], Awaitable[Source]]
    open_readers: OpenReaderPool
