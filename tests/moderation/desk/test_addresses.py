"""Laws of the addresses of the desk: each page and form has the names of stories, whatever characters they have, and
the address of a queue round-trips to its selection.  Whatever others decide meanwhile, a moderator continues with the
next open case, and the queue ends after the last one.
"""

import re
import sqlite3
import unicodedata
from contextlib import closing
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl, quote

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from neardup.config import Config, Content, Detection, Source
from neardup.core.languages import LANGUAGES
from neardup.core.verify.tiers import COPIED_WORDS, EXACT, PASSAGE, RETOLD, list_kinds
from neardup.ledger import case_queue, cases, connect, meaning_flags, serials, verdicts
from neardup.ledger.case_queue import Order
from neardup.ledger.flags import Selection
from neardup.ledger.meaning_flags import ChunkPair, MeaningFlag
from neardup.moderation.desk.addresses import (
    AUTHOR,
    EVERY_CASE,
    MEANING_STATUSES,
    STORY,
    CaseQueue,
    MeaningQueue,
    find_case_position,
    format_meaning_query,
    make_author_url,
    make_story_url,
    parse_meaning_queue,
    quote_shown_id,
    read_author_id,
    read_number,
    read_story_id,
)
from neardup.moderation.desk.pages import MAX_TITLE_LENGTH, short
from neardup.records import Fingerprinted, Language, Signals, Story, Verdict
from neardup.source.parse import LONGEST_NAME, make_printable, parse_id, parse_name
from yarl import URL

from tests.support.builders import commit, fingerprint_of, fingerprinted, flag_pair, ledger_in_memory, verify_pending
from tests.support.desk_client import Client, hidden_fields, named_client, send
from tests.support.languages import HINDI, TEXTS
from tests.support.sampling import count_examples

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
            for a, b in pairs:
                flag_pair(db, ids[a], ids[b], kind, signals=Signals(60, extra={COPIED_WORDS: 90}))
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


selections = st.builds(
    Selection,
    languages=st.just(()) | st.tuples(st.sampled_from(LANGUAGES)),
    kinds=st.just(()) | st.tuples(st.sampled_from(list_kinds())),
    statuses=st.sampled_from(list(MEANING_STATUSES.values())),
    author=st.none() | st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda text: text == text.strip()),
    catalogue=st.none() | st.sampled_from(["Classics", "पुनर्मुद्रण & more"]),
    same_author=st.booleans(),
)
stories = st.none() | st.integers(0, 10**15).map(str) | st.sampled_from(["कथा/1", "a&b=?#%2F", "reference:x/1"])
queues = st.builds(
    lambda selection, story: MeaningQueue(selection, story).only(story=None if story is None else parse_id(story)),
    selections,
    stories,
)
CONFIG = Config(source=Source(manifest=Path("none.csv")), content=Content(url="file:/none"))
KEEPING = replace(CONFIG, detection=Detection(same_author="keep"))


@given(queues)
def test_address_round_trips_to_its_queue(queue: MeaningQueue) -> None:
    query = format_meaning_query(queue)
    assert parse_meaning_queue(dict(parse_qsl(query.removeprefix("?"), keep_blank_values=True)), CONFIG) == queue
    assert query.isascii()
    assert (query == "") == (queue == MeaningQueue())


@given(queues)
def test_pairs_of_one_author_are_in_every_queue_if_they_are_kept(queue: MeaningQueue) -> None:
    query = dict(parse_qsl(format_meaning_query(queue).removeprefix("?"), keep_blank_values=True))
    assert parse_meaning_queue(query, KEEPING) == queue.only(same_author=True)


@pytest.mark.parametrize(
    "query",
    [
        {"language": "klingon"}, {"kind": "EXACT"}, {"status": "withdrawn"}, {"status": "x"}, {"story": "x" * 10_000},
        {"story": "a\x00b"}, {"story": "a\nb"}, {"same_author": "1"},
    ],
)  # fmt: skip
def test_invalid_filters_are_rejected(query: dict[str, str]) -> None:
    with pytest.raises(web.HTTPBadRequest):
        parse_meaning_queue(query, CONFIG)


def test_empty_form_fields_filter_nothing() -> None:
    names = "language", "kind", "status", "author", "story", "same_author"
    assert parse_meaning_queue(dict.fromkeys(names, " "), CONFIG) == MeaningQueue()


@pytest.mark.parametrize("text", ["-1", "x", "1.0", "٣", "9" * 13, "99999999"])
def test_invalid_numbers_are_rejected(text: str) -> None:
    with pytest.raises(web.HTTPBadRequest):
        read_number({"at": text}, "at")


def queue(db: sqlite3.Connection) -> list[int]:
    cases.refresh(db)
    return case_queue.select_ids(db, EVERY_CASE, Order.SIMILARITY, limit=-1, offset=0)


def ledger(size: int) -> sqlite3.Connection:
    """A ledger with this many cases, each of one open flag between two stories."""
    db = ledger_in_memory()
    for n in range(size):
        commit(db, fingerprinted(2 * n, n), fingerprinted(2 * n + 1, n), pairs=[(2 * n, 2 * n + 1)])
    verify_pending(db)
    cases.refresh(db)
    return db


def decide(db: sqlite3.Connection, case_id: int) -> None:
    ids = cases.list_flags(db, case_id)
    verdicts.decide(db, ids, Verdict.QUOTATION, "", "Asha", verdicts.identify_state(db, ids))
    cases.refresh(db)


@settings(deadline=None, max_examples=count_examples(50))
@given(st.integers(2, 12), st.data())
def test_next_case_is_the_next_open_one(size: int, data: st.DataObject) -> None:
    with closing(ledger(size)) as db:
        before = queue(db)
        at = data.draw(st.integers(0, size - 1))
        shown = before[at]
        others = [case_id for case_id in before if case_id != shown]
        for case_id in data.draw(st.lists(st.sampled_from(others), unique=True)):
            decide(db, case_id)  # by another moderator, after the page of `shown` was rendered
        position = find_case_position(db, CaseQueue(), shown, at)
        decide(db, shown)
        after = queue(db)
        expected = next((case_id for case_id in before[at + 1 :] if case_id in after), None)
        assert position.after == expected
        if position.after is not None:
            assert find_case_position(db, CaseQueue(), position.after, position.at).at == after.index(position.after)
            again = find_case_position(db, CaseQueue(), shown, position.at)
            assert again.after == expected, "a repeated request differs"


@settings(deadline=None, max_examples=count_examples(30))
@given(st.integers(1, 8))
def test_queue_can_be_walked_from_end_to_end(size: int) -> None:
    with closing(ledger(size)) as db:
        found = queue(db)
        for at, case_id in enumerate(found):
            position = find_case_position(db, CaseQueue(), case_id, at)
            assert position.in_queue and position.at == at
            assert position.before == (found[at - 1] if at else None)
            assert position.after == (found[at + 1] if at + 1 < size else None)


def test_case_outside_the_queue_keeps_its_position() -> None:
    with closing(ledger(3)) as db:
        decide(db, 0)
        every = CaseQueue().only(status="every")
        assert find_case_position(db, every, 0, 0).in_queue
        assert not find_case_position(db, CaseQueue(), 0, 0).in_queue
        assert find_case_position(db, CaseQueue(), 0, 0).after == queue(db)[0]
        assert find_case_position(db, CaseQueue(), 7, 10_000).after is None


@pytest.mark.parametrize("language", LANGUAGES)
def test_long_title_is_not_cut_inside_a_character(language: Language) -> None:
    text = " ".join(TEXTS[language].split()) * 20
    for start in range(40):
        title = text[start:]
        cut = short(title)
        assert title.startswith(cut[:-1]) and cut.endswith("…")
        assert len(cut) <= MAX_TITLE_LENGTH + 1
        rest = title[len(cut) - 1 :]
        assert short(rest[:MAX_TITLE_LENGTH]) == rest[:MAX_TITLE_LENGTH]
        assert unicodedata.category(rest[0])[0] != "M", "a combining mark is separated from its letter"
    assert short("क" + "्" * 10_000) != ""
