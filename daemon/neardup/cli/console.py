"""What a command writes to stderr: log lines, progress, and the error it ends with."""

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
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from neardup.errors import NeardupError
from neardup.pipeline.progress import Progress as RunProgress
from neardup.pipeline.progress import Watch

LOG_EVERY_SECONDS = 30.0
COMMON_KEYS = ("timestamp", "level", "run", "event")

err = Console(stderr=True, highlight=False)
log = structlog.get_logger()


def set_up_logging() -> None:
    """Log to stderr: lines on a terminal, coloured unless NO_COLOR is set; otherwise one JSON object a line.

    A line has `timestamp`, `level`, `event` and the fields of the event; `run`, the id of the run, if there is one; and
    `story`, the id of the story it is about.  A story that is processed without trouble is not logged.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _common_keys_first,
    ]
    rendered: list[structlog.typing.Processor] = (
        [_lines_for_a_terminal()]
        if sys.stderr.isatty()
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=False)]
    )
    stamina.instrumentation.set_on_retry_hooks([])  # neardup.retry counts and logs the retries itself
    structlog.configure(
        processors=[*shared, *rendered],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    library_handler = logging.StreamHandler(sys.stderr)
    library_handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendered],
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
        )
    )
    logging.basicConfig(level=logging.WARNING, handlers=[library_handler])


def _lines_for_a_terminal() -> structlog.dev.ConsoleRenderer:
    """See no-color.org: NO_COLOR counts if it is not empty."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    return structlog.dev.ConsoleRenderer()


def _common_keys_first(_: Any, __: str, line: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Put the keys that every line has first."""
    return {**{key: line[key] for key in COMMON_KEYS if key in line}, **line}


def print_error(error: NeardupError) -> None:
    """Print the error that ends a command: a JSON log line in systemd's journal, otherwise plain text."""
    if "JOURNAL_STREAM" in os.environ and not sys.stderr.isatty():
        log.error("failed", why=str(error), **({} if error.run is None else {"run": error.run}))
    else:
        click.echo(f"neardup: {error}", err=True)


@contextmanager
def show_progress(command: str) -> Iterator[Watch]:
    """Show a run's progress: a bar on a terminal, otherwise a log line every LOG_EVERY_SECONDS."""
    if err.is_terminal:
        with Progress(
            SpinnerColumn(),
            TextColumn(f"{command}: {{task.description}}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[counts]}"),
            console=err,
        ) as bar:
            yield _shown_on(bar)
    else:
        yield _logged(command)


def _shown_on(bar: Progress) -> Watch:
    """Show each phase as a task of its own; the rate counts from the first phase that is the run's own work."""
    task, phase, began = bar.add_task("starting", total=None, counts=""), "", 0.0

    def show(progress: RunProgress) -> None:
        nonlocal task, phase, began
        if progress.phase != phase:
            if not phase:
                began = time.monotonic()
            bar.remove_task(task)
            phase = progress.phase
            task = bar.add_task(phase, total=None, counts="")
        seconds = time.monotonic() - began
        speed = f", {progress.counts.listed / seconds:,.0f}/s" if progress.counts.listed and seconds else ""
        counts = counts_in_words(progress) + speed
        bar.update(task, completed=progress.position, total=progress.size or None, counts=counts)

    return show


def _logged(command: str) -> Watch:
    """Log the progress every LOG_EVERY_SECONDS."""
    last_logged = time.monotonic()

    def log_progress(progress: RunProgress) -> None:
        nonlocal last_logged
        if time.monotonic() - last_logged >= LOG_EVERY_SECONDS:
            last_logged = time.monotonic()
            log.info(
                "progress",
                command=command,
                phase=progress.phase,
                so_far=counts_in_words(progress),
                position=progress.position,
                size=progress.size,
            )

    return log_progress


@contextmanager
def show_count(command: str) -> Iterator[Callable[[int], None]]:
    """Show the progress of a command that only counts; call the function with each new count."""
    with show_progress(command) as watch:
        progress = RunProgress()

        def show(done: int) -> None:
            progress.counts.fingerprinted = done
            watch(progress)

        yield show


def counts_in_words(progress: RunProgress) -> str:
    """Format the counts that are not zero, such as "1,024 listed, 3 skipped, 17 flagged"."""
    counts = progress.counts
    numbers = (
        (counts.listed, "listed"),
        (counts.skipped.total(), "skipped"),
        (counts.dead_lettered.total(), "dead-lettered"),
    )
    parts = [f"{n:,} {word}" for n, word in numbers if n]
    return ", ".join([*parts, f"{counts.flagged.total():,} flagged"])
