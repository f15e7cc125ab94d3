"""What people see while a command is at work: log lines and progress, on stderr."""

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import stamina
import structlog
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from daemon import run

LOG_EVERY_SECONDS = 30.0

err = Console(stderr=True, highlight=False)
log = structlog.get_logger()


def set_up_logging() -> None:
    """Log lines to stderr: coloured on a terminal, key=value pairs otherwise."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s %(message)s")
    renderer: Any = (
        structlog.dev.ConsoleRenderer()
        if sys.stderr.isatty()
        else structlog.processors.LogfmtRenderer(key_order=("timestamp", "level", "event"))
    )
    stamina.instrumentation.set_on_retry_hooks([])  # retries are counted, and told, where they are made
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


@contextmanager
def watching(command: str) -> Iterator[run.Watch]:
    """A progress bar on a terminal, a log line now and then otherwise."""
    if err.is_terminal:
        with Progress(
            TextColumn(command),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[counts]}"),
            console=err,
        ) as bar:
            task = bar.add_task(command, total=None, counts="")

            def show(progress: run.Progress) -> None:
                speed = progress.counts.listed / (bar.tasks[task].elapsed or 1)
                bar.update(
                    task,
                    completed=progress.position,
                    total=progress.size or None,
                    counts=in_short(progress) + (f", {speed:,.0f}/s" if speed else ""),
                )

            yield show
            return
    last = time.monotonic()

    def say(progress: run.Progress) -> None:
        nonlocal last
        if time.monotonic() - last >= LOG_EVERY_SECONDS:
            last = time.monotonic()
            log.info(command, so_far=in_short(progress), position=progress.position, size=progress.size)

    yield say


@contextmanager
def counting(command: str) -> Iterator[Callable[[int], None]]:
    """The same for a command that only counts."""
    with watching(command) as watch:
        progress = run.Progress()

        def show(done: int) -> None:
            progress.counts.fingerprinted = done
            watch(progress)

        yield show


def in_short(progress: run.Progress) -> str:
    counts = progress.counts
    numbers = (
        (counts.listed, "listed"),
        (counts.skipped.total(), "skipped"),
        (counts.dead_lettered.total(), "dead-lettered"),
    )
    parts = [f"{n:,} {word}" for n, word in numbers if n]
    return ", ".join([*parts, f"{counts.flagged.total():,} flagged"])
