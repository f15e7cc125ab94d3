"""Laws of the desk's JSON API: rights, leases and conflicts are those of the pages, and failures are problems."""

import json
import re
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from neardup.core.columns import NONE_MADE
from neardup.core.verify.tiers import EXACT, TRANSLATED
from neardup.ledger import connect, marks, meaning_flags, webhook_events
from neardup.ledger.meaning_flags import ChunkPair, MeaningFlag
from neardup.moderation.desk.moderators import Moderator, Right, add_moderator
from neardup.moderation.webhook import LINES
from neardup.records import Mark, MarkReason, Skip, Skipped, Story

from tests.support.builders import flag_pair
from tests.support.desk_client import Client, desk, named_client
from tests.support.languages import HINDI, TAMIL
from tests.support.verdicts import PERSON, put_complaint


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A ledger of a case of three stories, 1, and cases of two, 4 and 11; the last one is in Tamil."""
    with closing(connect(tmp_path / "neardup.db")) as db:
        for a, b, language in ((1, 2, HINDI), (1, 3, HINDI), (4, 5, HINDI), (11, 12, TAMIL)):
            flag_pair(db, a, b, EXACT, language=language)
        yield db


class Caller:
    """A program with the token of a moderator."""

    def __init__(self, client: Client, secret: str) -> None:
        self.client = client
        self.headers = {"Authorization": f"Bearer {secret}"}

    async def get(self, path: str) -> tuple[int, Any]:
        async with self.client.get(path, headers=self.headers) as answer:
            return answer.status, await answer.json(content_type=None)

    async def post(self, path: str, body: Any = None) -> tuple[int, Any]:
        async with self.client.post(path, json=body, headers=self.headers) as answer:
            return answer.status, await answer.json(content_type=None)


@pytest.fixture
async def callers(tmp_path: Path, ledger: sqlite3.Connection) -> AsyncIterator[dict[str, Caller]]:
    """Programs of Asha, of Ravi, who decides Tamil, of Kamala, who reads, and one without a token."""
    path = tmp_path / "moderators.toml"
    secrets = {
        moderator.name: add_moderator(path, moderator)
        for moderator in (
            Moderator("Asha"),
            Moderator("Ravi", languages=(TAMIL,)),
            Moderator("Kamala", rights=frozenset({Right.READ})),
        )
    }
    async with desk(tmp_path, moderators=path, second_reviews=1.0) as client:
        yield {name: Caller(client, secret) for name, secret in (secrets | {"": "x"}).items()}


def statuses(db: sqlite3.Connection) -> list[str]:
    return [row[0] for row in db.execute("SELECT status FROM flags ORDER BY a, b")]


def problem(answer: tuple[int, Any]) -> tuple[int, str]:
    """The status and the name of a problem."""
    status, body = answer
    assert body.keys() == {"type", "title", "status", "detail"} and body["status"] == status
    return status, body["type"].rpartition(":")[2]


async def test_case_is_read_decided_and_undone(callers: dict[str, Caller], ledger: sqlite3.Connection) -> None:
    asha = callers["Asha"]
    status, listed = await asha.get("/api/cases?sort=stories&limit=2")
    assert (status, [case["case_id"] for case in listed["cases"]]) == (200, [1, 4])
    assert (listed["counts"]["total"], listed["counts"]["languages"]) == (3, {"HINDI": 2, "TAMIL": 1})
    assert [case["case_id"] for case in (await asha.get("/api/cases?language=ta"))[1]["cases"]] == [11]
    _, case = await asha.get("/api/cases/3")
    assert (case["case_id"], case["pairs"], case["open_pairs"], case["lease"]) == (1, 2, 2, None)
    left_out = next(pair["flag_id"] for pair in case["evidence"] if 3 in (pair["story_id"], pair["matched_id"]))
    assert (await asha.post("/api/cases/1/lease"))[1]["moderator"] == "Asha"
    body = {"verdict": "plagiarism", "note": "नोट", "seen": case["seen"], "leave_out": [left_out]}
    status, decision = await asha.post("/api/cases/1/verdict", body)
    assert (status, decision["pairs"], statuses(ledger)) == (200, [[1, 2]], ["plagiarism", "open", "open", "open"])
    assert (await asha.get(f"/api/decisions/{decision['decision']}"))[1] == decision
    _, case = await asha.get("/api/cases/1")
    [given] = case["decisions"]
    assert (given["verdict"], given["note"], given["moderator"], case["lease"]) == ("plagiarism", "नोट", "Asha", None)
    path = f"/api/decisions/{decision['decision']}/undo"
    assert (await asha.post(path, {"seen": decision["seen"]}))[1]["is_undone"]
    assert statuses(ledger) == ["open"] * 4
    assert problem(await asha.post(path, {"seen": decision["seen"]})) == (409, "conflict")


async def test_cases_have_the_marks_of_their_lead(callers: dict[str, Caller], ledger: sqlite3.Connection) -> None:
    asha = callers["Asha"]
    _, before = await asha.get("/api/cases/11")
    assert before["lead"]["marks"] == []
    found = (Mark(MarkReason.HIDDEN, "63 %"), Mark(MarkReason.TRUNCATED, "size"))
    marks.put(ledger, NONE_MADE, [Skipped(Story(before["lead"]["story_id"], TAMIL), Skip.UNCHANGED, marks=found)])
    wanted = [{"reason": "hidden", "detail": "63 %"}, {"reason": "truncated", "detail": "size"}]
    assert (await asha.get("/api/cases/11"))[1]["lead"]["marks"] == wanted
    listed = (await asha.get("/api/cases"))[1]["cases"]
    assert {case["case_id"]: case["lead"]["marks"] for case in listed} == {1: [], 4: [], 11: wanted}


async def test_decided_case_is_reopened_for_a_reason(callers: dict[str, Caller], ledger: sqlite3.Connection) -> None:
    asha = callers["Asha"]
    _, case = await asha.get("/api/cases/4")
    await asha.post("/api/cases/4/verdict", {"verdict": "repost", "seen": case["seen"]})
    _, case = await asha.get("/api/cases/4")
    wrong = {"note": " ", "seen": case["decided_seen"]}
    assert problem(await asha.post("/api/cases/4/reopen", wrong)) == (422, "invalid")
    status, _ = await asha.post("/api/cases/4/reopen", {"note": "an appeal", "seen": case["decided_seen"]})
    _, case = await asha.get("/api/cases/4")
    assert (status, [decision["verdict"] for decision in case["decisions"]]) == (200, ["reopened", "repost"])
    assert statuses(ledger) == ["open"] * 4


async def test_rights_leases_and_conflicts_are_those_of_the_pages(
    callers: dict[str, Caller], ledger: sqlite3.Connection
) -> None:
    _, hindi = await callers["Kamala"].get("/api/cases/1")
    _, tamil = await callers["Kamala"].get("/api/cases/11")
    body = {"verdict": "template", "seen": hindi["seen"]}
    for name in ("Kamala", "Ravi"):
        assert problem(await callers[name].post("/api/cases/1/verdict", body)) == (403, "forbidden")
        assert problem(await callers[name].post("/api/cases/1/lease")) == (403, "forbidden")
    assert (await callers["Ravi"].post("/api/cases/11/lease"))[0] == 200
    assert problem(await callers["Asha"].post("/api/cases/11/lease")) == (409, "held")
    held = body | {"seen": tamil["seen"]}
    assert problem(await callers["Asha"].post("/api/cases/11/verdict", held)) == (409, "held")
    assert problem(await callers["Asha"].post("/api/cases/1/verdict", body | {"seen": "0-x"})) == (409, "conflict")
    assert statuses(ledger) == ["open"] * 4
    for path in ("/api/cases", "/api/cases/1", "/api/decisions/1"):
        assert problem(await callers[""].get(path)) == (401, "unauthenticated")
    assert problem(await callers[""].post("/api/cases/1/verdict", body)) == (401, "unauthenticated")


async def test_a_second_review_is_blind(callers: dict[str, Caller], ledger: sqlite3.Connection) -> None:
    asha, ravi = callers["Asha"], callers["Ravi"]
    assert (await ravi.get("/api/second"))[1] == {"total": 0, "cases": []}
    _, case = await asha.get("/api/cases/11")
    body = {"verdict": "plagiarism", "note": "whole chapters", "seen": case["seen"]}
    assert (await asha.post("/api/cases/11/verdict", body))[0] == 200
    assert (await asha.get("/api/second"))[1]["total"] == 0, "who decided a case does not review it"
    status, waiting = await ravi.get("/api/second?limit=1")
    [blind] = waiting["cases"]
    assert (status, waiting["total"], blind["case_id"], len(blind["evidence"])) == (200, 1, 11, 1)
    assert not {"plagiarism", "Asha", "whole chapters"} & set(re.findall(r"[^\"]+", json.dumps(waiting)))
    path, given = "/api/second/11/verdict", {"verdict": "template", "seen": blind["seen"]}
    assert problem(await ravi.post(path, given | {"verdict": "unsure"})) == (422, "invalid")
    assert problem(await ravi.post(path, given | {"seen": "x"})) == (409, "conflict")
    assert problem(await callers["Kamala"].post(path, given)) == (403, "forbidden")
    assert await ravi.post(path, given) == (200, {"total": 0, "cases": []})
    assert statuses(ledger)[-1] == "open", "two disagree: the case is open for a third"
    assert problem(await ravi.post(path, given)) == (409, "conflict")


async def test_an_author_is_hidden_and_shown_and_each_is_an_event(
    callers: dict[str, Caller], ledger: sqlite3.Connection
) -> None:
    ledger.execute("UPDATE stories SET author_id = 9 WHERE id IN (3, 12)")
    webhook_events.subscribe(ledger, [webhook_events.VERDICTS])
    for name, status, body in (("", 401, {}), ("Kamala", 403, {}), ("Ravi", 403, {}), ("Asha", 422, {"why": "x"})):
        assert (await callers[name].post("/api/authors/9/hide", body))[0] == status, name
    for _ in range(2):
        status, found = await callers["Asha"].post("/api/authors/9/hide", {"note": "नोट"})
        [hidden] = found["authors"]
        assert (status, hidden["author_id"], hidden["stories"], hidden["note"]) == (200, "9", [3, 12], "नोट")
    assert (await callers["Kamala"].get("/api/hidden"))[1] == found
    for _ in range(2):
        assert (await callers["Asha"].post("/api/authors/9/show", {}))[1] == {"authors": []}
    posted = [json.loads(event) for (event,) in ledger.execute("SELECT event FROM webhook_events ORDER BY event_id")]
    assert [(event["event"], event["by"], event["stories"]) for event in posted] == [
        ("hide", "Asha", [3, 12]),
        ("show", "Asha", [3, 12]),
    ], "what changed nothing is no event"
    assert [LINES[event["event"]](event) for event in posted] == [
        "neardup: Asha asks to hide 2 stories of author 9",
        "neardup: Asha asks to show 2 stories of author 9 again",
    ]


async def test_what_is_wrong_is_a_problem(callers: dict[str, Caller], ledger: sqlite3.Connection) -> None:
    asha, path = callers["Asha"], "/api/cases/1/verdict"
    bodies: tuple[Any, ...] = ({}, {"verdict": "x", "seen": ""}, {"verdict": "reopened", "seen": ""}, [], 7)
    for wrong in bodies:
        assert problem(await asha.post(path, wrong)) == (422, "invalid"), wrong
    for more in ({"extra": 1}, {"note": "x" * 2001}, {"leave_out": ["x"]}, {"note": None}):
        assert problem(await asha.post(path, {"verdict": "template", "seen": ""} | more)) == (422, "invalid"), more
    for address, want in (
        ("/api/cases/99", (404, "no-case")),
        ("/api/cases/x", (404, "no-case")),
        ("/api/decisions/99", (404, "no-decision")),
        ("/api/decisions/x", (422, "invalid")),
        ("/api/cases?status=x", (422, "invalid")),
        ("/api/cases?limit=-1", (422, "invalid")),
        ("/api/nothing", (404, "not-found")),
        (path, (405, "method-not-allowed")),
    ):
        assert problem(await asha.get(address)) == want, address
    async with asha.client.post(path, data="{", headers=asha.headers | {"Content-Type": "application/json"}) as answer:
        assert problem((answer.status, await answer.json(content_type=None))) == (400, "malformed")
    async with asha.client.post(path, data={"verdict": "template"}, headers=asha.headers) as answer:
        assert problem((answer.status, await answer.json(content_type=None))) == (415, "unsupported-media-type")
        assert answer.content_type == "application/problem+json"
    assert statuses(ledger) == ["open"] * 4


async def test_without_moderators_the_api_answers_no_request(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    async with named_client(tmp_path) as client:
        assert problem(await Caller(client, "").get("/api/cases")) == (401, "unauthenticated")


async def test_pairs_by_meaning_have_addresses_of_their_own(
    callers: dict[str, Caller], ledger: sqlite3.Connection
) -> None:
    hash_of = dict(ledger.execute("SELECT id, text_hash FROM stories"))
    found = MeaningFlag(1, 11, TRANSLATED, 0.4, [ChunkPair(0, 1, 0.71)], hash_of[1], hash_of[11])
    meaning_flags.put(ledger, [found], "m")
    asha, ravi = callers["Asha"], callers["Ravi"]
    assert (await asha.get("/api/cases?kind=translated"))[1]["cases"] == []
    status, listed = await asha.get("/api/meaning?kind=translated&limit=1")
    assert (status, listed["total"]) == (200, 1)
    [pair] = listed["pairs"]
    assert (pair["kind"], pair["margin"], pair["chunks"]) == (TRANSLATED, 0.4, [{"a": 0, "b": 1, "cosine": 0.71}])
    body = {"verdict": "plagiarism", "seen": pair["seen"], "note": "अनुवाद"}
    assert problem(await ravi.post("/api/meaning/1/11/verdict", body)) == (403, "forbidden"), "one story is in Hindi"
    status, decided = await asha.post("/api/meaning/1/11/verdict", body)
    assert (status, decided["status"], decided["note"]) == (200, "plagiarism", "अनुवाद")
    assert problem(await asha.post("/api/meaning/1/11/verdict", body)) == (409, "conflict")
    status, undone = await asha.post("/api/meaning/1/11/undo", {"seen": decided["seen"]})
    assert (status, undone["status"]) == (200, "open")
    assert problem(await asha.get("/api/meaning/1/4")) == (404, "no-pair")


async def test_complaints_are_listed_and_answered(callers: dict[str, Caller], ledger: sqlite3.Connection) -> None:
    put_complaint(ledger, 1, 2)
    asha = callers["Asha"]
    _, listed = await asha.get("/api/complaints")
    [listed_complaint] = listed["complaints"]
    assert (listed["total"], listed_complaint["complainant"]) == (1, PERSON)
    _, shown = await asha.get("/api/complaints/1")
    assert shown == listed_complaint | {"original_text": None}
    address, answer = "/api/complaints/1", {"action": "author", "note": "mine"}
    assert problem(await callers["Kamala"].post(address, answer)) == (403, "forbidden")
    assert problem(await asha.post(address, {"action": "author"})) == (422, "invalid")
    assert problem(await asha.post(address, {"action": "x"})) == (422, "invalid")
    assert problem(await asha.post("/api/complaints/9", answer)) == (404, "no-complaint")
    _, answered = await asha.post(address, answer)
    assert (answered["log"][-1]["step"], answered["log"][-1]["by"]) == ("author_answered", "Asha")
    _, closed = await asha.post(address, {"action": "dismissed", "note": "no copy"})
    assert (closed["outcome"], (await asha.get("/api/complaints?closed=1"))[1]["total"]) == ("dismissed", 1)
    assert problem(await asha.post(address, answer)) == (409, "conflict")
