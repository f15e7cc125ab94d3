"""One story's life: known? -> fetch -> extract -> fingerprint -> outcome."""

from collections.abc import Awaitable, Callable

import structlog

from neardup.core.text.html import Unreadable
from neardup.errors import Fatal, Forbidden, Gone, NeardupError, TooLarge, Transient
from neardup.pages.quarantine import Quarantined
from neardup.pages.reader_process import Read
from neardup.records import BadRow, Dead, DeadLettered, Fingerprinted, Known, Listed, Outcome, Skip, Skipped, Story

log = structlog.get_logger()


class Worker:
    """Turns listed stories into outcomes.

    `known` asks the ledger for what it holds of a story id; `read` reads a story's page, but for one that
    still has an ETag.
    """

    def __init__(
        self,
        known: Callable[[int], Awaitable[Known | None]],
        read: Callable[[Story, str | None], Awaitable[Read | None]],
    ) -> None:
        self._known = known
        self._read = read

    async def process(self, job: Listed) -> tuple[Listed, Outcome]:
        """The one outcome of a listed row.  Raises nothing but what ends the whole run, as what `known` raises does."""
        if isinstance(job, BadRow):
            return job, DeadLettered(job, job.reason, job.error)
        known = await self._known(job.id)
        try:
            outcome = await self._tried(job, known)
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
        except Quarantined as error:
            outcome = DeadLettered(job, Dead.QUARANTINED, str(error))
        except Fatal:
            raise
        except Exception as error:
            log.exception("a story could not be processed", story=job.id)
            outcome = DeadLettered(job, Dead.CRASHED, f"{type(error).__name__}: {error}")
        return job, outcome

    async def _tried(self, story: Story, known: Known | None) -> Outcome:
        """The outcome at the second try, where the first crashed."""
        try:
            return await self._outcome(story, known)
        except (NeardupError, Unreadable):
            raise
        except Exception as error:  # noqa: BLE001 - told when it crashes again
            log.warning("a story could not be processed, once more", story=story.id, why=repr(error))
            return await self._outcome(story, known)

    async def _outcome(self, story: Story, known: Known | None) -> Outcome:
        if known is not None and known.updated_at is not None and story.updated_at is not None:
            if story.updated_at < known.updated_at:
                return Skipped(story, Skip.SUPERSEDED)
            if story.updated_at == known.updated_at and story.language == known.language:
                return Skipped(story, Skip.UNCHANGED)
        same_place = known is not None and known.language == story.language
        read = await self._read(story, known.etag if known and same_place else None)
        if read is None:
            return Skipped(story, Skip.UNCHANGED)
        if known is not None and same_place and read.fingerprint.text_hash == known.text_hash:
            return Skipped(story, Skip.UNCHANGED, read.etag)
        return Fingerprinted(story, read.fingerprint, read.etag)
