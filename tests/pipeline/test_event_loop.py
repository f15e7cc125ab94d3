"""Law: a run makes no blocking call in the thread of its event loop, except those below the functions in ALLOWED.

Calls in reader processes and in the threads of ledger and index are not checked, because they have no event loop.
"""

import asyncio
from pathlib import Path

import pytest
from blockbuster import blockbuster_ctx
from neardup.app import open_app, run_once
from neardup.config import load
from neardup.pages.fork_server import end_server

from tests.support.command import embedded
from tests.support.samples import PLANTED

ALLOWED = {  # file and function that may make blocking calls, and why
    ("neardup/config/loading.py", "load"): "read once, before anything else",
    ("neardup/app.py", "open_app"): "opens and closes files before and after all runs",
    ("neardup/app.py", "open_readers"): "one stat per run",
    ("neardup/ledger/lock.py", "only_one"): "a small file, written once per run",
    ("neardup/pipeline/index_sync.py", "rebuild"): "creates and removes scratch files while nothing else runs",
    ("neardup/pipeline/quarantine.py", "__init__"): "a small file, read once per run",
    ("neardup/pipeline/quarantine.py", "close"): "a small file, removed once per run",
    ("neardup/pages/fork_server.py", "_spawn"): "a fork takes a millisecond",
    ("neardup/pages/watchdog.py", "read_resident_bytes"): "/proc is not a disk",
    ("neardup/source/rows.py", "__call__"): "reads the next buffer of a local file",
    ("neardup/source/rows.py", "head"): "reads the first buffer of a local file",
    ("neardup/telemetry/lazy_metrics.py", "register"): "loads the library of metrics, once a process",
    ("redis/utils.py", "get_lib_version"): "a stat for each new connection",
    ("neardup/pipeline/gauges.py", "refresh_gauges"): "one statvfs per minute",
}


async def backfill_and_daily(config: Path) -> None:
    async with open_app(load(config)) as app:
        backfill = await run_once(app, "backfill", asyncio.Event())
        daily = await run_once(app, "daily", asyncio.Event())
    assert sum(backfill.counts.flagged.values()) == len(PLANTED)
    assert daily.status == "done"


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_a_run_never_blocks_its_event_loop(kind: str, tmp_path: Path, redis_url: str) -> None:
    config = tmp_path / "config.toml"
    text = embedded(index="sqlite:" if kind == "sqlite" else redis_url)
    config.write_text(text.replace("neardup.db", str(tmp_path / "neardup.db")), encoding="utf-8")
    end_server()  # one that an earlier test started in another environment would be ended by the run
    with blockbuster_ctx() as blockbuster:
        for wrapped in blockbuster.functions.values():
            for file, function in ALLOWED:
                wrapped.can_block_in(file, function)
        asyncio.run(backfill_and_daily(config))
