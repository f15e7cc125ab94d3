"""The command `run`."""

from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

from neardup.cli.base import command
from neardup.cli.event_loop import run_async

if TYPE_CHECKING:
    import asyncio

    from neardup.config import Config


@command
def run(config: "Config") -> None:
    """Run as a daemon until SIGTERM: daily runs on run.schedule, /metrics and /healthz.

    If serve.listen is set, it serves the check before publication as well.
    """
    from neardup.app import open_app
    from neardup.cli.runs import self_checks
    from neardup.ops.service import Service

    async def keep_running(stop: "asyncio.Event") -> None:
        async with AsyncExitStack() as stack:
            if config.serve.listen is not None:
                from neardup.serve.app import serving

                await stack.enter_async_context(serving(config, config.serve.listen, stop))
            opened = partial(open_app, config)
            await Service(
                config.ledger.path, config.metrics.listen, config.run.schedule, opened, stop, hooks=self_checks
            ).run()

    run_async(keep_running, finishes_queued_work=True)
