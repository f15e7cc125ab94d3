"""What people see on a terminal: progress, summaries, tables."""

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import stamina
import structlog
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from daemon import run
from daemon.summary import Summary

LOG_EVERY_SECONDS = 30.0
SHOWN_FLAGS = 20

out = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
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
                    counts=f"{in_short(progress)}, {speed:,.0f}/s",
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
    parts = [f"{counts.listed:,} listed"]
    for n, word in ((counts.skipped.total(), "skipped"), (counts.dead_lettered.total(), "dead-lettered")):
        if n:
            parts.append(f"{n:,} {word}")
    return ", ".join([*parts, f"{counts.flagged.total():,} flagged"])


def show_summary(summary: Summary) -> None:
    """The figures of a run, a line each."""
    facts = summary.as_dict()
    table = Table(box=None, show_header=False, padding=(0, 2))
    rows = {name: facts[name] for name in ("listed", "fingerprinted")}
    for name in ("skipped", "dead_lettered", "flagged"):
        counter = getattr(summary.counts, name)
        why = f"  ({', '.join(f'{reason} {n:,}' for reason, n in sorted(counter.items()))})" if counter else ""
        rows[name.replace("_", "-")] = f"{counter.total():,}{why}"
    rows["time"] = f"{facts['seconds']} s, {facts['stories_per_second']} stories/s"
    for name, value in rows.items():
        table.add_row(name, str(value))
    out.print(
        f"\n[bold]{summary.command}[/] {'is done' if summary.status == 'done' else 'stopped; run it again to go on'}"
    )
    out.print(table)


def show_flags(records: list[dict[str, Any]], total: int) -> None:
    """The pairs that a run flagged, worst first."""
    if not records:
        out.print("\nNo new flags.")
        return
    table = Table(title=f"New flags ({total:,})", title_justify="left", header_style="bold", expand=False)
    for column in ("kind", "bits", "language", "story", "matches the earlier", "same author"):
        table.add_column(column, overflow="fold")
    for pair in records[:SHOWN_FLAGS]:
        table.add_row(
            pair["kind"],
            str(pair["hamming"]),
            pair["language"],
            Text(f"{pair['story_id']} {pair['story_title'] or ''}"),
            Text(f"{pair['matched_id']} {pair['matched_title'] or ''}"),
            {True: "yes", False: "no", None: ""}[pair["same_author"]],
        )
    out.print()
    out.print(table)
    if total > SHOWN_FLAGS:
        out.print(f"and {total - SHOWN_FLAGS:,} more")


def show_matches(matches: list[dict[str, Any]]) -> None:
    """What a checked text would be flagged against."""
    if not matches:
        out.print("No match.")
        return
    table = Table(header_style="bold")
    for column in ("kind", "bits", "story", "title", "author"):
        table.add_column(column, overflow="fold")
    for match in matches:
        table.add_row(
            *(
                Text(str(match[key] if match[key] is not None else ""))
                for key in ("kind", "hamming", "story_id", "title", "author_id")
            )
        )
    out.print(table)


def show_status(facts: dict[str, Any]) -> None:
    """How neardup stands."""
    for name, lines in _status_sections(facts):
        out.print(f"[bold]{name}[/]")
        for line in lines:
            out.print(f"  {line}", markup=False)


def _status_sections(facts: dict[str, Any]) -> Iterable[tuple[str, list[str]]]:
    running = facts["running"]
    yield (
        "running",
        [f"{running['command']}, process {running.get('pid')}, since {running.get('since')}" if running else "nothing"],
    )
    yield "stories", [f"{language:10} {n:>12,}" for language, n in facts["stories"].items()] or ["none"]
    yield (
        "open flags",
        [
            f"{language:10} " + ", ".join(f"{kind} {n:,}" for kind, n in kinds.items())
            for language, kinds in facts["flags"].items()
        ]
        or ["none"],
    )
    yield "candidates pending", [str(facts["candidates_pending"])]
    yield "dead letters", [f"{reason:14} {n:,}" for reason, n in facts["dead_letters"].items()] or ["none"]
    yield "watermark", [str(facts["watermark"] or "none yet")]
    yield "index", [f"{name}: {value}" for name, value in facts["index"].items()]
    yield (
        "last runs",
        [
            f"{run['started_at']} {run['command']:9} {run['status']:8} listed {run['counts'].get('listed', 0):,}"
            + (f"  {run['error']}" if run["error"] else "")
            for run in facts["runs"]
        ]
        or ["none"],
    )
