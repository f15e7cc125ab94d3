"""Stories with names: every address and form of the desk has the names, whatever characters they have."""

import re
from contextlib import closing
from html import unescape
from pathlib import Path
from urllib.parse import quote

from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.verify.tiers import COPIED_WORDS, EXACT, PASSAGE, RETOLD
from neardup.ledger import candidates, connect, meaning_flags, serials, verification
from neardup.ledger.meaning_flags import ChunkPair, MeaningFlag
from neardup.moderation.desk.addresses import (
    AUTHOR,
    STORY,
    make_author_url,
    make_story_url,
    quote_shown_id,
    read_author_id,
    read_story_id,
)
from neardup.pipeline.verifier import BEFORE_ALL
from neardup.records import Assessment, Fingerprinted, Signals, Story
from neardup.source.parse import LONGEST_NAME, make_printable, parse_id, parse_name
from yarl import URL

from tests.support.builders import commit, fingerprint_of
from tests.support.desk_client import Client, hidden_fields, named_client, send
from tests.support.languages import HINDI

NAMES = ["कथा 1/ख", "a b?c#d", "100%2F", "../etc", "{x}", 'q&="<c>', "x;y,z", "..", "e+f", "०", "last"]
MADE = re.compile(r"(?<![\d.])[4-9]\d{18}(?!\d)")  # integers that are made from names
LINKS = re.compile(r'(?:href|action)="(/[^"]*)"')
NO_PAGE = re.compile(r"/(static|language|undo|logout|name|search)\b|/(verdict|reopen|complaint|hide|show|undo)$|\.pdf$")


def write_named(path: Path) -> None:
    """Two serials whose chapters are alike, a cluster of three stories, and a retold pair."""
    ids = [parse_id(name) for name in NAMES]
    stories = [
        Story(
            story_id,
            HINDI,
            name=name,
            author_id=f"a/{n // 4}",
            title=f"t{n // 4} part {n}",
            published_at=n,
            path=f"{n}",
        )
        for n, (name, story_id) in enumerate(zip(NAMES, ids, strict=True))
    ]
    with closing(connect(path)) as db:
        commit(db, *(Fingerprinted(story, fingerprint_of(n.to_bytes(16)), None) for n, story in enumerate(stories)))
        for kind, pairs in {PASSAGE: [(4, 0), (5, 1), (6, 2), (7, 3)], EXACT: [(9, 8), (10, 9)]}.items():
            commit(db, pairs=[(ids[a], ids[b]) for a, b in pairs])
            found = Assessment(kind, Signals(60, extra={COPIED_WORDS: 90}))
            verification.record(db, [(pair, found) for pair in candidates.list_pending(db, BEFORE_ALL, 9)], "v")
        serials.refresh(db)
        a, b = sorted((ids[0], ids[8]))
        hash_of = dict(db.execute("SELECT id, text_hash FROM stories"))
        meaning_flags.put(db, [MeaningFlag(a, b, RETOLD, 0.4, [ChunkPair(0, 0, 0.7)], hash_of[a], hash_of[b])], "m")


listed_ids = st.text(st.characters(codec="utf-8"), max_size=30) | st.sampled_from(
    [*NAMES, ".", "क" * LONGEST_NAME, "\U0010fffd" * LONGEST_NAME, "7", " ", "%2e%2e", "کہانی/۱", "a\n/../b"]
)


def request_at(address: str, route: str) -> web.Request:
    """The request of a browser, which goes up the steps `.` and `..` of an address, however they are written."""
    app = web.Application()

    async def answer(_: web.Request) -> web.Response:
        raise AssertionError

    resource = app.router.add_get(route, answer).resource
    request = make_mocked_request("GET", str(URL(f"http://desk{address}").relative()))
    match = resource and resource._match(request.rel_url.path_safe)  # type: ignore[attr-defined]
    assert match, address
    request.match_info.update(match)
    return request


@given(listed_ids)
def test_an_address_leads_to_its_author(listed: str) -> None:
    author_id = make_printable(listed)
    if author_id is None:
        return
    address = make_author_url(author_id)
    assert read_author_id(request_at(address, f"/author/{AUTHOR}")) == author_id, address
    assert read_author_id(request_at(f"{address}/hide", f"/author/{AUTHOR}/hide")) == author_id, address


@given(listed_ids)
def test_an_address_leads_to_its_story(name: str) -> None:
    try:
        story_id = parse_id(name)
    except ValueError:
        return
    shown = parse_name(name)
    address = make_story_url(story_id if shown is None else shown)
    assert len(address) < 4_000
    assert read_story_id(request_at(address, f"/story/{STORY}")) == story_id


async def test_every_page_and_form_has_the_names(tmp_path: Path) -> None:
    write_named(tmp_path / "neardup.db")
    in_addresses = {quote_shown_id(name) for name in NAMES}
    async with named_client(tmp_path) as client:
        seen = await crawl(client, f"/search?q={quote(NAMES[1])}")
        reached = {part for path in seen for part in path.partition("?")[0].split("/")[2:]}
        assert in_addresses <= reached, in_addresses - reached
        assert {path.split("/")[1] for path in seen} >= {"case", "pair", "story", "meaning", "serials", "author"}
        queue = await page_at(client, "/")
        chosen = dict(re.findall(r'name="(case-[^"]*)" value="([^"]*)"', queue))
        form = hidden_fields(queue, "chosen") | {unescape(name): value for name, value in chosen.items()}
        status, target, _ = await send(client, "/cases/verdict", form | {"verdict": "quotation"})
        assert status == 303 and len(chosen) > 1
        assert_named(target, await page_at(client, target))
        assert_named("/decisions", await page_at(client, "/decisions"))


async def crawl(client: Client, *first: str) -> set[str]:
    """Follow every link from the front page on; returns the addresses."""
    seen, waiting = set(first), ["/", *first]
    while waiting:
        path = waiting.pop()
        page = await page_at(client, path)
        assert_named(path, page)
        found = {unescape(link).partition("#")[0] for link in LINKS.findall(page)}
        new = {link for link in found if not NO_PAGE.search(link) and "?" not in link} - seen
        seen |= found
        waiting += new
    return seen


async def page_at(client: Client, path: str) -> str:
    async with client.get(path) as answer:
        text = await answer.text()
        assert answer.status == 200, f"{answer.status} at {path}"
        assert_named(f"the headers at {path}", str(answer.headers))
    return text


def assert_named(where: str, text: str) -> None:
    """A page has no integer that is made from a name."""
    made = set(MADE.findall(text))
    at = text.find(next(iter(made), ""))
    assert not made, f"{where} has {made}: {text[max(at - 200, 0) : at + 40]}"
