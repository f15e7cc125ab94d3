"""The processing of one story: skip it if it is known to be unchanged, else read its page; one outcome."""

import sqlite3
from collections.abc import Awaitable, Callable, Iterable

from neardup.core.marks import skip_marks
from neardup.core.page import PageFingerprinted, Unreadable
from neardup.errors import NeardupError
from neardup.languages import Languages
from neardup.ledger import forgotten, stories
from neardup.log import log
from neardup.pages.results import NotModified, PageResult, ReadFailed, ReadPage, crash_of
from neardup.records import (
    BadRow,
    Dead,
    DeadLettered,
    Fingerprinted,
    ListedRow,
    Mark,
    MarkReason,
    Marks,
    Outcome,
    Skip,
    Skipped,
    StoredVersion,
    Story,
)


class Worker:
    """Turns listed stories into outcomes.

    `known` loads what the ledger holds for a story id, Skip.FORGOTTEN for a forgotten story; `read` reads a story's
    page unless it still has the given ETag; `languages` are those that stories may be labelled with.
    """

    def __init__(
        self,
        known: Callable[[int], Awaitable[StoredVersion | Skip | None]],
        read: ReadPage,
        languages: Languages,
    ) -> None:
        self._known = known
        self._read = read
        self._languages = languages

    async def process(self, job: ListedRow) -> tuple[ListedRow, Outcome]:
        """The one outcome of a listed row.  Raises only errors that end the whole run, such as those of `known`."""
        if isinstance(job, BadRow):
            return job, DeadLettered(job, job.reason, job.error)
        known = await self._known(job.id)
        if isinstance(known, Skip):
            return job, Skipped(job, known, was_asked=False)
        if known is not None and known.name not in {None, job.name}:
            error = f"the id {job.name or job.id!r} has the number of the story {known.name!r}"
            return job, DeadLettered(job, Dead.BAD_ID, error)
        skipped = skipped_without_reading(job, known)
        if skipped is not None:
            return job, skipped
        if known is not None and known.language != job.language:
            known = None
        result = await self._read_twice(job, known.etag if known else None)
        return job, outcome_of(job, known, result, self._languages)

    async def _read_twice(self, story: Story, etag: str | None) -> PageResult:
        """Read a page, and once more if the first attempt crashed."""
        result = await self._read_once(story, etag)
        if _crashed(result):
            log.warning("a story could not be processed; trying again", story=story.name or story.id)
            result = await self._read_once(story, etag)
        return result

    async def _read_once(self, story: Story, etag: str | None) -> PageResult:
        try:
            return await self._read(story, etag)
        except NeardupError:
            raise
        except Exception as error:
            log.exception("a story could not be processed", story=story.name or story.id)
            return crash_of(error)


def known_stories(db: sqlite3.Connection, ids: Iterable[int]) -> dict[int, StoredVersion | Skip]:
    """What the ledger holds for these ids, for `Worker`."""
    wanted = list(ids)
    return {**stories.known_many(db, wanted), **dict.fromkeys(forgotten.among(db, wanted), Skip.FORGOTTEN)}


def skipped_without_reading(story: Story, known: StoredVersion | None) -> Skipped | None:
    """The outcome of a story whose listed date shows that its page need not be read; None if it must be."""
    if known is None or known.updated_at is None or story.updated_at is None:
        return None
    if story.updated_at < known.updated_at:
        return Skipped(story, Skip.SUPERSEDED, was_asked=False)
    unchanged = story.updated_at == known.updated_at and story.language == known.language
    return Skipped(story, Skip.UNCHANGED, was_asked=False) if unchanged else None


def outcome_of(story: Story, known: StoredVersion | None, result: PageResult, languages: Languages) -> Outcome:
    """The outcome of a story whose page was read; `known` is what the ledger holds for it in the same language."""
    match result:
        case PageFingerprinted(fingerprint, etag) if known is not None and fingerprint.text_hash == known.text_hash:
            return Skipped(story, Skip.UNCHANGED, etag, marks=_marks(story, result, languages))
        case PageFingerprinted(fingerprint, etag):
            marks = _marks(story, result, languages)
            return Fingerprinted(story, fingerprint, etag, _page_title(story, result), marks, result.measures)
        case NotModified():
            return Skipped(story, Skip.UNCHANGED)
        case Unreadable(Skip.MISSING):
            return Skipped(story, Skip.MISSING)
        case Unreadable(reason, marks):
            return Skipped(story, reason, marks=marks + skip_marks(reason))
        case ReadFailed(reason, error):
            return DeadLettered(story, reason, error)


def _marks(story: Story, page: PageFingerprinted, languages: Languages) -> Marks:
    return page.marks + label_marks(story, page.script, languages)


def label_marks(story: Story, script: str | None, languages: Languages) -> Marks:
    """The mark of a story whose language is not written in `script`, that of most letters of its text."""
    if script is None or languages[story.language].script.upper().partition(" ")[0] == script:
        return ()
    return (Mark(MarkReason.MISLABELLED, script.title()),)


def _page_title(story: Story, page: PageFingerprinted) -> str | None:
    """What names a story without a listed title: the page's title; else its listed path, or else its first words."""
    if story.title is not None:
        return None
    return page.title or (page.opening if story.path is None else None)


def _crashed(result: PageResult) -> bool:
    return isinstance(result, ReadFailed) and result.reason is Dead.CRASHED
