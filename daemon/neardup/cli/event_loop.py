"""The event loop of a command, and how it handles SIGTERM and SIGINT."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import click

from neardup.garbage_collection import collect_seldom
from neardup.malloc import use_one_arena

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


def run_async(work: "Callable[[asyncio.Event], Coroutine[Any, Any, T]]", *, finishes_queued_work: bool = False) -> T:
    """Run `work(stop)`.  SIGTERM and SIGINT cancel it; if it `finishes_queued_work`, they only set `stop`.

    Raises click.Abort if it was cancelled.
    """
    import asyncio
    import signal

    import uvloop

    async def with_signals() -> T:
        stop = asyncio.Event()
        task = asyncio.ensure_future(work(stop))
        on_signal = stop.set if finishes_queued_work else task.cancel
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(signal_number, on_signal)
        return await task

    collect_seldom()
    use_one_arena()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            return runner.run(with_signals())
        except asyncio.CancelledError:
            raise click.Abort from None
