"""Compares the index with the ledger, some stories and segments after each daily run, so that in time all are compared.

A run itself compares a sample of stories (see neardup.pipeline.index_check), which shows the loss of one bucket in ten
thousand.  The scrub finds the rest: a single member that was lost, a key that was deleted, a block of a segment that
the disk forgot.  It goes on where it ended the night before.

What a story lacks is written again, and the story is looked up: stories that were looked up meanwhile may have missed
it, and it finds them now, because a pair is found from either side.
"""

import asyncio
import time
from dataclasses import replace

from neardup.config import Detection
from neardup.errors import IndexDamaged
from neardup.index.passages.folder import Checked
from neardup.index.passages.index import PassageIndex
from neardup.index.protocol import Completeness, Index
from neardup.ledger import Ledger, outbox, versions
from neardup.ledger.candidates import nominate_all
from neardup.pipeline.index_check import matches_of
from neardup.pipeline.index_faults import IndexFaults
from neardup.pipeline.passage_damage import drop_damaged
from neardup.telemetry.log import log
from neardup.telemetry.metrics import INDEX_MISSING, INDEX_REPAIRS, SCRUBBED

SECONDS = 60.0  # for each of the indexes, at most
STORIES_PER_STEP = 256
STORIES = 50_000  # a night, at most


async def scrub(
    index: Index, passages: PassageIndex, ledger: Ledger, detection: Detection, faults: IndexFaults
) -> None:
    """Compare the next stories and segments, repair what is damaged, and count the stories in `faults`.

    Only the process with the ledger's lock may call it.  Raises Transient if the index does not answer; the next call
    goes on from the last step.
    """
    before = await ledger.do(outbox.read_scrubbing)
    if (await index.position()).applied == await ledger.do(outbox.last_seq):
        await _scrub_stories(index, ledger, detection)
    await _scrub_passages(passages, ledger)
    after = await ledger.do(outbox.read_scrubbing)
    faults.sampled += after.stories - before.stories
    faults.incomplete += after.incomplete - before.incomplete
    faults.missing += after.missing - before.missing
    faults.restored += after.incomplete - before.incomplete


async def _scrub_stories(index: Index, ledger: Ledger, detection: Detection) -> None:
    """Compare the next stories until time, stories of a night, or the round are over."""
    if not isinstance(index, Completeness):
        return
    clock = asyncio.get_running_loop().time
    end, state = clock() + SECONDS, await ledger.do(outbox.read_scrubbing)
    for _ in range(STORIES // STORIES_PER_STEP):
        stories = await ledger.do(versions.inserts_after, state.number, STORIES_PER_STEP)
        if not stories:
            await ledger.do(outbox.put_scrubbing, state.ended_round())
            return
        try:
            missing = await index.missing(stories)
        except IndexDamaged as error:  # the next run rebuilds it
            log.warning("the index is damaged; the next run rebuilds it", why=str(error))
            return
        incomplete = [story for story, n in zip(stories, missing, strict=True) if n]
        if incomplete:
            log.warning(
                "the index has lost a part of its data",
                incomplete=len(incomplete),
                missing=sum(missing),
                repair="restore",
            )
            await index.restore(incomplete)
            INDEX_MISSING.inc(sum(missing))
            INDEX_REPAIRS.labels("restored").inc()
            await ledger.do(nominate_all, await matches_of(index, ledger, detection, incomplete) or [])
        SCRUBBED.inc(len(stories))
        state = replace(
            state,
            number=stories[-1].number,
            stories=state.stories + len(stories),
            incomplete=state.incomplete + len(incomplete),
            missing=state.missing + sum(missing),
        )
        await ledger.do(outbox.put_scrubbing, state)
        if clock() > end:
            return


async def _scrub_passages(passages: PassageIndex, ledger: Ledger) -> None:
    """Compare the checksums of the next segments, one at least, until time or the round are over."""
    state = await ledger.do(outbox.read_scrubbing)
    checked = await asyncio.to_thread(_checked, passages, state.passages)
    for one in checked:
        if one.damage:
            await drop_damaged(passages, one.damage)
    damaged = sum(one.damage is not None for one in checked)
    last = checked[-1].last if checked else 0
    await ledger.do(outbox.put_scrubbing, replace(state, passages=last, damaged=state.damaged + damaged))


def _checked(passages: PassageIndex, after: int) -> list[Checked]:
    end, checked = time.monotonic() + SECONDS, list[Checked]()
    for one in passages.checked(after):
        checked.append(one)
        if time.monotonic() > end:
            break
    return checked
