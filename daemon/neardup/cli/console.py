"""What people see while a command is at work: log lines and progress, on stderr."""

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
import stamina
import structlog
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from neardup.errors import NeardupError
from neardup.pipeline.progress import Progress as RunProgress
from neardup.pipeline.progress import Watch

LOG_EVERY_SECONDS = 30.0
FIRST = ("timestamp", "level", "run", "event")

err = Console(stderr=True, highlight=False)
log = structlog.get_logger()


def set_up_logging() -> None:
    """Log lines to stderr: coloured on a terminal, a JSON object each otherwise, as under systemd.

    A line has `timestamp`, `level` and `event`; `run`, the id of the run it was written in; `story`, the id of the
    story it is about; and what the event is told with.  There is none of a story that is well.
    """
    told: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _in_order,
    ]
    rendered: list[structlog.typing.Processor] = (
        [structlog.dev.ConsoleRenderer()]
        if sys.stderr.isatty()
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=False)]
    )
    stamina.instrumentation.set_on_retry_hooks([])  # retries are counted, and told, where they are made
    structlog.configure(
        processors=[*told, *rendered],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    of_libraries = logging.StreamHandler(sys.stderr)
    of_libraries.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendered],
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *told],
        )
    )
    logging.basicConfig(level=logging.WARNING, handlers=[of_libraries])


def _in_order(_: Any, __: str, line: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """What every line has comes first."""
    return {**{key: line[key] for key in FIRST if key in line}, **line}


def tell_why(error: NeardupError) -> None:
    """The line that a command ends with: in the journal an object like the others."""
    if "JOURNAL_STREAM" in os.environ and not sys.stderr.isatty():
        log.error("failed", why=str(error), **({} if error.run is None else {"run": error.run}))
    else:
        click.echo(f"neardup: {error}", err=True)


@contextmanager
def watching(command: str) -> Iterator[Watch]:
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

            def show(progress: RunProgress) -> None:
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

    def say(progress: RunProgress) -> None:
        nonlocal last
        if time.monotonic() - last >= LOG_EVERY_SECONDS:
            last = time.monotonic()
            log.info(command, so_far=in_short(progress), position=progress.position, size=progress.size)

    yield say


@contextmanager
def counting(command: str) -> Iterator[Callable[[int], None]]:
    """The same for a command that only counts."""
    with watching(command) as watch:
        progress = RunProgress()

        def show(done: int) -> None:
            progress.counts.fingerprinted = done
            watch(progress)

        yield show


def in_short(progress: RunProgress) -> str:
    counts = progress.counts
    numbers = (
        (counts.listed, "listed"),
        (counts.skipped.total(), "skipped"),
        (counts.dead_lettered.total(), "dead-lettered"),
    )
    parts = [f"{n:,} {word}" for n, word in numbers if n]
    return ", ".join([*parts, f"{counts.flagged.total():,} flagged"])
