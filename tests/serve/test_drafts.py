"""Laws of drafts: what its author wrote before is no match of a draft, a draft is no match of anything, and it ends."""

import json
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from neardup.ledger import connect, now_ms, submissions
from neardup.serve.messages import CheckAnswer, Draft

from tests.support.languages import SAMPLED
from tests.support.sample_texts import STORIES
from tests.support.service import HttpClient, configuration, http_service, problem_of, send

LANGUAGE = SAMPLED[0]
TEXT = STORIES[LANGUAGE][0]
EXCERPT = " ".join(TEXT.split()[: len(TEXT.split()) * 9 // 10])
OTHER = STORIES[LANGUAGE][1]
BY_ASHA = {"language": LANGUAGE, "text": EXCERPT, "author_id": 17}
BY_RAVI = {"language": LANGUAGE, "text": EXCERPT, "author_id": "ravi"}


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[HttpClient]:
    """A service that has the text as story 1 of the author 17."""
    async with http_service(configuration(tmp_path, deadline_seconds=30)) as (client, _):
        await send(client, "PUT", "/v1/stories/1", language=LANGUAGE, text=TEXT, author_id="17")
        yield client


async def check(client: HttpClient, method: str, path: str, **body: Any) -> tuple[str, list[int | str]]:
    answer = CheckAnswer.model_validate_json(await send(client, method, path, **body))
    return answer.verdict, [match.story_id for match in answer.matches]


async def type_of(client: HttpClient, method: str, path: str, **body: Any) -> tuple[int, str]:
    status, problem = await problem_of(client, method, path, json=body or None)
    return status, problem["type"].rpartition(":")[2]


async def test_what_the_author_wrote_before_is_no_match(client: HttpClient) -> None:
    for draft_id in ("1", "2"):  # a new version of the story, and another story by its author
        assert await check(client, "PUT", f"/v1/drafts/{draft_id}", **BY_ASHA) == ("clear", [])
        assert await check(client, "POST", f"/v1/drafts/{draft_id}/check") == ("clear", [])
    assert await check(client, "PUT", "/v1/drafts/3", **BY_RAVI) == ("copy", [1])
    assert await check(client, "POST", "/v1/drafts/3/check") == ("copy", [1])
    assert (await check(client, "POST", "/v1/check", **BY_ASHA)) == ("review", [1]), (
        "a check hides an author's own text"
    )


async def test_a_draft_is_no_match_of_anything(client: HttpClient) -> None:
    draft = {"language": LANGUAGE, "text": OTHER, "author_id": "asha"}
    for text in (OTHER, f"{OTHER} {OTHER}", OTHER):  # earlier versions of itself
        assert await check(client, "PUT", "/v1/drafts/कथा", **draft | {"text": text}) == ("clear", [])
    assert await check(client, "PUT", "/v1/stories/9", language=LANGUAGE, text=OTHER, author_id="ravi") == ("clear", [])
    assert await check(client, "POST", "/v1/drafts/कथा/check") == ("copy", [9]), "a story that came later is a match"


async def test_the_last_of_several_versions_holds_until_it_is_published(client: HttpClient) -> None:
    answers = []
    for n, text in enumerate([EXCERPT, f"{EXCERPT} " * 20, OTHER]):
        answers.append(await send(client, "PUT", "/v1/drafts/2", **BY_ASHA | {"text": text, "title": f"T{n}"}))
    draft = Draft.model_validate_json(await send(client, "GET", "/v1/drafts/2"))
    words = json.loads(answers[-1])["words"]
    assert (draft.story_id, draft.words, draft.title, draft.author_id) == (2, words, "T2", "17")
    assert await type_of(client, "GET", "/v1/stories/2") == (404, "unknown-story")
    await send(client, "PUT", "/v1/stories/2", **BY_ASHA)
    for method, path in (("GET", ""), ("POST", "/check"), ("DELETE", "")):
        assert await type_of(client, method, f"/v1/drafts/2{path}") == (404, "unknown-draft")


async def test_a_draft_ends_when_it_is_discarded_or_forgotten_or_expires(client: HttpClient, tmp_path: Path) -> None:
    for draft_id in (2, 3, 4):
        await send(client, "PUT", f"/v1/drafts/{draft_id}", **BY_ASHA)
    assert json.loads(await send(client, "DELETE", "/v1/drafts/2")) == {"story_id": 2}
    await send(client, "DELETE", "/v1/stories/3")
    with closing(connect(tmp_path / "neardup.db")) as db:
        days = 1000 * 86_400
        assert submissions.find_draft(db, 4, now_ms() + 29 * days) is not None
        assert submissions.find_draft(db, 4, now_ms() + 31 * days) is None
        db.execute("UPDATE drafts SET expires_at = 1 WHERE story_id = 4")
        for draft_id in (2, 3, 4):
            assert await type_of(client, "GET", f"/v1/drafts/{draft_id}") == (404, "unknown-draft")
        submissions.remove_expired(db, now_ms())
        assert db.execute("SELECT count(*) FROM drafts").fetchone() == (0,), "the text of a draft is kept for good"


async def test_a_draft_that_cannot_be_stored_is_refused_by_name(client: HttpClient) -> None:
    await send(client, "PUT", "/v1/stories/5", **BY_ASHA)
    await send(client, "DELETE", "/v1/stories/5")
    for draft_id, body, refusal in (
        ("1", BY_RAVI, (409, "other-author")),
        ("5", BY_ASHA, (409, "forgotten")),
        ("6", BY_ASHA | {"author_id": " "}, (422, "invalid")),
        ("6", {"language": LANGUAGE, "text": TEXT}, (422, "invalid")),
        ("6", BY_ASHA | {"text": "दो शब्द"}, (422, "no-story")),
        ("reference:x%2F1", BY_ASHA, (422, "invalid")),
    ):
        assert await type_of(client, "PUT", f"/v1/drafts/{draft_id}", **body) == refusal, body
    assert await type_of(client, "GET", "/v1/drafts/6") == (404, "unknown-draft")
