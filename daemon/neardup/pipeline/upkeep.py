"""Looks up stories once more, and keeps the indexes in step with the ledger while no run does.

A run and a submission write at the same time, and neither sees what the other is about to write.  The second lookup, in
indexes that are in step with the ledger, finds these pairs, and the passages that have become common by a submission.
A run makes it at its end; `Upkeep` makes it in a process that stores submitted stories, while no other command has the
ledger's lock.

Stories that may have too many matches are looked up once more as well, if something has happened that changes which of
them are the best (`neardup.ledger.candidates`).
"""

import asyncio

import numpy as np
from msgspec import Struct

from neardup.config import Detection
from neardup.core.fingerprint.version import algorithm
from neardup.core.verify.text import Text
from neardup.errors import NeardupError, Transient
from neardup.index.protocol import Index
from neardup.ledger import (
    Ledger,
    candidates,
    lock,
    now_ms,
    outbox,
    permissions,
    removed_texts,
    serials,
    submissions,
)
from neardup.nomination.lookup import StoryProbe, nominate
from neardup.nomination.passages import PassageNomination, count_again
from neardup.pages.text_cache import Texts
from neardup.pipeline import submitted_pages
from neardup.pipeline.index_sync import KEPT_CHANGES, catch_up
from neardup.pipeline.passage_sync import PassageSync
from neardup.pipeline.returned_texts import find_returned
from neardup.pipeline.verifier import BATCH, BEFORE_ALL, Verifier, take_fitting
from neardup.telemetry.log import log

STORIES_PER_LOOKUP = 256
EVERY_SECONDS = 10.0


class Upkeep(Struct):
    """Brings the indexes in step with the ledger, and looks up submitted stories once more."""

    index: Index
    passages: PassageSync
    ledger: Ledger
    texts: Texts
    detection: Detection
    version: str

    async def run(self) -> None:
        """Do what is due every EVERY_SECONDS until cancelled; what fails is logged once, and tried again.

        That holds for any error: if this ended, submitted stories would stay unsettled, without a word.
        """
        failed: str | None = None
        while True:
            try:
                await self.do_due_work()
                failed = None
            except Exception as error:  # noqa: BLE001 - its message may quote a story
                why = str(error) if isinstance(error, NeardupError | OSError) else type(error).__name__
                if why != failed:
                    log.warning("submitted stories are not settled yet", why=why)
                failed = why
            await asyncio.sleep(EVERY_SECONDS)

    async def do_due_work(self) -> bool:
        """Do what is due now; returns False if nothing is, or another command is running, which does it."""
        await self.ledger.do(submissions.remove_expired, now_ms())
        await self.ledger.do(permissions.refresh, now_ms())
        await self.ledger.do(removed_texts.keep_for, self.detection.remember_removed_days, now_ms())
        if lock.read_holder(self.ledger.path) is not None or not await self._is_due():
            return False
        try:
            async with lock.lock_patiently(self.ledger.path, lock.SERVE):
                await self._settle()
        except Transient as error:
            if error.reason != "locked":
                raise
            return False
        return True

    async def _is_due(self) -> bool:
        for count in (submissions.count_unsettled, candidates.count_due_for_selection):
            if await self.ledger.do(count):
                return True
        return (await self.index.read_position()).applied != await self.ledger.do(outbox.read_last_seq)

    async def _settle(self) -> None:
        await catch_up(self.index, self.ledger, self.version)
        await self.passages.keep_up()
        verifier = Verifier(self.ledger, self.detection, algorithm(), self.texts, lambda *_: None)
        await settle(self.index, self.passages, self.ledger, self.detection)
        await count_again(self.passages, self.ledger, self.detection)
        await select_again(self.index, self.passages, self.ledger, self.detection, self.texts)
        await self.ledger.do(serials.refresh)
        await verifier.verify(take_fitting(await self.ledger.do(candidates.list_pending, BEFORE_ALL, BATCH)))
        await find_returned(self.ledger, self.passages, self.detection)
        await self.ledger.do(outbox.prune_changes, KEPT_CHANGES)
        await self.ledger.do(submitted_pages.remove_unused, self.ledger.path)


async def settle_all(index: Index, passages: PassageSync, ledger: Ledger, detection: Detection) -> None:
    while await settle(index, passages, ledger, detection):
        pass


async def settle(index: Index, passages: PassageSync, ledger: Ledger, detection: Detection) -> list[int]:
    """Look up the next unsettled stories, and record their candidates; returns their ids.

    Returns none once all are settled, or if the index has lost data: the next run repairs it.  Raises Transient if an
    index does not answer, PassagesDamaged.
    """
    unsettled = await ledger.do(submissions.list_unsettled, STORIES_PER_LOOKUP)
    if not unsettled:
        return []
    by_passages = PassageNomination(passages, ledger, detection)
    probes = [StoryProbe(story.story_id, story.banded, np.frombuffer(story.passages, np.uint32)) for story in unsettled]
    nominated = await nominate(index, by_passages, ledger, detection, probes)
    if nominated is None:
        return []
    await ledger.do(submissions.settle, unsettled, *nominated)
    return [story.story_id for story in unsettled]


async def select_again(index: Index, passages: PassageSync, ledger: Ledger, detection: Detection, texts: Texts) -> None:
    """Look up the crowded stories whose matches are to be selected again, and record these matches.

    A story whose text cannot be read, or that is looked up in an index that has lost data, waits for the next time.
    Raises Transient if an index does not answer, PassagesDamaged.
    """
    by_passages, number = PassageNomination(passages, ledger, detection), 0
    while due := await ledger.do(candidates.list_due_for_selection, number, STORIES_PER_LOOKUP):
        number = due[-1].number
        read = await texts.read(story.side for story in due)
        known = [(story, text) for story in due if isinstance(text := read[story.side.text_hash], Text)]
        probes = [StoryProbe(story.side.id, story.banded, text.passages) for story, text in known]
        nominated = await nominate(index, by_passages, ledger, detection, probes)
        if nominated is None:
            return
        await ledger.do(candidates.select_again, [story for story, _ in known], nominated[0])
