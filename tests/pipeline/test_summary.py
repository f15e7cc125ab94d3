"""A change of a template, an encoding or a label upstream is named by the first run that has it; other runs are silent.

The pages of a night are drawn from windows of the sample stories, in ten languages, at the size of the smallest one's
day.

Laws of progress: its rate and its time left are those of the phase; whoever looks meanwhile reads a whole record.
"""

import json
import random
import re
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from functools import cache
from pathlib import Path
from threading import Event
from typing import Any, cast
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict, replace
from neardup.core.columns import Outcomes
from neardup.core.languages import SHIPPED
from neardup.core.page import Page
from neardup.core.text.extraction import Extraction
from neardup.ledger import Ledger, connect, lock, runs, script_health
from neardup.ledger.script_health import MIN_STORIES, RUNS, Measure
from neardup.pages.results import make_results
from neardup.pipeline import summary
from neardup.pipeline.summary import TEXT_MEASURES, Counts, Progress, ScriptHealth, log_progress
from neardup.pipeline.worker import make_outcomes
from neardup.records import Fingerprinted, Language, Mark, MarkReason, Outcome, Skip, Skipped, Story, TextMeasures
from neardup.telemetry import log as log_module

from tests.support.builders import fingerprint_of, fingerprint_page, ledger_in_memory
from tests.support.jobs import run_job
from tests.support.languages import ENGLISH, HINDI, MARATHI, SAMPLED, TAMIL
from tests.support.sample_texts import STORIES
from tests.support.sampling import count_examples

WHOLE = Extraction()
PAGES = 40  # of a language, of which every night draws STORIES_A_NIGHT
STORIES_A_NIGHT = 150
EARLIER = 6
QUOTES = str.maketrans("'\"", "\ufffd\ufffd")


def shown(text: str) -> bytes:
    return f"<article><p>{text}</p></article>".encode()


def wrapped(text: str) -> bytes:
    """The template puts all but the teaser into an element that is shown on demand."""
    words = text.split()
    teaser, rest = " ".join(words[:40]), " ".join(words[40:])
    return f'<article><p>{teaser}</p><div style="display: none"><p>{rest}</p></div></article>'.encode()


def of_one_byte(text: str) -> bytes:
    """One byte a character, as ISCII and the fonts before Unicode have it."""
    page = f"<article><p>{text}</p></article>"
    return bytes(ord(c) if ord(c) < 0x80 else 0x80 | ord(c) & 0x7F for c in page)


def without_quotes(text: str) -> bytes:
    """English that was decoded as ASCII: its typographic quotes are lost."""
    return shown(text.translate(QUOTES))


def without_marks(text: str) -> bytes:
    """`\\w` of `re` does not match combining marks, so a careless clean-up deletes them."""
    return shown(re.sub(r"[^\w\s]", "", text))


@cache
def texts(language: Language) -> list[str]:
    """Windows of the sample stories of a language."""
    words = " ".join(STORIES[language]).split()
    choose = random.Random(language)
    starts = [choose.randrange(len(words)) for _ in range(PAGES)]
    return [" ".join((words * 2)[at : at + int(choose.lognormvariate(5.5, 0.6))]) for at in starts]


@cache
def outcomes(language: Language, write: Callable[[str], bytes], label: Language | None = None) -> list[Outcome]:
    """The outcomes of pages in a language, labelled with this one or another."""
    story = Story(1, label or language)
    pages = [(story, fingerprint_page(Page(write(text)), WHOLE)) for text in texts(language)]
    return make_outcomes(make_results(pages), {}, SHIPPED).objects()


def record(db: sqlite3.Connection, outcomes: Iterable[Outcome]) -> None:
    """Record a daily run with these outcomes."""
    health = ScriptHealth()
    health.add(Outcomes.of(outcomes))
    runs.finish(db, runs.begin(db, "daily"), "done", counts={"health": health.compute_readings()})


def night(choose: random.Random, *kinds: list[Outcome]) -> list[Outcome]:
    return [choose.choice(choose.choice(kinds)) for _ in range(STORIES_A_NIGHT)]


def named(language: Language, changed: list[Outcome]) -> set[Measure]:
    """What the first run names of which every other story is changed."""
    usual, choose = outcomes(language, shown), random.Random(1)
    with closing(ledger_in_memory()) as db:
        for _ in range(EARLIER):
            record(db, night(choose, usual))
        assert script_health.list_unusual(db) == []
        record(db, night(choose, usual, changed))
        return {health.measure for health in script_health.list_unusual_in_last_run(db) if health.language == language}


@pytest.mark.parametrize("language", SAMPLED)
def test_a_template_that_hides_the_text_is_named(language: Language) -> None:
    assert Measure.HIDDEN in named(language, outcomes(language, wrapped))


@pytest.mark.parametrize("language", SAMPLED)
def test_a_feed_in_a_legacy_encoding_is_named(language: Language) -> None:
    found = named(language, outcomes(language, without_quotes if language == ENGLISH else of_one_byte))
    assert found >= ({Measure.REPLACED} if language == ENGLISH else {Measure.OTHER_SCRIPT, Measure.SIGNS}), found


@pytest.mark.parametrize("language", [language for language in SAMPLED if language != ENGLISH])
def test_the_loss_of_marks_is_named(language: Language) -> None:
    assert Measure.SIGNS in named(language, outcomes(language, without_marks))


SWAPPED = [*zip(SAMPLED, [*SAMPLED[1:], SAMPLED[0]], strict=True), (HINDI, MARATHI), (MARATHI, HINDI)]


@pytest.mark.parametrize(("language", "other"), SWAPPED)
def test_a_swapped_label_is_named(language: Language, other: Language) -> None:
    is_one_script = SHIPPED[language].script == SHIPPED[other].script
    found = named(language, outcomes(other, shown, language))
    assert (Measure.TOKENS if is_one_script else Measure.OTHER_SCRIPT) in found, found


def test_thirty_usual_nights_are_silent() -> None:
    choose = random.Random(2)
    with closing(ledger_in_memory()) as db:
        for _ in range(30):
            record(db, [health for language in SAMPLED for health in night(choose, outcomes(language, shown))])
            assert [str(health) for health in script_health.list_unusual(db)] == []
        assert {health.band is None for health in script_health.list_latest(db)} == {False}


def test_a_run_with_few_stories_neither_alarms_nor_counts() -> None:
    usual, changed = outcomes(TAMIL, shown), outcomes(TAMIL, wrapped)
    with closing(ledger_in_memory()) as db:
        for _ in range(EARLIER):
            record(db, night(random.Random(1), usual))
        before = script_health.list_latest(db)
        record(db, changed[:30] * 3)
        assert len(changed[:30] * 3) < MIN_STORIES and script_health.list_latest(db) == before


def test_a_change_that_stays_is_usual_after_a_week() -> None:
    usual, changed, nights = outcomes(TAMIL, shown), outcomes(TAMIL, wrapped), 0
    with closing(ledger_in_memory()) as db:
        for _ in range(RUNS):
            record(db, night(random.Random(1), usual))
        record(db, night(random.Random(1), changed))
        while script_health.list_unusual(db):
            record(db, night(random.Random(1), changed))
            nights += 1
    assert RUNS / 2 <= nights <= RUNS / 2 + 1


def test_only_listings_of_the_source_are_compared() -> None:
    with closing(ledger_in_memory()) as db:
        for command, status in (("retry", "done"), ("scan", "done"), ("daily", "failed")):
            runs.finish(db, runs.begin(db, command), status, counts={"health": {TAMIL: {"signs": [1000, 0.3, 0.01]}}})
        assert script_health.list_latest(db) == []
        runs.finish(db, runs.begin(db, "daily"), "done", counts={"health": {TAMIL: {"signs": [1000, 0.3, 0.01]}}})
        assert [(health.language, health.measure) for health in script_health.list_latest(db)] == [
            (TAMIL, Measure.SIGNS)
        ]


VALUES = st.tuples(*[st.floats(0, 1)] * 4, st.booleans(), st.integers(1, 5000))


@settings(max_examples=count_examples(20))
@given(st.lists(VALUES, min_size=1, max_size=20), st.integers(1, 500), st.integers(1, 500), st.integers(0, 50))
def test_a_reading_is_the_mean_and_its_error(
    values: list[tuple[float, ...]], repeats: int, block: int, empty: int
) -> None:
    health, made, rows = ScriptHealth(), list[Fingerprinted](), [values[n % len(values)] for n in range(repeats)]
    for *measures, other_script, shingles in rows:
        marks = (Mark(MarkReason.MISLABELLED, "Latin"),) if other_script else ()
        of_text = replace(fingerprint_of(bytes(16)), shingles=int(shingles))
        taken = cast("TextMeasures", measures)
        made.append(Fingerprinted(Story(1, TAMIL), of_text, None, marks=marks, measures=taken))
    for at in range(0, len(made), block):
        health.add(Outcomes.of(made[at : at + block]))
    reasons = [Skip.EMPTY, Skip.UNCHANGED, Skip.MISSING] * empty
    health.add(Outcomes.of(Skipped(Story(1, TAMIL), reason) for reason in reasons))
    found = health.compute_readings()[TAMIL]
    for measure, column in zip(TEXT_MEASURES, np.array(rows, float).T, strict=True):
        expected = column.mean(), column.std() / len(rows) ** 0.5
        assert found[measure][1:] == pytest.approx(expected, rel=1e-3, abs=1e-4), measure
    assert found[Measure.EMPTY].mean == pytest.approx(empty / (len(rows) + empty), abs=1e-4)


class Clock:
    """Stands for the module time."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@given(st.integers(1, 1000), st.integers(0, 10**6), st.integers(1, 10**6), st.integers(0, 10**6))
def test_the_time_left_is_that_of_what_is_left_at_the_rate_of_the_phase(
    seconds: int, first: int, moved: int, left: int
) -> None:
    clock = Clock()
    with patch.object(summary, "time", clock):
        progress = Progress()
        clock.now += 1000  # of an earlier phase
        progress.enter("comparing", first + moved + left, first)
        clock.now += seconds
        progress.enter("comparing", first + moved + left, first + moved)
        report = progress.report()
    assert report.seconds_left == round(left * seconds / moved)
    assert report.per_second == round(moved / seconds, 1)
    assert report.done == round((first + moved) / (first + moved + left), 4)


def test_a_resumed_listing_has_the_rate_of_its_own_rows() -> None:
    clock = Clock()
    with patch.object(summary, "time", clock):
        progress = Progress(Counts())
        progress.enter("reading", 1000)
        progress.resume_at(800)
        clock.now += 10
        progress.position, progress.counts.fingerprinted = 900, 50
        report = progress.report()
    assert (report.per_second, report.seconds_left, report.done) == (5.0, 10, 0.9)


async def test_the_holder_of_the_ledger_says_how_far_it_is_while_it_works(tmp_path: Path) -> None:
    seen: list[dict[str, Any] | None] = []

    async def work() -> bool:
        seen.append(lock.read_holder(path))
        return True

    path = tmp_path / "l.db"
    connect(path).close()
    ledger = Ledger(path)
    await run_job(ledger, work)
    ledger.close()
    [holder] = seen
    assert holder is not None and holder["command"] == "daily"
    assert holder["progress"] == {**asdict(Progress().report()), "per_second": holder["progress"]["per_second"]}
    assert lock.read_holder(path) is None


def test_a_shorter_note_leaves_nothing_of_a_longer_one(tmp_path: Path) -> None:
    with lock.only_one(tmp_path / "l.db", "sweep") as note:
        for text in ("x" * 1000, "y"):
            note({"progress": text})
            holder = lock.read_holder(tmp_path / "l.db")
            assert holder is not None and holder["progress"] == text


def test_a_log_has_lines_of_a_command_that_says_nothing_itself() -> None:
    logged = Event()

    class Log:
        def info(self, event: str, **facts: object) -> None:
            lines.append(json.dumps({"event": event, **facts}))
            logged.set()

    lines: list[str] = []
    with (
        patch.object(log_module, "LOG_EVERY_SECONDS", 0.01),
        patch.object(summary, "log", Log()),
        log_progress("backfill") as watch,
    ):
        logged.wait()
        progress = Progress(Counts(fingerprinted=7))
        progress.enter("verifying")
        watch(progress)
        while json.loads(lines[-1])["phase"] != "verifying":
            logged.clear()
            logged.wait()
    first, last = json.loads(lines[0]), json.loads(lines[-1])
    assert (first["event"], first["command"], first["phase"]) == ("progress", "backfill", "starting")
    assert (last["listed"], last["so_far"]) == (7, "7 listed, 0 flagged")
