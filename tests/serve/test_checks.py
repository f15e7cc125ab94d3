"""Laws of the API on real parts: what is stored is found in every language, the answers agree, and nothing is stored
that was only checked; a story that matches a removed text says so until that is forgotten on request.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import closing
from io import BytesIO
from pathlib import Path
from unittest.mock import Mock
from urllib.parse import quote

import neardup
import pytest
from neardup.errors import Transient
from neardup.http.requests import Refused
from neardup.ledger import authors, connect, now_ms, removed_texts, stories
from neardup.ops.doctor import find_submission_fault
from neardup.records import Language, Verdict
from neardup.serve.messages import (
    BatchAnswer,
    BatchRequest,
    CheckAnswer,
    CompareAnswer,
    CompareRequest,
    MatchesAnswer,
    Problem,
    Stored,
)
from neardup.serve.service import BUSY, Deadline, Service
from neardup.serve.stories import MOST_WORDS, check_batch, compare

from tests.support.languages import CODES, SAMPLED
from tests.support.sample_texts import STORIES
from tests.support.service import HttpClient, configuration, http_service, problem_of, send
from tests.support.verdicts import decide_case

ORIGINALS = {language: 10 * n for n, language in enumerate(SAMPLED, 1)}
WRONG = [
    (b"{", 400, "EOF"),
    (b'{"language": "hi", "text": "\\ud800"}', 400, "hex escape"),
    (b'{"language": "hi"}', 422, "give either text or html"),
    (b'{"language": "hi", "text": "a", "html": "b"}', 422, "give either text or html"),
    (b'{"language": "hi", "text": "a", "texts": "b"}', 422, "texts: unknown member"),
    (b'{"language": "hi", "text": 1}', 422, "text: "),
    (b'{"language": "hi", "text": "a", "id": -1}', 422, "id: "),
    (b'{"language": "hi", "text": "a", "id": "reference:x/1"}', 422, "only a work of the reference"),
    (b'{"language": "hi", "text": "a", "published_at": "soon"}', 422, "published_at: not an RFC 3339 time"),
    (b'{"language": "tlh", "text": "a"}', 422, "unknown language 'tlh'"),
    (b'{"language": "hi", "text": ""}', 422, "empty"),
    (b'{"language": "hi", "html": "<p>"}', 422, "empty"),
    (b"[]", 422, ""),
]


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[HttpClient]:
    async with http_service(configuration(tmp_path, deadline_seconds=30)) as (client, _):
        yield client


def original(language: Language) -> str:
    return STORIES[language][0]


def excerpt(language: Language) -> str:
    """Nine tenths of the original."""
    words = original(language).split()
    return " ".join(words[: len(words) * 9 // 10])


def path_of(story_id: int | str) -> str:
    return f"/v1/stories/{quote(str(story_id), safe='')}"


async def put(client: HttpClient, story_id: int | str, language: Language, text: str, **known: str) -> CheckAnswer:
    stored = await send(client, "PUT", path_of(story_id), language=language, text=text, **known)
    return CheckAnswer.model_validate_json(stored)


async def test_what_is_stored_is_found_in_every_language(client: HttpClient) -> None:
    for language, story_id in ORIGINALS.items():
        stored = await put(client, story_id, language, original(language), author_id="asha", title=f"T {language}")
        assert (stored.verdict, stored.matches) == ("clear", []), language
    for language, story_id in ORIGINALS.items():
        body = {"language": CODES[language], "text": excerpt(language), "author_id": "ravi"}
        found = CheckAnswer.model_validate_json(await send(client, "POST", "/v1/check", **body))
        assert (found.verdict, [match.story_id for match in found.matches]) == ("copy", [story_id]), language
        assert found.similarity > 0.95, f"{language}: {found.similarity}"
        [match] = found.matches
        assert (match.author_id, match.title) == ("asha", f"T {language}")
        copied = sum(span.words for span in match.spans)
        assert copied == sum(span.match_end - span.match_start for span in match.spans) >= 0.95 * found.words, language
        text = await send(client, "POST", "/v1/compare", a={"story_id": story_id}, b={"text": excerpt(language)})
        compared = CompareAnswer.model_validate_json(text)
        assert compared.share_b == 1.0, language
        assert compared.scores.jaccard == match.scores.jaccard, language
        assert compared.scores.containment == match.scores.matched_containment, language
        matches = MatchesAnswer.model_validate_json(await send(client, "GET", f"/v1/stories/{story_id}/matches"))
        assert matches.matches == [], "a check was stored"


@pytest.mark.parametrize(("original_id", "copy_id"), [(1, 2), ("कहानियाँ/पहली", "कहानियाँ/दूसरी #2")])
async def test_a_stored_copy_is_on_record_on_both_sides_until_it_is_forgotten(
    client: HttpClient, tmp_path: Path, original_id: int | str, copy_id: int | str
) -> None:
    language, path = SAMPLED[0], path_of(copy_id)
    early, late = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
    await put(client, original_id, language, original(language), published_at=early)
    first = await put(client, copy_id, language, excerpt(language), published_at=late, author_id="copier")
    again = await put(client, copy_id, language, excerpt(language), published_at=late, author_id="copier")
    assert first.verdict == "copy"
    assert again.model_copy(update={"took_ms": first.took_ms}) == first, "the same request again had another answer"
    of_copy = MatchesAnswer.model_validate_json(await send(client, "GET", f"{path}/matches"))
    of_original = MatchesAnswer.model_validate_json(await send(client, "GET", f"{path_of(original_id)}/matches"))
    [source], [copy] = of_copy.matches, of_original.matches
    assert (source.story_id, source.earlier, copy.story_id, copy.earlier) == (original_id, True, copy_id, False)
    assert first.matches[0].story_id == original_id
    assert source.scores.containment == copy.scores.matched_containment == first.matches[0].scores.containment
    assert (source.spans, source.match_spans) == (copy.match_spans, copy.spans) != ([], [])
    recorded = Stored.model_validate_json(await send(client, "GET", path))
    assert (recorded.similarity, recorded.words, recorded.language) == (first.similarity, first.words, language)
    assert not recorded.hidden
    with closing(connect(tmp_path / "neardup.db")) as db:
        authors.hide(db, "copier", "", "Asha")
    shown = [Stored.model_validate_json(await send(client, "GET", at)) for at in (path, path_of(original_id))]
    assert [story.hidden for story in shown] == [True, False], "the copy is not decided"
    assert json.loads(await send(client, "DELETE", path)) == {"story_id": copy_id}
    for unknown in (path, "/v1/stories/3"):
        status, problem = await problem_of(client, "DELETE", unknown)
        assert (status, problem["type"]) == (404, "urn:neardup:problem:unknown-story")
    assert (await put(client, 3, language, excerpt(SAMPLED[1]))).words, "an id that was unknown is refused now"
    body = {"language": language, "text": excerpt(language)}
    status, problem = await problem_of(client, "PUT", path, json=body)
    assert (status, problem["type"]) == (409, "urn:neardup:problem:forgotten")
    await send(client, "PUT", path, **body, restore=True)
    await send(client, "GET", path)


async def test_the_last_of_several_submissions_of_a_story_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit and its undo, sent before the edit is answered, and a long text, which waits longer than a short one."""
    text = original(SAMPLED[0])
    versions = [text, f"{text} {excerpt(SAMPLED[1])}", f"{text} " * 100, text]
    arrived, get_turn = asyncio.Queue[int](), Service.get_turn

    def note_arrival(service: Service, story_id: int) -> asyncio.Lock:
        arrived.put_nowait(story_id)
        return get_turn(service, story_id)

    monkeypatch.setattr(Service, "get_turn", note_arrival)
    async with http_service(configuration(tmp_path, deadline_seconds=30)) as (client, _):
        for turn in range(4):
            order = [*versions[turn % 3 :], versions[0]]
            sending = []
            for version in order:
                sending.append(asyncio.create_task(put(client, 1, SAMPLED[0], version)))
                await asyncio.wait_for(arrived.get(), 60)
            words = [answer.words for answer in await asyncio.gather(*sending)]
            stored = Stored.model_validate_json(await send(client, "GET", "/v1/stories/1"))
            assert stored.words == words[-1], "an earlier submission replaced a later one"
            found = CheckAnswer.model_validate_json(
                await send(client, "POST", "/v1/check", language=SAMPLED[0], text=excerpt(SAMPLED[0]))
            )
            assert [match.estimated for match in found.matches] == [False], "the page of the story is lost"
    with closing(connect(tmp_path / "neardup.db")) as db:
        assert find_submission_fault(db, tmp_path / "neardup.db") is None


async def test_an_id_with_space_around_it_is_that_of_the_listing(client: HttpClient) -> None:
    for listed, path in ((5, "/v1/stories/5%20"), ("पहली", "/v1/stories/%20" + quote("पहली"))):
        stored = json.loads(await send(client, "PUT", path, language=SAMPLED[0], text=original(SAMPLED[0])))
        assert stored["story_id"] == listed
        await send(client, "GET", path_of(listed))


async def test_a_story_of_too_many_words_is_too_large(client: HttpClient) -> None:
    text = " ".join(f"a{n}" for n in range(MOST_WORDS + 1))
    body = json.dumps({"language": "en", "text": text}).encode()
    headers = {"Content-Type": "application/json"}
    status, problem = await problem_of(client, "POST", "/v1/check", data=BytesIO(body), headers=headers)
    assert (status, problem["fail_open"]) == (413, False), problem


async def test_a_page_and_its_text_have_the_same_answer(client: HttpClient) -> None:
    language = SAMPLED[1]
    await put(client, 1, language, original(language))
    page = f"<html><title>x</title><body><p>{excerpt(language)}</p><script>var x = 1</script></body></html>"
    by_text, by_page = [
        CheckAnswer.model_validate_json(await send(client, "POST", "/v1/check", language=language, **given))
        for given in ({"text": excerpt(language)}, {"html": page})
    ]
    assert by_page.model_copy(update={"took_ms": by_text.took_ms}) == by_text
    assert by_page.verdict == "copy"


async def test_each_story_of_a_batch_has_its_own_result(client: HttpClient) -> None:
    language = SAMPLED[2]
    await put(client, 1, language, original(language))
    stories = [
        {"language": language, "text": excerpt(language)},
        {"language": language, "text": "दो शब्द"},
        {"language": "xx", "text": original(language)},
        {"language": SAMPLED[3], "text": original(SAMPLED[3])},
    ]
    text = await send(client, "POST", "/v1/check:batch", stories=stories)
    copy, short, unknown, clear = BatchAnswer.model_validate_json(text).results
    assert isinstance(copy, CheckAnswer) and copy.verdict == "copy"
    assert isinstance(clear, CheckAnswer) and clear.verdict == "clear"
    assert isinstance(short, Problem) and (short.status, short.reason) == (422, "too_short")
    assert isinstance(unknown, Problem) and unknown.errors[0].where == "language"


async def test_a_request_of_several_stories_fails_once_all_of_its_work_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the work would go on outside its lane, beside that of the next request."""
    stories = [{"language": "hi", "text": str(n)} for n in range(6)]
    batch = BatchRequest.model_validate({"stories": stories})
    pair = CompareRequest.model_validate({"a": {"text": "0"}, "b": {"text": "1"}})
    ended: list[str]

    async def read_slowly(_parts: object, text: str, _html: object) -> None:
        if text == "0":
            raise Transient("the ledger is locked")
        await asyncio.sleep(0)
        ended.append(text)
        raise Refused(BUSY, text)

    monkeypatch.setattr("neardup.serve.stories.read_text", read_slowly)
    for answering, others in (
        (check_batch(Mock(), batch, Deadline(60)), 5),
        (compare(Mock(), pair, Deadline(60)), 1),
    ):
        ended = []
        with pytest.raises(Transient, match="is locked"):
            await answering
        assert len(ended) == others, "work was left behind"


async def test_a_wrong_request_says_what_is_wrong(client: HttpClient) -> None:
    headers = {"Content-Type": "application/json"}
    for body, status, words in WRONG:
        answered, problem = await problem_of(client, "POST", "/v1/check", data=body, headers=headers)
        assert answered == status, problem
        assert words in problem["detail"], problem
        assert not problem["fail_open"]


LANGUAGE = SAMPLED[0]
TEXT = STORIES[LANGUAGE][0]


async def test_a_story_names_the_removed_text_that_it_matches(tmp_path: Path) -> None:
    config = configuration(tmp_path, deadline_seconds=30)
    async with http_service(config) as (client, _), neardup.AsyncClient(str(client.make_url(""))) as caller:
        for n, author in enumerate(["asha", "ravi", "ravi2"], 1):
            await caller.put(n, language=LANGUAGE, text=TEXT, author_id=author, published_at=f"2026-01-0{n}")
        with closing(connect(tmp_path / "neardup.db")) as db:
            removed_texts.keep_for(db, 30, now_ms())
            decide_case(db, 2, Verdict.PLAGIARISM)
            stories.erase(db, [2])  # as a run does whose listing lacks it
        [match] = (await caller.story(3)).removed_matches
        assert (match.author_id, match.kind, match.similarity) == ("ravi", "exact", 1.0)
        assert not (await caller.story(1)).removed_matches, "the story that was copied"
        await caller.forget(1)
        assert not (await caller.story(3)).removed_matches
