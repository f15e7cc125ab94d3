"""Posts each verdict and each undo to `review.webhook`, in their order, after they are stored.

One that cannot be posted is a warning in the log; the verdict stays, and `neardup verdicts` has it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from neardup.errors import NeardupError
from neardup.ledger import verdicts
from neardup.moderation.desk.desk import Desk
from neardup.moderation.webhook import notify_verdict
from neardup.telemetry.log import log

CLOSING_SECONDS = 10  # for what is still to be posted when the desk closes


def announce(desk: Desk, decision: int, event: str) -> None:
    """Have the "verdict" or the "undo" of a decision posted, if there is a webhook."""
    if not desk.config.review.webhook:
        return
    try:
        desk.announcements.put_nowait((decision, event))
    except asyncio.QueueFull:
        log.warning("review.webhook is too slow: a verdict was not posted", decision=decision)


@asynccontextmanager
async def announcing(desk: Desk) -> AsyncIterator[None]:
    """Post what is announced meanwhile."""
    posting = asyncio.create_task(_post(desk), name="announcements")
    try:
        yield
        try:
            async with asyncio.timeout(CLOSING_SECONDS):
                await desk.announcements.join()
        except TimeoutError:
            log.warning("the desk closes before all verdicts are posted", left=desk.announcements.qsize() + 1)
    finally:
        posting.cancel()
        await asyncio.gather(posting, return_exceptions=True)


async def _post(desk: Desk) -> None:
    while True:
        decision, event = await desk.announcements.get()
        try:
            for one in await desk.ledger.read(verdicts.events_of_decision, decision):
                if one["event"] == event:
                    await notify_verdict(desk.config.review, one)
        except NeardupError as error:
            log.warning("a verdict was not posted", decision=decision, why=str(error))
        finally:
            desk.announcements.task_done()
