"""Laws of complaints: each is recorded with its evidence and its deadline, every step of it is logged, a verdict on its
flags closes it, and nothing that names the complainant leaves the ledger.
"""

import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from neardup.config.sections import Review
from neardup.ledger import authors, cases, complaints, connect, webhook_events
from neardup.ledger.complaints import DAY_MS
from neardup.moderation.webhook import format_complaint
from neardup.records import Verdict, parse_milliseconds
from neardup.serve.messages import CompareAnswer
from neardup.serve.rights_messages import Complaint, ComplaintsAnswer

from tests.support.languages import SAMPLED
from tests.support.sample_texts import STORIES
from tests.support.service import HttpClient, configuration, http_service, problem_of, send
from tests.support.verdicts import decide_case, undo

LANGUAGE = SAMPLED[0]
ORIGINAL, OTHER = STORIES[LANGUAGE][:2]
COPY = " ".join(ORIGINAL.split()[: len(ORIGINAL.split()) * 9 // 10])
PERSON = {"complainant": "Meera Iyer", "contact": "meera@example.com"}
OF_COPY = PERSON | {"story_id": 2, "original_id": "मूल", "statement": " यह मेरी कहानी है। "}
DAYS = 3


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[HttpClient]:
    """A service in which story 2 copies the story मूल, and story 3 copies nothing."""
    config = configuration(tmp_path, deadline_seconds=30)
    config = replace(config, review=Review(complaint_days=DAYS), content=replace(config.content, max_bytes=100_000))
    async with http_service(config) as (client, _):
        for name, text, author in (("मूल", ORIGINAL, "asha"), ("2", COPY, 17), ("3", OTHER, "ravi")):
            await send(client, "PUT", f"/v1/stories/{name}", language=LANGUAGE, text=text, author_id=author)
        yield client


@pytest.fixture
def db(tmp_path: Path, client: HttpClient) -> Iterator[sqlite3.Connection]:
    with closing(connect(tmp_path / "neardup.db")) as opened:
        yield opened


async def complain(client: HttpClient, **complaint: Any) -> Complaint:
    return Complaint.model_validate_json(await send(client, "POST", "/v1/complaints", **complaint))


async def complaint_of(client: HttpClient, number: int) -> Complaint:
    return Complaint.model_validate_json(await send(client, "GET", f"/v1/complaints/{number}"))


def steps(complaint: Complaint) -> list[str]:
    return [logged.step for logged in complaint.log]


async def test_the_named_original_is_compared_as_a_comparison_does(client: HttpClient) -> None:
    sides = {"a": {"story_id": "मूल"}, "b": {"story_id": 2}}
    compared = CompareAnswer.model_validate_json(await send(client, "POST", "/v1/compare", **sides))
    made = await complain(client, **OF_COPY)
    assert (made.number, made.story_id, made.original_id, made.statement) == (1, 2, "मूल", "यह मेरी कहानी है।")
    assert steps(made) == ["received", "acknowledged", "evidence_made"]
    lasts = (parse_milliseconds(made.due_at) or 0) - (parse_milliseconds(made.received_at) or 0)
    assert lasts == DAYS * DAY_MS
    for evidence in (made.evidence, (await complain(client, **by_text(ORIGINAL))).evidence):
        assert evidence is not None
        assert (evidence.kind, evidence.similarity, evidence.compared) == (compared.kind, compared.similarity, 1)
        [match] = evidence.matches
        assert match.jaccard == compared.scores.jaccard
        assert evidence.passages[0].words == compared.passages[0].words
        assert evidence.near_miss is None


def by_text(text: str, **others: Any) -> dict[str, Any]:
    return OF_COPY | {"original_id": None, "original_text": text} | others


async def test_a_complaint_without_an_original_is_checked_against_all(client: HttpClient) -> None:
    made = await complain(client, **OF_COPY | {"original_id": None})
    assert made.evidence is not None
    assert (made.evidence.compared_with, made.evidence.compared) == ("all", 2)
    assert [match.story_id for match in made.evidence.matches] == ["मूल"]


async def test_a_complaint_that_finds_no_copy_says_what_was_compared(client: HttpClient) -> None:
    for original in ({"original_id": "मूल"}, {"original_text": ORIGINAL}, {}):
        made = await complain(client, **PERSON | {"story_id": 3, "statement": "x"} | original)
        evidence = made.evidence
        assert evidence is not None, made.log
        assert (evidence.kind, evidence.matches, evidence.thresholds.jaccard) == (None, [], 0.5)
        assert evidence.compared == (1 if original else 2)
        if original:
            assert evidence.near_miss is not None, "how near the story comes is not said"
            assert evidence.near_miss.similarity < 0.5


async def test_answers_are_logged_until_the_complaint_is_closed(client: HttpClient, db: sqlite3.Connection) -> None:
    await complain(client, **OF_COPY)
    for side, text in (("author", "मैंने लिखा"), ("author", "मैंने लिखा"), ("complainant", "नहीं")):
        await send(client, "POST", "/v1/complaints/1/answers", by=side, text=text)
    cases.refresh(db)
    decision = decide_case(db, 2, Verdict.PLAGIARISM)
    closed = await complaint_of(client, 1)
    assert closed.outcome == "plagiarism"
    assert [(logged.step, logged.note) for logged in closed.log][3:] == [
        ("author_answered", "मैंने लिखा"), ("complainant_answered", "नहीं"), ("decided", "plagiarism"), ("closed", ""),
    ]  # fmt: skip
    answer = {"by": "author", "text": "फिर भी"}
    assert await problem(client, "POST", "/v1/complaints/1/answers", answer) == (409, "closed-complaint")
    undo(db, decision)
    opened = await complaint_of(client, 1)
    assert (opened.outcome, opened.closed_at, steps(opened)[-1]) == (None, None, "reopened")
    decide_case(db, 2, Verdict.QUOTATION)
    undo(db, decide_case(db, 2, Verdict.PLAGIARISM))
    assert (await complaint_of(client, 1)).outcome == "quotation", "a verdict that returns decides nothing"
    listed = ComplaintsAnswer.model_validate_json(await send(client, "GET", "/v1/complaints?closed=true&limit=1"))
    assert [(complaint.number, complaint.outcome) for complaint in listed.complaints] == [(1, "quotation")]
    assert ComplaintsAnswer.model_validate_json(await send(client, "GET", "/v1/complaints")).total == 0
    with pytest.raises(sqlite3.IntegrityError, match="only grows"):
        db.execute("DELETE FROM complaint_steps")
    with pytest.raises(sqlite3.IntegrityError, match="only grows"):
        db.execute("UPDATE complaint_steps SET note = 'x'")


async def problem(client: HttpClient, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, str]:
    status, found = await problem_of(client, method, path, json=body)
    return status, found["type"].rpartition(":")[2]


async def test_a_wrong_complaint_is_refused_by_name_and_changes_nothing(client: HttpClient) -> None:
    await complain(client, **OF_COPY)
    status, repeated = await problem_of(
        client, "POST", "/v1/complaints", json=OF_COPY | {"contact": " Meera@Example.com"}
    )
    assert (status, repeated["type"].rpartition(":")[2], repeated["complaint"]) == (409, "duplicate-complaint", 1)
    others = OF_COPY | {"contact": "x@example.com"}
    for wrong, refusal in (
        ({"story_id": 99}, (404, "unknown-story")),
        ({"original_id": "absent"}, (404, "unknown-story")),
        ({"original_id": 2}, (409, "own-story")),
        ({"author_id": "17"}, (409, "own-story")),
        ({"statement": " \n"}, (422, "invalid")),
        ({"statement": "x" * 10_001}, (422, "invalid")),
        ({"contact": ""}, (422, "invalid")),
        ({"original_text": ORIGINAL}, (422, "invalid")),
        ({"original_id": None, "original_text": "दो शब्द"}, (422, "no-story")),
        ({"original_id": None, "original_text": "क" * 50_000}, (413, "too-large")),
        ({"more": 1}, (422, "invalid")),
    ):
        assert await problem(client, "POST", "/v1/complaints", others | wrong) == refusal, list(wrong)
    for path, refusal in (
        ("/v1/complaints/2", (404, "unknown-complaint")),
        ("/v1/complaints/x", (422, "invalid")),
        ("/v1/complaints?limit=0", (422, "invalid")),
        ("/v1/complaints?state=open", (422, "invalid")),
    ):
        assert await problem(client, "GET", path) == refusal, path
    answer = {"by": "judge", "text": "x"}
    assert await problem(client, "POST", "/v1/complaints/1/answers", answer) == (422, "invalid")
    assert ComplaintsAnswer.model_validate_json(await send(client, "GET", "/v1/complaints")).total == 1


async def test_a_complainant_is_named_nowhere_and_forgotten_on_request(
    client: HttpClient, db: sqlite3.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    webhook_events.subscribe(db, [webhook_events.VERDICTS])
    await complain(client, **OF_COPY)
    answered = await send(client, "POST", "/v1/complaints/1/answers", by="complainant", text="मीरा का उत्तर")
    events = [json.loads(event) for (event,) in db.execute("SELECT event FROM webhook_events")]
    assert [event["step"] for event in events] == ["received", "acknowledged", "evidence_made", "complainant_answered"]
    assert format_complaint(events[0]).startswith("neardup: complaint 1 about story 2: received, due 20")
    for shown in (answered, json.dumps(events, ensure_ascii=False), "".join(capsys.readouterr())):
        assert not any(value in shown for value in PERSON.values())
    assert "मीरा" not in json.dumps(events, ensure_ascii=False), "an answer is posted"
    assert json.loads(await send(client, "DELETE", "/v1/complaints/1/complainant")) == {"number": 1}
    left = complaints.read_complaint(db, 1)
    assert left is not None and left.is_open
    assert (left.complainant, left.contact, left.statement) == (None, None, "")
    assert not any(logged.note for logged in left.log)
    assert await problem(client, "DELETE", "/v1/complaints/7/complainant") == (404, "unknown-complaint")


async def test_a_story_that_is_forgotten_closes_its_complaints_and_is_quoted_and_named_nowhere(
    client: HttpClient, db: sqlite3.Connection
) -> None:
    webhook_events.subscribe(db, [webhook_events.VERDICTS])
    for original in ("मूल", None):
        await complain(client, **OF_COPY | {"original_id": original})
    authors.hide(db, "17", "", "Asha")
    await send(client, "DELETE", "/v1/stories/मूल")
    for number in (1, 2):
        left = await complaint_of(client, number)
        assert left.outcome is None and left.evidence is not None and left.evidence.passages == []
        [match] = left.evidence.matches
        assert isinstance(match.story_id, int) and match.title is None, "the name or the title of the story is kept"
    posted = "".join(event for (event,) in db.execute("SELECT event FROM webhook_events"))
    assert "मूल" not in posted, "an event still names the story"
    await send(client, "DELETE", "/v1/stories/2")
    assert {(await complaint_of(client, number)).outcome for number in (1, 2)} == {"story_removed"}
    hidden, *closed = [json.loads(event) for (event,) in db.execute("SELECT event FROM webhook_events")]
    assert (hidden["event"], hidden["stories"]) == ("hide", []), "the author's event still names the story"
    steps_posted = [(event["complaint"], event["step"], event["outcome"]) for event in closed]
    assert steps_posted == [(number, "closed", "story_removed") for number in (1, 2)], "not every step is posted"
