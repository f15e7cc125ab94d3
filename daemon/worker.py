"""One story's life: known? -> fetch -> extract -> fingerprint -> outcome."""

import time
from collections.abc import Awaitable, Callable

import structlog

from daemon.core.fingerprint import fingerprint_text
from daemon.core.html import Extraction, Unreadable, page_text
from daemon.core.text import tokens
from daemon.errors import Fatal, Gone, Transient
from daemon.fetch import Fetcher, Forbidden, TooLarge
from daemon.metrics import STAGE_SECONDS
from daemon.records import (
    BadRow,
    Dead,
    DeadLettered,
    Document,
    Fingerprint,
    Fingerprinted,
    Known,
    Listed,
    Outcome,
    Skip,
    Skipped,
    Story,
)

MIN_WORDS = 10  # shorter pages are headings and notices; all of them alike, none of them copied

_EXTRACT_SECONDS, _FINGERPRINT_SECONDS = map(STAGE_SECONDS.labels, ("extract", "fingerprint"))

log = structlog.get_logger()


class Worker:
    """Turns listed stories into outcomes.

    `known` asks the ledger for what it holds of a story id.
    """

    def __init__(
        self, known: Callable[[int], Awaitable[Known | None]], fetcher: Fetcher, extraction: Extraction
    ) -> None:
        self._known = known
        self._fetcher = fetcher
        self._extraction = extraction

    async def process(self, job: Listed) -> tuple[Listed, Outcome]:
        """The one outcome of a listed row.  Raises nothing but what ends the whole run."""
        if isinstance(job, BadRow):
            return job, DeadLettered(job, job.reason, job.error)
        try:
            outcome = await self._outcome(job)
        except Gone:
            outcome = Skipped(job, Skip.MISSING)
        except TooLarge:
            outcome = Skipped(job, Skip.TOO_LARGE)
        except Unreadable as unreadable:
            outcome = Skipped(job, unreadable.reason)
        except Forbidden as error:
            outcome = DeadLettered(job, Dead.FORBIDDEN, str(error))
        except Transient as error:
            outcome = DeadLettered(job, Dead.STORE_ERROR, str(error))
        except Fatal:
            raise
        except Exception as error:
            log.exception("a story could not be processed", story=job.id)
            outcome = DeadLettered(job, Dead.CRASHED, f"{type(error).__name__}: {error}")
        return job, outcome

    async def _outcome(self, story: Story) -> Outcome:
        known = await self._known(story.id)
        if known is not None and known.updated_at is not None and story.updated_at is not None:
            if story.updated_at < known.updated_at:
                return Skipped(story, Skip.SUPERSEDED)
            if story.updated_at == known.updated_at and story.language == known.language:
                return Skipped(story, Skip.UNCHANGED)
        same_place = known is not None and known.language == story.language
        read = await self._fetcher.read(story, self._read, known.etag if known and same_place else None)
        if read is None:
            return Skipped(story, Skip.UNCHANGED)
        made, etag = read
        if known is not None and same_place and made.text_hash == known.text_hash:
            return Skipped(story, Skip.UNCHANGED, etag)
        return Fingerprinted(story, made, etag)

    def _read(self, document: Document) -> tuple[Fingerprint, str | None]:
        return read_page(document, self._extraction), document.etag


def read_page(document: Document, extraction: Extraction) -> Fingerprint:
    """A page -> the fingerprint of its story.  Raises Unreadable."""
    began = time.perf_counter()
    text = page_text(document.body, document.content_type, extraction)
    extracted = time.perf_counter()
    made = fingerprint_text(text)
    _EXTRACT_SECONDS.observe(extracted - began)
    _FINGERPRINT_SECONDS.observe(time.perf_counter() - extracted)
    if made is None or made.words < MIN_WORDS:
        raise Unreadable(Skip.EMPTY if made is None else Skip.TOO_SHORT)
    return made


def story_words(text: str) -> list[bytes]:
    """A story's text -> its words, normalised.  Raises Unreadable where they are too few for a fingerprint."""
    words = tokens(text)
    if len(words) < MIN_WORDS:
        raise Unreadable(Skip.TOO_SHORT if words else Skip.EMPTY)
    return words
