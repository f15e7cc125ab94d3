"""Laws of what Prometheus and a container's engine ask the desk: no stranger reads it, and it counts what waits."""

import math
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

from neardup.core.verify.tiers import EXACT
from neardup.ledger import cases, complaints, connect, now_ms
from neardup.ledger.complaints import Step
from neardup.moderation.desk import health
from neardup.moderation.desk.sessions import FREE_ATTEMPTS
from neardup.records import Verdict
from prometheus_client.parser import text_string_to_metric_families

from tests.support.builders import flag_pair
from tests.support.complaints import put_complaint
from tests.support.desk_client import OPEN, TOKEN, Client, desk
from tests.support.languages import TAMIL
from tests.support.verdicts import give_verdict

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
    with patch.object(health, "CACHED_SECONDS", 0), closing(connect(tmp_path / "neardup.db")) as db:
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

    with patch.object(health, "CACHED_SECONDS", 0), closing(connect(tmp_path / "neardup.db")) as db:
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
