"""Laws of an author's watch: an author's token shows where copies of the own stories stand, of no other author, until
it expires; and a digest has what is new of all authors.
"""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from msgspec.structs import replace
from neardup.errors import Misuse
from neardup.http.requests import Refused
from neardup.ledger import connect
from neardup.option_values import Right
from neardup.records import Verdict
from neardup.serve.rights_messages import AuthorCopies, AuthorCopy, AuthorToken, Digest
from neardup.serve.tokens import AuthorTokens, make_author_key, make_signer, new_token
from neardup.source.parse import quote_id

from tests.support.languages import SAMPLED
from tests.support.sample_texts import STORIES
from tests.support.service import HttpClient, configuration, http_service, problem_of
from tests.support.verdicts import give_verdict

LANGUAGE = SAMPLED[0]
TEXT, OTHER = STORIES[LANGUAGE][:2]
PART = " ".join(TEXT.split()[: len(TEXT.split()) * 9 // 10])
PLATFORM = "platform"
# Story: its author and its text, in the order of publication; 17 and "17" are one author, and कथा/1 is an id.
PUBLISHED = {
    1: (17, TEXT), 2: ("ravi", PART), 3: ("लेखक", PART), "कथा/1": ("17", OTHER), 4: ("17", PART), 5: ("ravi", OTHER),
}  # fmt: skip


class Watch:
    """A service with PUBLISHED, whose platform makes tokens for authors."""

    def __init__(self, client: HttpClient, folder: Path, secret: str) -> None:
        self.client = client
        self.folder = folder
        self.secret = secret

    async def send(self, method: str, path: str, token: str | None = None, **body: Any) -> str:
        headers = {"Authorization": f"Bearer {token or self.secret}"}
        async with self.client.request(method, path, json=body or None, headers=headers) as answer:
            text = await answer.text()
            assert answer.status == 200, f"{method} {path}: {text}"
            return text

    async def token_of(self, author: str) -> str:
        made = AuthorToken.model_validate_json(await self.send("POST", f"/v1/authors/{author}/token"))
        return made.token

    async def copies(self, author: str, query: str = "") -> AuthorCopies:
        token = await self.token_of(author)
        return AuthorCopies.model_validate_json(await self.send("GET", f"/v1/authors/{author}/copies{query}", token))

    async def refusal(self, token: str, path: str = "/v1/authors/17/copies", method: str = "GET") -> tuple[int, str]:
        status, problem = await problem_of(self.client, method, path, headers={"Authorization": f"Bearer {token}"})
        return status, problem["type"].rpartition(":")[2]


@pytest.fixture
async def watch(tmp_path: Path) -> AsyncIterator[Watch]:
    tokens, key = tmp_path / "tokens.toml", tmp_path / "author.key"
    secret = new_token(tokens, PLATFORM, frozenset(Right))
    make_author_key(key)
    config = configuration(tmp_path, deadline_seconds=30, tokens=tokens, author_key=key)
    config = replace(config, content=replace(config.content, link="https://example.com/story/{id}"))
    async with http_service(config) as (client, _):
        watch = Watch(client, tmp_path, secret)
        for day, (story_id, (author, text)) in enumerate(PUBLISHED.items(), 1):
            path = f"/v1/stories/{str(story_id).replace('/', '%2F')}"
            published_at = f"2026-01-0{day}T00:00:00Z"
            await watch.send(
                "PUT", path, language=LANGUAGE, text=text, author_id=author, published_at=published_at, title=f"T{day}"
            )
        yield watch


def pairs(copies: list[AuthorCopy]) -> set[tuple[int | str, int | str]]:
    return {(copy.own_story_id, copy.story_id) for copy in copies}


async def test_an_author_sees_the_copies_of_the_own_stories_alone(watch: Watch) -> None:
    found = await watch.copies("17")
    assert pairs(found.copies) == {(1, 2), (1, 3), ("कथा/1", 5)}, "own copies or those of others are listed"
    copy = next(copy for copy in found.copies if copy.story_id == 2)
    assert (copy.own_title, copy.title, copy.link) == ("T1", "T2", "https://example.com/story/2")
    assert (copy.published_at, copy.status, copy.is_later) == ("2026-01-02T00:00:00Z", "open", True)
    assert copy.similarity > 0.9
    assert set(copy.model_dump()) == {
        "own_story_id", "own_title", "story_id", "title", "link", "published_at", "kind", "similarity", "status",
        "flagged_at", "is_later",
    }, "an author may see no moderator, no note and no other author"  # fmt: skip
    assert pairs((await watch.copies("ravi")).copies) == {(2, 3), (2, 4)}
    assert (await watch.copies("absent")).copies == []
    for author in (".", "..", "कवि/1?#%2F"):
        assert (await watch.copies(quote_id(author))).author_id == author
    as_platform = await watch.send("GET", "/v1/authors/17/copies")
    assert pairs(AuthorCopies.model_validate_json(as_platform).copies) == pairs(found.copies)


async def test_pages_have_every_copy_once_and_since_leaves_out_earlier_ones(watch: Watch) -> None:
    seen, query = list[AuthorCopy](), "?limit=1"
    while True:
        part = await watch.copies("17", query)
        seen += part.copies
        if part.next is None:
            break
        query = f"?limit=1&before={part.next}"
    assert len(seen) == 3 and len(pairs(seen)) == 3
    assert (await watch.copies("17", "?since=2999-01-01T00:00:00Z")).copies == []
    with closing(connect(watch.folder / "neardup.db")) as db:
        db.execute("UPDATE flags SET flagged_at = 1 WHERE a = 1 AND b = 2")
    assert len((await watch.copies("17", "?since=2026-01-01T05:30:00%2B05:30")).copies) == 2


async def test_a_verdict_is_shown_without_its_note_and_not_similar_ends_a_copy(watch: Watch) -> None:
    with closing(connect(watch.folder / "neardup.db")) as db:
        give_verdict(db, [(1, 2)], Verdict.PLAGIARISM)
        give_verdict(db, [(1, 3)], Verdict.NOT_SIMILAR)
    found = {copy.story_id: copy.status for copy in (await watch.copies("17")).copies}
    assert found == {2: "plagiarism", 5: "open"}


async def test_the_digest_has_the_new_copies_of_every_author(watch: Watch) -> None:
    seen, after = dict[str, int](), "&after="
    while True:
        query = f"?since=2026-01-01T00:00:00Z&limit=1{after}"
        digest = Digest.model_validate_json(await watch.send("GET", f"/v1/authors/copies{query}"))
        seen |= {news.author_id: news.total for news in digest.authors}
        if digest.next is None:
            break
        after = f"&after={digest.next}"
    assert seen == {"17": 3, "ravi": 2, "लेखक": 1}
    late = Digest.model_validate_json(await watch.send("GET", "/v1/authors/copies?since=2999-01-01T00:00:00Z"))
    assert late.authors == []


async def test_a_token_that_is_not_the_authors_is_refused_by_name(watch: Watch) -> None:
    token = await watch.token_of("17")
    with patch("itsdangerous.timed.time.time", return_value=1_700_000_000):
        expired = await watch.token_of("17")
    assert await watch.refusal(expired) == (401, "expired-token")
    other_key = AuthorTokens(partial(make_signer, "k" * 40), timedelta(hours=1)).make("17", 0).token
    head, body = ({"alg": "none"}, {"author": "17", "exp": 99_999_999_999})
    unsigned = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in (head, body)) + "."
    for forged in (
        other_key, unsigned, f"neardup_author_{unsigned}", f"{token}x", token[:-2], "neardup_author_", "", "लेखक",
    ):  # fmt: skip
        assert await watch.refusal(forged) == (401, "unauthenticated"), forged
    with pytest.raises(Refused, match="not signed"):
        AuthorTokens(partial(make_signer, "k" * 40), timedelta(hours=1)).read_author(
            "neardup_author_\udcff"
        )  # as a byte that is not UTF-8 comes
    assert await watch.refusal(token, "/v1/authors/170/copies") == (403, "other-authors-token")
    assert await watch.refusal(token, "/v1/authors/copies?since=2026-01-01T00:00:00Z") == (401, "unauthenticated")
    assert await watch.refusal(token, "/v1/authors/17/token", "POST") == (401, "unauthenticated")
    checker = new_token(watch.folder / "tokens.toml", "checker", frozenset({Right.CHECK}))
    assert await watch.refusal(checker) == (403, "forbidden")
    for query in ("limit=0", "since=yesterday", "before=x", "colour=red"):
        assert await watch.refusal(token, f"/v1/authors/17/copies?{query}") == (422, "invalid"), query
    assert await watch.refusal(watch.secret, "/v1/authors/copies") == (422, "invalid"), "the digest needs a time"


async def test_without_a_key_no_token_is_made_or_taken(tmp_path: Path) -> None:
    async with http_service(configuration(tmp_path)) as (client, _):
        status, problem = await problem_of(client, "POST", "/v1/authors/17/token")
        assert (status, problem["type"]) == (404, "urn:neardup:problem:no-author-key")
        headers = {"Authorization": "Bearer neardup_author_x"}
        status, problem = await problem_of(client, "GET", "/v1/authors/17/copies", headers=headers)
        assert (status, problem["type"]) == (401, "urn:neardup:problem:unauthenticated")


def test_a_key_file_is_private_and_never_replaced(tmp_path: Path) -> None:
    key = tmp_path / "author.key"
    make_author_key(key)
    assert key.stat().st_mode & 0o077 == 0
    with pytest.raises(Misuse, match="exists"):
        make_author_key(key)
    with pytest.raises(Misuse, match="cannot write"):
        make_author_key(tmp_path / "none" / "author.key")
    lasts = timedelta(hours=1)
    former = AuthorTokens.open(key, lasts)
    token = former.make("कवि 1", 0).token
    assert AuthorTokens.open(key, lasts).read_author(token) == "कवि 1"
    key.unlink()
    assert former.read_author(token) == "कवि 1", "while its file is replaced, the former key holds"
    make_author_key(key)
    with pytest.raises(Refused, match="not signed"):
        former.read_author(token)
    assert former.read_author(AuthorTokens.open(key, lasts).make("कवि 1", 0).token) == "कवि 1"
    key.chmod(0o644)
    with pytest.raises(Misuse, match="every user can read"):
        AuthorTokens.open(key, lasts)
    for content in (b"short", b"\xff" * 40):
        key.write_bytes(content)
        key.chmod(0o600)
        with pytest.raises(Misuse, match="is no key"):
            AuthorTokens.open(key, lasts)
    with pytest.raises(Misuse, match="cannot read"):
        AuthorTokens.open(tmp_path / "absent", lasts)
