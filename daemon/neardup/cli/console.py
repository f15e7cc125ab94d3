"""What a command writes to stderr: log lines, progress, and the error it ends with."""

import logging
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from io import TextIOWrapper
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, TextIO

import click

from neardup.errors import NeardupError
from neardup.telemetry.log import load_structlog, log, log_phase, run_beside, set_up_log

if TYPE_CHECKING:
    from rich.progress import Progress
    from structlog.typing import EventDict, Processor

    from neardup.pipeline.summary import Progress as RunProgress
    from neardup.pipeline.summary import Watch

PROGRAM = "neardup"
SILENT_SECONDS = 2.0  # that a command may take without showing anything on a terminal
COMMON_KEYS = ("timestamp", "level", "run", "event")


def set_up_logging() -> None:
    """Log to stderr: lines on a terminal, coloured unless NO_COLOR is set; otherwise one JSON object a line.

    A line has `timestamp`, `level`, `event` and the fields of the event; `run`, the id of the run, if there is one; and
    `story`, the id of the story it is about.  A story that is processed without trouble is not logged.
    """
    stderr = sys.stderr  # as it is now: a progress bar puts another one in its place, which breaks long lines
    set_up_log(lambda: _configure(stderr))
    logging.basicConfig(level=logging.WARNING, handlers=[_LinesOfLibraries(sys.stderr)])


def escape_unprintable() -> None:
    """Print a path that is not UTF-8 with escapes, as stderr does: work that is done must not end in an error."""
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def name_program() -> str:
    """How the shell calls this program: by its name if that is on the PATH, or else as it was called now."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m {PROGRAM}"
    found = shutil.which(PROGRAM)
    return PROGRAM if found and called.exists() and called.samefile(found) else shlex.quote(str(called))


class _LinesOfLibraries(logging.StreamHandler[TextIO]):
    """Writes what libraries log as the program's own lines."""

    def format(self, record: logging.LogRecord) -> str:
        structlog = load_structlog()
        if self.formatter is None:
            self.formatter = structlog.stdlib.ProcessorFormatter(
                processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_list_renderers()],
                foreign_pre_chain=[structlog.stdlib.add_logger_name, *_list_key_processors()],
            )
        return super().format(record)


def _configure(stderr: TextIO) -> None:
    structlog = load_structlog()
    structlog.configure(
        processors=[*_list_key_processors(), *_list_renderers()],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(stderr),
    )


def _list_key_processors() -> "list[Processor]":
    """What adds the keys that every line has."""
    structlog = load_structlog()
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _put_common_keys_first,
    ]


def _list_renderers() -> "list[Processor]":
    """What makes text of a line.  See no-color.org: NO_COLOR counts if it is not empty."""
    structlog = load_structlog()
    if not sys.stderr.isatty():
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=False)]
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return [structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)]
    return [structlog.dev.ConsoleRenderer()]


def _put_common_keys_first(_: Any, __: str, line: "EventDict") -> "EventDict":
    """Put the keys that every line has first."""
    return {**{key: line[key] for key in COMMON_KEYS if key in line}, **line}


def print_error(error: NeardupError) -> None:
    """Print the error that ends a command: a JSON log line in systemd's journal, otherwise plain text."""
    if "JOURNAL_STREAM" in os.environ and not sys.stderr.isatty():
        log.error("failed", why=str(error), **({} if error.run is None else {"run": error.run}))
    else:
        click.echo(f"neardup: {error}", err=True)


def show_progress(command: str) -> "AbstractContextManager[Watch]":
    """Show what a command does: a bar on a terminal, otherwise a log line every 30 seconds."""
    from neardup.pipeline.summary import log_progress

    return _show_progress_bar(command) if sys.stderr.isatty() else log_progress(command)


@contextmanager
def _show_progress_bar(command: str) -> "Iterator[Watch]":
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

    with Progress(
        SpinnerColumn(),
        TextColumn(f"{command}: {{task.description}}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[counts]}"),
        console=Console(stderr=True, highlight=False),
    ) as bar:
        yield _show_on(bar)


def _show_on(bar: "Progress") -> "Watch":
    """Show each phase as a task of its own."""
    from neardup.pipeline.summary import describe_counts

    task, phase = bar.add_task("starting", total=None, counts=""), ""

    def show(progress: "RunProgress") -> None:
        nonlocal task, phase
        if progress.phase != phase:
            bar.remove_task(task)
            phase = progress.phase
            task = bar.add_task(phase, total=None, counts="")
        speed = progress.report().per_second
        counts = describe_counts(progress) + (f", {speed:,.0f}/s" if speed else "")
        bar.update(task, completed=progress.position, total=progress.size or None, counts=counts)

    return show


@contextmanager
def show_count(command: str) -> Iterator[Callable[[int], None]]:
    """Show the progress of a command that only counts; call the function with each new count."""
    from neardup.pipeline.summary import Progress as RunProgress

    with show_progress(command) as watch:
        progress = RunProgress()

        def show(done: int) -> None:
            progress.counts.fingerprinted = done
            watch(progress)

        yield show


def show_waiting(command: str) -> AbstractContextManager[None]:
    """Show that a command is at work, and for how long, which has no count to show; nothing may be printed meanwhile.

    It is shown on a terminal once SILENT_SECONDS have passed, otherwise as log lines.
    """
    if not sys.stderr.isatty():
        return log_phase(command, "working")

    def wait(ended: Event) -> None:
        if ended.wait(SILENT_SECONDS):
            return
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        shown = SpinnerColumn(), TextColumn(f"{command}: working"), TimeElapsedColumn()
        with Progress(*shown, console=Console(stderr=True, highlight=False), transient=True) as bar:
            bar.add_task("", total=None)
            bar.tasks[0].start_time = bar.get_time() - SILENT_SECONDS
            ended.wait()

    return run_beside(wait)
