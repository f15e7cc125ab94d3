"""The event loop of a command, and what signals do to it."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import uvloop

from neardup.garbage_collection import collect_seldom

T = TypeVar("T")


def run_async(work: Callable[[asyncio.Event], Coroutine[Any, Any, T]], *, drains: bool = False) -> T:
    """Run `work(stop)`; SIGTERM and SIGINT set `stop` for work that drains, and cancel any other."""

    async def with_signals() -> T:
        stop = asyncio.Event()
        working = asyncio.ensure_future(work(stop))
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set if drains else working.cancel)
        return await working

    collect_seldom()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(with_signals())
