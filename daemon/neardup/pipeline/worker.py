"""The processing of one story: skip it if it is known to be unchanged, else read its page; one outcome."""

from collections.abc import Awaitable, Callable

import structlog

from neardup.core.page import PageFingerprinted, Unreadable
from neardup.errors import NeardupError
from neardup.pages.results import NotModified, PageResult, ReadFailed, ReadPage, crash_of
from neardup.records import (
    BadRow,
    Dead,
    DeadLettered,
    Fingerprinted,
    ListedRow,
    Outcome,
    Skip,
    Skipped,
    StoredVersion,
    Story,
)

log = structlog.get_logger()


class Worker:
    """Turns listed stories into outcomes.

    `known` loads what the ledger holds for a story id; `read` reads a story's page unless it still has the given ETag.
    """

    def __init__(self, known: Callable[[int], Awaitable[StoredVersion | None]], read: ReadPage) -> None:
        self._known = known
        self._read = read

    async def process(self, job: ListedRow) -> tuple[ListedRow, Outcome]:
        """The one outcome of a listed row.  Raises only errors that end the whole run, such as those of `known`."""
        if isinstance(job, BadRow):
            return job, DeadLettered(job, job.reason, job.error)
        known = await self._known(job.id)
        skipped = skipped_without_reading(job, known)
        if skipped is not None:
            return job, skipped
        if known is not None and known.language != job.language:
            known = None
        result = await self._read_twice(job, known.etag if known else None)
        return job, outcome_of(job, known, result)

    async def _read_twice(self, story: Story, etag: str | None) -> PageResult:
        """Read a page, and once more if the first attempt crashed."""
        result = await self._read_once(story, etag)
        if _crashed(result):
            log.warning("a story could not be processed; trying again", story=story.id)
            result = await self._read_once(story, etag)
        return result

    async def _read_once(self, story: Story, etag: str | None) -> PageResult:
        try:
            return await self._read(story, etag)
        except NeardupError:
            raise
        except Exception as error:
            log.exception("a story could not be processed", story=story.id)
            return crash_of(error)


def skipped_without_reading(story: Story, known: StoredVersion | None) -> Skipped | None:
    """The outcome of a story whose listed date shows that its page need not be read; None if it must be."""
    if known is None or known.updated_at is None or story.updated_at is None:
        return None
    if story.updated_at < known.updated_at:
        return Skipped(story, Skip.SUPERSEDED, was_asked=False)
    unchanged = story.updated_at == known.updated_at and story.language == known.language
    return Skipped(story, Skip.UNCHANGED, was_asked=False) if unchanged else None


def outcome_of(story: Story, known: StoredVersion | None, result: PageResult) -> Outcome:
    """The outcome of a story whose page was read; `known` is what the ledger holds for it in the same language."""
    match result:
        case PageFingerprinted(fingerprint, etag) if known is not None and fingerprint.text_hash == known.text_hash:
            return Skipped(story, Skip.UNCHANGED, etag)
        case PageFingerprinted(fingerprint, etag):
            return Fingerprinted(story, fingerprint, etag)
        case NotModified():
            return Skipped(story, Skip.UNCHANGED)
        case Unreadable(reason):
            return Skipped(story, reason)
        case ReadFailed(reason, error):
            return DeadLettered(story, reason, error)


def _crashed(result: PageResult) -> bool:
    return isinstance(result, ReadFailed) and result.reason is Dead.CRASHED
