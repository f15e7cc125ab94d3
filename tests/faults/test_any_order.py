"""Laws: what users see follows from the set of stories, not from their order, the batches, the commands or the kills.

A story that many accounts repeat stays a story that many copy, however many they are.

neardup killed at any step and run again ends with the same ledger, index, flags and exports as if undisturbed.
"""

import json
import os
import random
import re
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPException
from http.cookiejar import CookieJar
from itertools import count
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

import pytest
from neardup.ledger import schema

from tests.support.command import Neardup, environment
from tests.support.faults.command_driver import PLAGIARISM, ROWS, Deployment, Driver, StartedCommand, StopPoint
from tests.support.faults.consistency import INDEXES, SOME_INDEXES, draw_index, state_of
from tests.support.faults.fault_table import Row, Said, find_crashed, make_row
from tests.support.faults.histories import (
    BUCKETS,
    COMMON,
    EMPTY,
    LATEST,
    MOST,
    VOCABULARY,
    Author,
    Platform,
    differences,
    draw_history,
)
from tests.support.faults.kill_campaign import campaign, redis_for
from tests.support.faults.killed_command import STATEMENT
from tests.support.moderated_samples import lay_out_oldest
from tests.support.sampling import CHAOS, sample_cases

HISTORIES, DRAWN = 200, 10  # a run draws so many of them, and `make chaos` tries all
DAYS = 300


@pytest.mark.parametrize("index", INDEXES)
def test_what_users_see_follows_from_the_set_of_stories(index: str, driver: Driver, tmp_path: Path) -> None:
    with redis_for(index, tmp_path) as url:
        seeds, drawn = (range(INDEXES.index(index), end, len(INDEXES)) for end in (HISTORIES, DRAWN))
        for seed in sample_cases(seeds, len(drawn)):
            history = draw_history(random.Random(seed))
            turn = seed // len(INDEXES)
            most, bucket = MOST[turn % 2], BUCKETS[turn // 2 % len(BUCKETS)]
            platform = Platform(driver, tmp_path / "lived", index, url, most, bucket)
            platform.live_through(history)
            if history.steps[0].command[-1] == "--fresh":
                platform.run("sweep")
            reference = Platform(driver, tmp_path / "reference", "sqlite", most=most, bucket=bucket)
            reference.put(history.texts)
            reference.run("backfill", "--fresh")
            wrong = differences(platform.seen(), reference.seen())
            story = "\n".join(map(str, history.steps))
            assert not wrong, (
                f"history {seed}, max_matches {most}, max_bucket {bucket}:\n{story}\n"
                f"{len(wrong)} rows differ:\n" + "\n".join(wrong[:8])
            )


@pytest.mark.skipif(CHAOS < 2, reason="takes minutes; make chaos runs it")
def test_three_hundred_daily_runs_end_as_one_backfill(driver: Driver, tmp_path: Path) -> None:
    """Each day some stories come, one changes or goes now and then, and every tenth run is killed."""
    rng = random.Random(9)
    writer, texts, platform = Author(rng), dict[int, str](), Platform(driver, tmp_path / "lived", "sqlite")
    for day in range(DAYS):
        changes = {story: writer.write(story) for story in range(len(texts) + 1, len(texts) + 3)}
        if texts and rng.random() < 0.5:
            changed = rng.choice(list(texts))
            changes[changed] = writer.write(changed) if rng.random() < 0.7 else EMPTY
        texts |= changes
        platform.put(changes)
        if day % 10 == 9:
            platform.start("daily", at={"point": STATEMENT, "nth": rng.randint(1, LATEST)}).wait()
        platform.run("daily")
    platform.run("doctor")
    reference = Platform(driver, tmp_path / "reference", "sqlite")
    reference.put(texts)
    reference.run("backfill", "--fresh")
    assert differences(platform.seen(), reference.seen()) == []


def test_a_story_that_many_repeat_makes_nothing_common(driver: Driver, tmp_path: Path) -> None:
    """Exactly or with other words here and there, before and after more repeat it than make a passage common."""
    rng, copies = random.Random(8), 3 * COMMON
    story, disclaimer = rng.choices(VOCABULARY, k=300), rng.choices(VOCABULARY, k=60)

    def repeat(n: int) -> str:
        return " ".join(rng.choice(VOCABULARY) if n % 2 and rng.random() < 1 / 150 else word for word in story)

    def put(texts: dict[int, str]) -> None:
        platform.put(texts)
        platform.run("daily", "--since", "2020-01-01T00:00:00Z", batch=3)

    platform = Platform(driver, tmp_path, "sqlite")
    put({n: repeat(n) for n in range(1, COMMON + 1)})
    put({n: repeat(n) for n in range(COMMON + 1, copies + 1)})
    excerpt, others = copies + 1, range(copies + 2, 2 * copies)
    put({excerpt: " ".join([*rng.choices(VOCABULARY, k=40), *story[60:240], *rng.choices(VOCABULARY, k=80)])})
    put({n: " ".join([*rng.choices(VOCABULARY, k=200), *disclaimer]) for n in others})
    kinds = {pair: kind for pair, (kind, *_) in platform.seen()["flags"].items()}
    repeated = {(a, b) for b in range(1, copies + 1) for a in range(1, b)}
    assert repeated <= kinds.keys(), "copies of one story displaced each other"
    assert {kinds[pair] for pair in repeated} <= {"exact", "near", "similar"}
    assert {pair for pair, kind in kinds.items() if kind in {"partial", "passage"}} == {
        (n, excerpt) for n in range(1, copies + 1)
    }, "a part of the story is a copy of each, and what different stories share of none"
    assert kinds.keys() - repeated == {(n, excerpt) for n in range(1, copies + 1)}


KILLS = 6 * CHAOS
INSIDE_A_BATCH = (18, 24, 60, 100, 150, 500)  # statements: of its stories, its candidates, and the index
STATEMENTS = range(1, 11, 1 if CHAOS > 1 else 5)  # of a verdict
PAIR = f"/pair/{PLAGIARISM[0]}/{PLAGIARISM[1]}"


@pytest.mark.parametrize("index", SOME_INDEXES)
def test_killed_anywhere_and_run_again_ends_equal(
    index: str, driver: Driver, tmp_path: Path, record_row: Callable[[Row], None]
) -> None:
    index = draw_index(index)
    with redis_for(index, tmp_path) as url:
        tally = campaign(driver, tmp_path, index, KILLS, url=url)
    record_row(tally.row(f"SIGKILL, {index}"))
    assert tally.wrong == [], "\n".join(tally.wrong[:20])
    assert tally.kills >= KILLS // 3, f"too few points were reached: {tally.points}"


def test_killed_inside_a_batch_and_run_again_ends_equal(
    driver: Driver, tmp_path: Path, record_row: Callable[[Row], None]
) -> None:
    """Between its stories and its candidates, and between the index's mark and its members."""
    reference, deployment = (
        Deployment(driver, tmp_path / "reference", "sqlite"),
        Deployment(driver, tmp_path / "deployment", "sqlite"),
    )
    reference.env["NEARDUP_RUN__BATCH"] = deployment.env["NEARDUP_RUN__BATCH"] = str(len(ROWS))
    assert reference.start("backfill").wait() == 0
    points = [{"point": STATEMENT, "nth": nth, "since": "before commit"} for nth in INSIDE_A_BATCH]
    ended = [deployment.start("backfill", at=at).wait() for at in points]
    began = time.monotonic()
    assert deployment.start("backfill").wait() == 0
    took = time.monotonic() - began
    assert deployment.faults(state_of(reference.ledger)) == []
    kills = ended.count(-signal.SIGKILL)
    assert kills > len(points) // 2, f"too few statements were reached: {ended}"
    said = find_crashed(deployment.ledger, kills)
    record_row(make_row("SIGKILL, inside a batch", kills, said, in_flight=kills * len(ROWS), seconds=(took,)))


def test_an_upgrade_killed_at_any_statement_leaves_the_former_ledger_and_is_done_by_the_next_command(
    driver: Driver, tmp_path: Path, record_row: Callable[[Row], None]
) -> None:
    neardup, writing, seconds = Neardup(tmp_path, environment()), ("forget", "--undo", "1"), list[float]()
    codes = list[int | None]()
    lay_out_oldest(neardup)
    former, reference = neardup.ledger.read_bytes(), dump_rows(neardup.ledger)
    for nth in count(1):
        for ending in ("-wal", "-shm"):
            neardup.ledger.with_name(f"neardup.db{ending}").unlink(missing_ok=True)
        neardup.ledger.write_bytes(former)
        killed = driver.start(
            tmp_path, *writing, at={"point": STATEMENT, "nth": nth, "since": "before upgrade the ledger"}
        )
        codes.append(killed.wait())
        assert codes[-1] == -signal.SIGKILL, f"statement {nth}: {killed.stderr()}"
        [version], rows = dump_rows(neardup.ledger)
        began = time.monotonic()
        again = driver.start(tmp_path, *writing)
        assert again.wait() == 0, f"statement {nth}: {again.stderr()}"
        seconds.append(time.monotonic() - began)
        if version == schema.VERSION:
            break
        assert (version, rows) == (schema.OLDEST, reference[1]), f"statement {nth} left a part of an upgrade"
        assert again.stderr().count("the ledger was upgraded") == 1, f"statement {nth}: {again.stderr()}"
        assert dump_rows(neardup.ledger)[0] == [schema.VERSION]
    statements = sum(map(len, schema.STEPS.values()))
    assert nth > statements + 2, "the upgrade is not one transaction"
    said = Said("exit code -9", codes.count(-signal.SIGKILL))
    record_row(make_row("SIGKILL, upgrade of the ledger", nth, said, seconds=tuple(seconds)))


def dump_rows(ledger: Path) -> tuple[list[int], list[str]]:
    """The schema of a whole ledger, and all that it holds as SQL."""
    with closing(sqlite3.connect(ledger)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return [schema.read_version(db)], list(db.iterdump())


class Moderator:
    """An HTTP client of a desk that may be killed at any time."""

    def __init__(self, deployment: Deployment, at: StopPoint | None) -> None:
        log = deployment.folder / "desk.err"
        log.unlink(missing_ok=True)
        os.mkfifo(log)  # so that reading waits for the next line
        self.desk: StartedCommand = deployment.start("review", "--listen", "127.0.0.1:0", at=at, name="desk")
        with log.open(encoding="utf-8") as lines:
            opened = next(line for line in lines if "the review desk is open" in line)
        log.unlink()
        self._address = json.loads(opened)["address"].rstrip("/")
        self._opener = build_opener(HTTPCookieProcessor(CookieJar()))
        self.send("/name", name="Asha")

    def page(self, path: str) -> str:
        with self._opener.open(self._address + path) as answer:
            return str(answer.read().decode())

    def send(self, path: str, form: str = "", **fields: str) -> None:
        hidden = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form or self.page("/name"))
        data = urlencode(dict(hidden) | fields).encode()
        self._opener.open(Request(self._address + path, data, {"Origin": self._address})).close()

    def give_verdict(self) -> None:
        form = self.page(PAIR).partition('class="judge"')[2].partition("</form>")[0]
        self.send(f"{PAIR}/verdict", form, verdict="plagiarism", note="as seen")


def active_verdicts(deployment: Deployment) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(deployment.ledger)) as db:
        rows = db.execute("SELECT moderator, note FROM active_verdicts WHERE a = ? AND b = ?", PLAGIARISM).fetchall()
        [status] = db.execute("SELECT status FROM flags WHERE a = ? AND b = ?", PLAGIARISM).fetchone()
    assert status == ("plagiarism" if rows else "open"), "the status of the flag differs from its verdict"
    return rows


def test_a_verdict_at_a_killed_desk_is_stored_at_most_once(
    driver: Driver, tmp_path: Path, record_row: Callable[[Row], None]
) -> None:
    deployment, seconds, done, cut = Deployment(driver, tmp_path, "sqlite"), list[float](), 0, 0
    assert deployment.start("backfill").wait() == 0
    points = [{"point": "before judge", "nth": 1}, {"point": "after judge", "nth": 1}]
    points += [{"point": STATEMENT, "nth": nth, "since": "before judge"} for nth in STATEMENTS]
    for at in points:
        moderator = Moderator(deployment, at)
        try:
            moderator.give_verdict()
        except (HTTPException, URLError, ConnectionError):
            cut += 1
        assert moderator.desk.wait() == -signal.SIGKILL, at
        began = time.monotonic()
        restarted = Moderator(deployment, None)
        done += len(active_verdicts(deployment))
        if not active_verdicts(deployment):
            restarted.give_verdict()
        seconds.append(time.monotonic() - began)
        assert active_verdicts(deployment) == [("Asha", "as seen")], at
        restarted.desk.kill()
        assert deployment.start("judge", "neardup.db", *PLAGIARISM, "open").wait() == 0
        assert active_verdicts(deployment) == [], at
    assert 0 < done < len(points), "all desks died on the same side of the commit"
    said = Said("connection lost, exit code -9", cut)
    record_row(make_row("SIGKILL, desk", len(points), said, seconds=tuple(seconds)))
