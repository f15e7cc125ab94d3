"""[run]: the pipeline and its schedule."""

from datetime import time, timedelta
from typing import Annotated

from msgspec import Meta

from neardup.config.section import FromText, Section
from neardup.schedule import Daily, Schedule, duration, parse_schedule


class Run(Section, frozen=True, kw_only=True):
    """[run]: the pipeline and its schedule."""

    workers: Annotated[
        int,
        Meta(
            gt=0,
            le=4096,
            description="Largest number of pages fetched at once. The actual number adapts to the store's latency and "
            "to its `503 SlowDown` answers.",
        ),
    ] = 64
    queue: Annotated[
        int, Meta(gt=0, le=100_000, description="Capacity of each queue between two stages of the pipeline.")
    ] = 512
    batch: Annotated[int, Meta(gt=0, le=2000, description="Largest number of stories in one ledger transaction.")] = 512
    schedule: Annotated[
        Schedule,
        FromText(parse_schedule),
        Meta(
            description='When `neardup run` starts a daily run: `"02:00"` (local time of the machine), '
            '`"02:00 Asia/Kolkata"` or `"every 1h"`. A missed run starts as soon as the daemon is back.'
        ),
    ] = Daily(at=time(2))
    overlap: Annotated[
        timedelta,
        FromText(duration),
        Meta(description="How far before the watermark a daily run starts to look, to find rows that arrived late."),
    ] = timedelta(hours=1)
    canaries: Annotated[
        int,
        Meta(
            ge=0,
            le=1000,
            description="Number of stories of each language that are copied and looked up after a daily run, to "
            "[measure the index](self-checks.md). 0 turns this off.",
        ),
    ] = 20
    shutdown_seconds: Annotated[
        float, Meta(gt=0, description="Seconds that a run may take to finish its queued work after SIGTERM.")
    ] = 20
    breaker_share: Annotated[
        float, Meta(ge=0, le=1, description="A run ends when the store fails for more than this share of the pages.")
    ] = 0.05
    breaker_after: Annotated[
        int,
        Meta(
            gt=0,
            description="Number of page reads before `breaker_share` applies. "
            "Reads further back than ten times this number count less and less.",
        ),
    ] = 1000
