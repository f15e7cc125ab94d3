"""Killed at any step, and run again, neardup ends as if nothing had happened: ledger, index, flags, exports."""

import json
import os
import re
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPException
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

import pytest

from tests.support.faults.command_driver import At, Driver, Started
from tests.support.faults.command_sequence import PLAGIARISM, ROWS, Life
from tests.support.faults.consistency import INDEXES, state_of
from tests.support.faults.fault_table import CHAOS, Row
from tests.support.faults.kill_campaign import campaign, redis_for
from tests.support.faults.killed_command import STATEMENT

BLOWS = 6 * CHAOS
INSIDE_A_BATCH = (18, 24, 60, 100, 150, 500)  # statements: of its stories, its candidates, and the index
STATEMENTS = 10  # of those that a verdict takes
PAIR = f"/pair/{PLAGIARISM[0]}/{PLAGIARISM[1]}"


@pytest.mark.parametrize("index", INDEXES)
def test_killed_anywhere_and_run_again_all_is_as_if_nothing_had_happened(
    index: str, driver: Driver, tmp_path: Path, tell: Callable[[Row], None]
) -> None:
    with redis_for(index, tmp_path) as url:
        tally = campaign(driver, tmp_path, index, BLOWS, url=url)
    tell(tally.row(f"SIGKILL, {index}"))
    assert tally.wrong == [], "\n".join(tally.wrong[:20])
    assert tally.kills >= BLOWS // 3, f"many are to hit: {tally.points}"


def test_killed_inside_a_batch_and_run_again_all_of_it_is_there(
    driver: Driver, tmp_path: Path, tell: Callable[[Row], None]
) -> None:
    """Between its stories and its candidates, and between the index's mark and its members."""
    calm, life = Life(driver, tmp_path / "calm", "sqlite"), Life(driver, tmp_path / "life", "sqlite")
    calm.env["NEARDUP_RUN__BATCH"] = life.env["NEARDUP_RUN__BATCH"] = str(len(ROWS))
    assert calm.start("backfill").wait() == 0
    points = [{"point": STATEMENT, "nth": nth, "since": "before commit"} for nth in INSIDE_A_BATCH]
    ended = [life.start("backfill", at=at).wait() for at in points]
    began = time.monotonic()
    assert life.start("backfill").wait() == 0
    took = time.monotonic() - began
    assert life.faults(state_of(calm.ledger)) == []
    kills = ended.count(-signal.SIGKILL)
    assert kills > len(points) // 2, f"too few statements were reached: {ended}"
    tell(Row("SIGKILL, inside a batch", kills, kills * len(ROWS), 0, 0, (took,)))


class Moderator:
    """A browser in front of a desk that may die at any time."""

    def __init__(self, life: Life, at: At | None) -> None:
        said = life.folder / "desk.err"
        said.unlink(missing_ok=True)
        os.mkfifo(said)  # so that reading it waits for what is written
        self.desk: Started = life.start("review", "--listen", "127.0.0.1:0", at=at, name="desk")
        with said.open(encoding="utf-8") as lines:
            told = next(line for line in lines if "the review desk is open" in line)
        said.unlink()
        self._address = json.loads(told)["address"].rstrip("/")
        self._opener = build_opener(HTTPCookieProcessor(CookieJar()))
        self.send("/name", name="Asha")

    def page(self, path: str) -> str:
        with self._opener.open(self._address + path) as answer:
            return str(answer.read().decode())

    def send(self, path: str, form: str = "", **fields: str) -> None:
        hidden = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form or self.page("/name"))
        data = urlencode(dict(hidden) | fields).encode()
        self._opener.open(Request(self._address + path, data, {"Origin": self._address})).close()

    def judge(self) -> None:
        form = self.page(PAIR).partition('class="judge"')[2].partition("</form>")[0]
        self.send(f"{PAIR}/verdict", form, verdict="plagiarism", note="as seen")


def standing(life: Life) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(life.ledger)) as db:
        rows = db.execute("SELECT moderator, note FROM active_verdicts WHERE a = ? AND b = ?", PLAGIARISM).fetchall()
        [status] = db.execute("SELECT status FROM flags WHERE a = ? AND b = ?", PLAGIARISM).fetchone()
    assert status == ("plagiarism" if rows else "open"), "a flag is what its verdict says"
    return rows


def test_a_verdict_given_at_a_desk_that_dies_is_there_once_or_not_at_all(
    driver: Driver, tmp_path: Path, tell: Callable[[Row], None]
) -> None:
    life, seconds, done = Life(driver, tmp_path, "sqlite"), list[float](), 0
    assert life.start("backfill").wait() == 0
    points = [{"point": "before judge", "nth": 1}, {"point": "after judge", "nth": 1}]
    points += [{"point": STATEMENT, "nth": nth, "since": "before judge"} for nth in range(1, 1 + STATEMENTS)]
    for at in points:
        moderator = Moderator(life, at)
        with pytest.raises((HTTPException, URLError, ConnectionError)):
            moderator.judge()
        assert moderator.desk.wait() == -signal.SIGKILL, at
        began = time.monotonic()
        again = Moderator(life, None)
        done += len(standing(life))
        if not standing(life):
            again.judge()
        seconds.append(time.monotonic() - began)
        assert standing(life) == [("Asha", "as seen")], at
        again.desk.end()
        assert life.start("judge", "neardup.db", *PLAGIARISM, "open").wait() == 0
        assert standing(life) == [], at
    assert 0 < done < len(points), "some died before the commit, some after it"
    tell(Row("SIGKILL, desk", len(points), 0, 0, 0, tuple(seconds)))
