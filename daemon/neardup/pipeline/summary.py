"""What a job counts, and reports: its progress while it works, its summary at its end.

`Counts` are those of a run over a listing, with its script health: by language, what its pages and texts are like on
average.  `ledger.script_health` compares the means with those of earlier runs, since a change of a template or an
encoding upstream shows in them at once.

A job keeps one `Progress` up to date and gives it to a `Watch`.  Whatever may take more than two seconds shows what it
does: on a terminal as a bar (neardup.cli.console), otherwise as a log line every 30 seconds.  `RunSummary` and
`SweepSummary` are what the ledger and the command's output have in the end.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import asdict

from neardup.core.columns import Outcomes
from neardup.ledger import Ledger, script_health
from neardup.ledger.script_health import Measure, Reading
from neardup.records import DeadLettered, Kind, Language, MarkReason, Skip, Skipped
from neardup.telemetry.log import log, log_meanwhile
from neardup.telemetry.metrics import CAPPED

Phase = Literal[
    "starting",
    "bringing the index up to date",
    "reading passages again",
    "reading",
    "importing",
    "building the index",
    "comparing",
    "comparing passages",
    "verifying",
    "looking up canaries",
    "finishing",
]
Sums = npt.NDArray[np.float64]
TEXT_MEASURES = (
    Measure.TOKENS,
    Measure.SIGNS,
    Measure.REPLACED,
    Measure.HIDDEN,
    Measure.OTHER_SCRIPT,
    Measure.SHINGLES,
)
# Skipped for these reasons, a page was read and has no story.
NO_STORY = {Skip.EMPTY, Skip.NOT_TEXT, Skip.NO_BODY, Skip.TOO_SHORT, Skip.OVER_BUDGET}
HARMLESS = {Skip.UNCHANGED, Skip.SUPERSEDED, Skip.FORGOTTEN}  # skipped for these reasons, a page may be readable


class ScriptHealth:
    """Adds up what the new texts of a run are like, by language."""

    def __init__(self) -> None:
        self._stories = Counter[Language]()
        self._without_story = Counter[Language]()
        # The sums of the measures, and those of their squares.
        self._sums: defaultdict[Language, Sums] = defaultdict(lambda: np.zeros((2, len(TEXT_MEASURES))))

    def add(self, outcomes: Outcomes) -> None:
        listed, pages = outcomes.made.stories, outcomes.made.pages
        languages = np.array(listed.languages)
        other_script = [any(mark.reason is MarkReason.MISLABELLED for mark in marks) for marks in pages.marks]
        values = np.column_stack((pages.headers["measures"], other_script, pages.headers["shingles"]))
        for language in set(listed.languages):
            own = values[pages.measured & (languages == language)]
            self._stories[language] += len(own)
            self._sums[language] += own.sum(axis=0), np.square(own).sum(axis=0)
        self._without_story.update(
            outcome.story.language
            for outcome in outcomes.others
            if isinstance(outcome, Skipped) and outcome.reason in NO_STORY
        )

    def compute_readings(self) -> dict[Language, dict[Measure, Reading]]:
        """By language, each measure of the stories so far."""
        languages = sorted(language for language, n in (self._stories + self._without_story).items() if n)
        return {language: self._measure(language) for language in languages}

    def _measure(self, language: Language) -> dict[Measure, Reading]:
        n, without = self._stories[language], self._without_story[language]
        sums, squares = self._sums[language].tolist()
        columns = zip(TEXT_MEASURES, sums, squares, strict=True) if n else ()
        found = {measure: Reading.of(n, total, square) for measure, total, square in columns}
        empty = Reading.of(n + without, without, without)  # of values 0 and 1, which are their own squares
        return found | {Measure.EMPTY: empty}


class IndexFaults(Struct):
    """What a run found when it compared the index with the ledger, and what it did.

    Of `sampled` stories `incomplete` lacked `missing` entries.  `restored` stories were written again, or the index
    was rebuilt, `rebuilds` times; `looked_up_again` stories had been looked up while the index may have been damaged.
    """

    sampled: int = 0
    incomplete: int = 0
    missing: int = 0
    restored: int = 0
    rebuilds: int = 0
    looked_up_again: int = 0


class Counts(Struct):
    """The counts of a run so far.

    `passed_over` counts the skipped stories that the listing's dates showed to be known, so that no page was asked for.
    `removed` counts the stories on record that a folder no longer holds; they are not among those listed.
    `examples` has the first story that could not be read for each reason, and `health` what the texts are like.
    """

    fingerprinted: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    dead_lettered: Counter[str] = field(default_factory=Counter)
    flagged: Counter[str] = field(default_factory=Counter)
    passed_over: int = 0
    removed: int = 0
    examples: dict[str, str] = field(default_factory=dict)
    health: ScriptHealth = field(default_factory=ScriptHealth)

    @property
    def listed(self) -> int:
        """The number of outcomes: each listed story has exactly one."""
        return self.fingerprinted + self.skipped.total() + self.dead_lettered.total()

    @property
    def attempted(self) -> int:
        """The number of listed rows that named a page to read, or should have."""
        return self.listed - self.passed_over

    @property
    def readable(self) -> int:
        """How many of those attempted could be read."""
        return self.attempted - sum(self.count_unread().values())

    def count_unread(self) -> dict[str, int]:
        """Reason -> the stories and rows that could not be read for it."""
        return {reason: n for reason, n in self.skipped.items() if reason not in HARMLESS} | dict(self.dead_lettered)

    def add(self, outcomes: Outcomes) -> None:
        self.health.add(outcomes)
        self.fingerprinted += len(outcomes.made)
        for outcome in outcomes.others:
            match outcome:
                case Skipped():
                    self.skipped[outcome.reason.value] += 1
                    self.passed_over += not outcome.was_asked
                case DeadLettered():
                    self.dead_lettered[outcome.reason.value] += 1

    def add_flags(self, new_flags: Iterable[tuple[tuple[Language, Kind], int]]) -> None:
        for (_, kind), n in new_flags:
            self.flagged[kind] += n

    def as_dict(self) -> dict[str, object]:
        return {
            "listed": self.listed,
            "fingerprinted": self.fingerprinted,
            "skipped": dict(sorted(self.skipped.items())),
            "dead_lettered": dict(sorted(self.dead_lettered.items())),
            "flagged": dict(sorted(self.flagged.items())),
            "removed": self.removed,
        }


class Progress(Struct):
    """The counts of a job so far, its phase, and its position in it.

    A position and a size are in bytes of the listing while `reading`, in stories while `reading passages again`,
    `importing`, `building the index`, `comparing` or `comparing passages`, and in pairs while `verifying`.  A size of 0
    is unknown.
    """

    counts: Counts = field(default_factory=Counts)
    position: int = 0
    size: int = 0
    phase: Phase = "starting"
    _began: float = field(default_factory=time.monotonic)  # the phase, with the two below
    _first_position: int = 0
    _listed_before: int = 0

    def enter(self, phase: Phase, size: int = 0, position: int = 0) -> None:
        """Begin a phase, or go on with it."""
        if phase != self.phase:
            self._began, self._first_position, self._listed_before = time.monotonic(), position, self.counts.listed
        self.phase, self.size, self.position = phase, size, position

    def resume_at(self, position: int) -> None:
        """Begin the present phase at a position that an earlier run has reached."""
        self.position = self._first_position = position

    def report(self) -> "Report":
        """What an operator asks of it now."""
        seconds, moved = time.monotonic() - self._began, self.position - self._first_position
        worked = self.counts.listed - self._listed_before if self.phase == "reading" else moved
        left = (self.size - self.position) * seconds / moved if self.size and moved > 0 else None
        return Report(
            self.phase,
            self.counts.listed,
            round(min(self.position / self.size, 1.0), 4) if self.size else None,
            round(worked / seconds, 1) if seconds else 0.0,
            None if left is None else max(round(left), 0),
        )


class Report(Struct, frozen=True):
    """A job's phase, the rows it has listed, and of the phase: the share that is `done`, the stories (or pairs, while
    verifying) a second, and how many seconds it still takes.  None is not known.
    """

    phase: str
    listed: int
    done: float | None
    per_second: float
    seconds_left: int | None


Watch = Callable[[Progress], None]


def ignore_progress(_: Progress) -> None:
    """Ignore the progress."""


def describe_counts(progress: Progress) -> str:
    """Format the counts that are not zero, such as "1,024 listed, 3 skipped, 17 flagged"."""
    counts = progress.counts
    numbers = (
        (counts.listed, "listed"),
        (counts.skipped.total(), "skipped"),
        (counts.dead_lettered.total(), "dead-lettered"),
    )
    parts = [f"{n:,} {word}" for n, word in numbers if n]
    return ", ".join([*parts, f"{counts.flagged.total():,} flagged"])


@contextmanager
def log_progress(command: str) -> Iterator[Watch]:
    """Log from time to time what a command does, also while nothing calls the `Watch` that this yields."""
    shown, context = Progress(), copy_context()

    def watch(progress: Progress) -> None:
        nonlocal shown, context
        shown, context = progress, copy_context()  # which has the id of the run

    def log_line() -> None:
        facts = {"command": command, "so_far": describe_counts(shown), **asdict(shown.report())}
        context.run(log.info, "progress", **facts)

    with log_meanwhile(log_line):
        yield watch


class Summary(Struct):
    """The summary of a run or a sweep; `status` is `done`, or `stopped` if a signal stopped it before its end.

    `started_at` is in milliseconds.  `warnings` maps each hook that failed to the reason.
    """

    command: str
    status: str = "stopped"
    started_at: int = 0
    seconds: float = 0.0
    warnings: dict[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        """The JSON object that the command prints last with `--json`."""
        return {**self.as_record(), "warnings": self.warnings}

    def as_record(self) -> dict[str, object]:
        """The counts that the ledger keeps for the run."""
        raise NotImplementedError


class RunSummary(Summary):
    """The summary of a run over a listing; `stages` are the results of `metrics.measure_latencies`.

    `unusual_texts` says which measures of the texts are outside the band of earlier runs; see `ledger.script_health`.
    """

    counts: Counts = field(default_factory=Counts)
    index_faults: IndexFaults = field(default_factory=IndexFaults)
    stages: dict[str, dict[str, float]] = field(default_factory=dict)
    unusual_texts: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, object]:
        rate = self.counts.listed / self.seconds if self.seconds else 0.0
        return {
            **self.counts.as_dict(),
            "seconds": round(self.seconds, 3),
            "stories_per_second": round(rate, 1),
            "warnings": self.warnings,
            "index": asdict(self.index_faults),
            "unusual_texts": self.unusual_texts,
        }

    def as_record(self) -> dict[str, object]:
        health = self.counts.health.compute_readings()
        facts = {"stages": self.stages, "index": asdict(self.index_faults), "health": health}
        return {**self.counts.as_dict(), "examples": self.counts.examples, **facts}


class SweepSummary(Summary):
    """The summary of a sweep over the stories of the ledger.

    `candidates` counts the nominated pairs and `left_out` those that max_matches excluded; a pair that its whole texts
    and its passages nominate counts twice.  `common_passages` counts the passages, by language, that nominated
    no candidates because more than common_passage stories have them.
    """

    stories: int = 0
    candidates: int = 0
    left_out: int = 0
    common_passages: int = 0
    flagged: Counter[str] = field(default_factory=Counter)

    def as_record(self) -> dict[str, object]:
        return {
            "stories": self.stories,
            "candidates": self.candidates,
            "left_out": self.left_out,
            "common_passages": self.common_passages,
            "flagged": dict(sorted(self.flagged.items())),
            "seconds": round(self.seconds, 3),
        }


def log_left_out(language: Language, left_out: int) -> None:
    """Log how many matches of a language max_matches left out, and count them in the metrics."""
    if left_out:
        CAPPED.labels(language).inc(left_out)
        log.warning("max_matches reached", language=language, left_out=left_out)


async def report_unusual_texts(ledger: Ledger) -> list[str]:
    """What is unusual about the texts of the last run, a line each; also logged."""
    found = await ledger.do(script_health.list_unusual_in_last_run)
    for unusual in found:
        log.warning(
            "the texts of a run are unusual",
            language=unusual.language,
            measure=unusual.measure,
            mean=unusual.mean,
            band=unusual.band,
        )
    return list(map(str, found))
