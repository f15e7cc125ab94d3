"""Drawn requests, most of them wrong, to the desk's API and to its pages: none ends as a failure of the desk.

REQUESTS=N sends N to each address.
"""

import json
import os
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from neardup.http.tokens import add_token
from neardup.ledger import connect

from tests.support.builders import commit, fingerprinted, verify_pending
from tests.support.desk_client import desk, named_client

REQUESTS = int(os.environ.get("REQUESTS", "15"))
IDS = (
    "1",
    "2",
    "3",
    "0",
    "-1",
    "abc",
    "9" * 19,
    "9" * 30,
    "%00",
    "%ff",
    "कथा",
    "reference:x/1",
    "1.0",
    "%201",
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
