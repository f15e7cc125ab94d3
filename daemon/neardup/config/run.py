"""[run]: the pipeline and its schedule."""

from datetime import time, timedelta
from typing import Annotated

from neardup.config.section import Before, Section, setting
from neardup.schedule import Daily, Schedule, duration, parse_schedule

Duration = Annotated[timedelta, Before(duration)]


class Run(Section):
    """[run]: the pipeline and its schedule."""

    workers: int = setting(
        default=64,
        gt=0,
        le=4096,
        description="Largest number of pages fetched at once. The actual number adapts to the store's latency and to "
        "its `503 SlowDown` answers.",
    )
    queue: int = setting(
        default=512, gt=0, le=100_000, description="Capacity of each queue between two stages of the pipeline."
    )
    batch: int = setting(default=512, gt=0, le=2000, description="Largest number of stories in one ledger transaction.")
    schedule: Annotated[Schedule, Before(parse_schedule)] = setting(
        default=Daily(at=time(2)),
        description='When `neardup run` starts a daily run: `"02:00"` (local time of the machine), '
        '`"02:00 Asia/Kolkata"` or `"every 1h"`. A missed run starts as soon as the daemon is back.',
    )
    overlap: Duration = setting(
        default=timedelta(hours=1),
        description="How far before the watermark a daily run starts to look, to find rows that arrived late.",
    )
    canaries: int = setting(
        default=20,
        ge=0,
        le=1000,
        description="Number of stories of each language that are copied and looked up after a daily run, to "
        "[measure the index](self-checks.md). 0 turns this off.",
    )
    shutdown_seconds: float = setting(
        default=20, gt=0, description="Seconds that a run may take to finish its queued work after SIGTERM."
    )
    breaker_share: float = setting(
        default=0.05,
        ge=0,
        le=1,
        description="A run ends when the store fails for more than this share of the pages.",
    )
    breaker_after: int = setting(
        default=1000,
        gt=0,
        description="Number of page reads before `breaker_share` applies. "
        "Reads further back than ten times this number count less and less.",
    )
