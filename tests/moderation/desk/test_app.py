"""Laws of what programs ask the desk: no stranger reads its metrics, which count what waits; and no request, drawn and
most of them wrong, to the API or to a page ends as a failure of the desk.

REQUESTS=N sends N to each address.
"""

import json
import math
import os
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import pytest
from neardup.core.verify.tiers import EXACT
from neardup.http.tokens import add_token
from neardup.ledger import cases, complaints, connect, now_ms
from neardup.ledger.complaints import Step
from neardup.moderation.desk import app
from neardup.moderation.desk.moderators import FREE_ATTEMPTS
from neardup.records import Verdict
from prometheus_client.parser import text_string_to_metric_families

from tests.support.builders import commit, fingerprinted, flag_pair, verify_pending
from tests.support.desk_client import OPEN, TOKEN, Client, desk, named_client
from tests.support.languages import TAMIL
from tests.support.verdicts import give_verdict, put_complaint

REQUESTS = int(os.environ.get("REQUESTS", "15"))
IDS = (
    *("1", "2", "3", "0", "-1", "abc", "9" * 19, "9" * 30, "%00", "%ff", "कथा", "reference:x/1", "1.0", "%201"),
    "x" * 1500,
)
VALUES: tuple[object, ...] = (
    *(None, "", "a", "1", "-1", "9" * 25, "1.5", "\0", "हिंदी", "plagiarism", "template", "exact", "open", "hi", "%"),
    *(True, False, 0, -1, 2**63, 2**70, 1.5, [], ["1"], {"a": 1}, "x" * 3000, "1,2", "'", "*", "NaN", "2026-W01-1"),
)
NAMES = (
    *("verdict", "note", "seen", "except", "reason", "first", "limit", "sort", "kind", "status", "language", "author"),
    *("q", "story", "since", "same_author", "catalogue", "at", "mark", "similarity"),
)
READ = ("/api/cases", "/api/cases/{a}", "/api/decisions/{a}", "/api/meaning", "/api/meaning/{a}/{b}")
WRITTEN = (
    *("/api/cases/{a}/lease", "/api/cases/{a}/verdict", "/api/cases/{a}/reopen", "/api/decisions/{a}/undo"),
    *("/api/meaning/{a}/{b}/verdict", "/api/meaning/{a}/{b}/undo"),
)
PAGES = (
    *("/", "/case/{a}", "/pair/{a}/{b}", "/story/{a}", "/author/{a}", "/authors", "/statistics", "/search", "/meaning"),
    *("/meaning/{a}/{b}", "/language/{a}"),
)
BEARER = {"Authorization": f"Bearer {TOKEN}"}


async def status_of(client: Client, path: str, headers: dict[str, str]) -> int:
    async with client.get(path, headers=headers) as answer:
        assert "Set-Cookie" not in answer.headers, f"{path} is for programs, which keep no session"
        return answer.status


async def samples(client: Client, about: str = "case") -> dict[tuple[str, ...], float]:
    """The samples of the gauges of cases or complaints, by their name and their labels' values."""
    async with client.get("/metrics") as answer:
        assert answer.status == 200
        families = list(text_string_to_metric_families(await answer.text()))
    found = [sample for family in families for sample in family.samples]
    return {(sample.name, *sample.labels.values()): sample.value for sample in found if about in sample.name}


async def test_a_desk_without_a_login_answers_this_machine_only(tmp_path: Path) -> None:
    async with desk(tmp_path) as client:
        for path in ("/healthz", "/metrics"):
            assert await status_of(client, path, {}) == 200, path
            assert await status_of(client, path, {"Host": "evil.example"}) == 421, path
            assert await status_of(client, path, {"X-Forwarded-For": "10.1.2.3"}) == 421, path


async def test_metrics_need_the_token_of_a_desk_that_has_one_and_wrong_ones_must_wait(tmp_path: Path) -> None:
    async with desk(tmp_path, OPEN, TOKEN) as client:
        assert await status_of(client, "/healthz", {"Host": "desk.example"}) == 200
        for _ in range(FREE_ATTEMPTS + 1):
            assert await status_of(client, "/metrics", {}) == 401, "without a token there is nothing to guess"
        assert await status_of(client, "/metrics", BEARER) == 200
        for _ in range(FREE_ATTEMPTS):
            assert await status_of(client, "/metrics", {"Authorization": "Bearer wrong"}) == 401
        assert await status_of(client, "/metrics", BEARER) == 401, "after wrong tokens, even the right one must wait"


async def test_a_desk_whose_ledger_is_gone_is_not_healthy(tmp_path: Path) -> None:
    async with desk(tmp_path) as client:
        (tmp_path / "neardup.db").unlink()
        assert await status_of(client, "/healthz", {}) == 503


async def test_the_gauges_count_open_cases_and_what_each_moderator_leaves_undecided(tmp_path: Path) -> None:
    with patch.object(app, "CACHED_SECONDS", 0), closing(connect(tmp_path / "neardup.db")) as db:
        async with desk(tmp_path) as client:
            assert await samples(client) == {("neardup_oldest_open_case_age_seconds",): 0}
            for n in range(4):
                flag_pair(db, 2 * n, 2 * n + 1, EXACT, language=TAMIL)
            db.execute("UPDATE flags SET flagged_at = flagged_at - 3600000 WHERE a = 0")
            give_verdict(db, [(2, 3), (4, 5)], Verdict.UNSURE)
            give_verdict(db, [(6, 7)], Verdict.PLAGIARISM)
            cases.take_lease(db, 0, "Binu")
            found = await samples(client)
            assert 3600 <= found.pop(("neardup_oldest_open_case_age_seconds",)) < 4000
            undecided = {("neardup_undecided_cases", "Asha"): 2, ("neardup_undecided_cases", "Binu"): 1}
            assert found == {("neardup_open_cases", TAMIL): 3, **undecided}
            cases.release_leases(db, "Binu", [0])
            give_verdict(db, [(0, 1), (2, 3), (4, 5)], Verdict.PLAGIARISM)
            assert await samples(client) == {("neardup_oldest_open_case_age_seconds",): 0}, "all are decided"


async def test_the_gauges_of_complaints_count_down_to_the_next_deadline(tmp_path: Path) -> None:
    async def found(client: Client) -> list[float]:
        shown = await samples(client, "complaint")
        names = ("open_complaints", "overdue_complaints", "next_complaint_deadline_seconds")
        return [shown[f"neardup_{name}",] for name in names]

    with patch.object(app, "CACHED_SECONDS", 0), closing(connect(tmp_path / "neardup.db")) as db:
        async with desk(tmp_path) as client:
            assert await found(client) == [0, 0, math.inf]
            put_complaint(db, 1, None, days=2)
            late = put_complaint(db, 2, None, days=-1)
            *counts, seconds = await found(client)
            assert counts == [2, 1] and -86_500 < seconds < -86_399
            complaints.close(db, late, complaints.DISMISSED, "Asha", "no copy")
            slow = put_complaint(db, 3, None, days=9, acknowledged=False)
            for hours, waits in ((23, 0), (25, 1)):
                db.execute("UPDATE complaints SET received_at = ?", (now_ms() - hours * 3_600_000,))
                assert (await samples(client, "complaint"))["neardup_unacknowledged_complaints",] == waits, hours
            complaints.log_notice(db, slow, Step.ACKNOWLEDGED, "Asha", "")
            assert (await samples(client, "complaint"))["neardup_unacknowledged_complaints",] == 0
            complaints.close(db, slow, complaints.DISMISSED, "Asha", "no copy")
            *counts, seconds = await found(client)
            assert counts == [1, 0] and 172_700 < seconds <= 172_800


async def test_the_cases_are_not_counted_again_for_each_program_that_asks(tmp_path: Path) -> None:
    async with desk(tmp_path) as client:
        before = await samples(client)
        with closing(connect(tmp_path / "neardup.db")) as db:
            flag_pair(db, 0, 1, EXACT, language=TAMIL)
        assert await samples(client) == before


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a ledger of three copies of one story, all flagged."""
    with closing(connect(tmp_path / "neardup.db")) as db:
        for n in (1, 2, 3):
            commit(db, fingerprinted(n, 7), pairs=[(other, n) for other in range(1, n)])
        verify_pending(db)
    return tmp_path


def paths(rng: random.Random, templates: tuple[str, ...]) -> Iterator[str]:
    for template in templates:
        for _ in range(REQUESTS):
            yield template.format(a=rng.choice(IDS), b=rng.choice(IDS))


def members(rng: random.Random) -> dict[str, object]:
    return {rng.choice(NAMES): rng.choice(VALUES) for _ in range(rng.randint(0, 4))}


def query(rng: random.Random) -> dict[str, str]:
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in members(rng).items()}


async def test_no_request_is_a_failure_of_the_desk(folder: Path) -> None:
    rng, moderators = random.Random(7), folder / "moderators.toml"
    secret = add_token(moderators, "review.moderators", "Asha", {"rights": ["decide"]})
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
    async with desk(folder, moderators=moderators) as client:
        for path in paths(rng, READ):
            async with client.get(path, params=query(rng), headers=headers) as answer:
                assert answer.status < 500, f"{answer.url}: {await answer.text()}"
        for path in paths(rng, WRITTEN):
            body = rng.choice([json.dumps(members(rng)), json.dumps(members(rng)), "{", "[]", '{"note": "\\ud800"}'])
            async with client.post(path, data=body.encode(), headers=headers) as answer:
                assert answer.status < 500, f"{answer.url} {body}: {await answer.text()}"
    async with named_client(folder) as client:
        for path in paths(rng, PAGES):
            async with client.get(path, params=query(rng), allow_redirects=False) as answer:
                assert answer.status < 500, f"{answer.url}: {await answer.text()}"
