"""Law: text of a language that is written from right to left is marked so on every page; other text is not."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from neardup.core.languages import SHIPPED
from neardup.ledger import connect
from neardup.moderation.evidence.page import render_evidence
from neardup.moderation.export.write import ExportOptions, write
from neardup.query.compare import find_evidence
from neardup.records import Fingerprinted, Language, Story
from selectolax.lexbor import LexborHTMLParser, LexborNode

from tests.support.builders import commit, fingerprint_of, flag_pair
from tests.support.compared_stories import THRESHOLDS, story_of
from tests.support.desk_client import desk, post
from tests.support.languages import ENGLISH, HINDI, TEXTS, URDU

DIRECTIONS = {URDU: "rtl", HINDI: "auto", ENGLISH: "auto"}


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A ledger with a flagged pair in each language; the titles are the golden texts."""
    with closing(connect(tmp_path / "neardup.db")) as db:
        for n, language in enumerate(DIRECTIONS):
            for story_id in (2 * n, 2 * n + 1):
                story = Story(story_id, language, title=TEXTS[language], updated_at=1)
                commit(db, Fingerprinted(story, fingerprint_of(story_id.to_bytes(16)), None))
            flag_pair(db, 2 * n, 2 * n + 1, language=language)
        yield db


def directions(nodes: list[LexborNode]) -> set[tuple[str | None, str | None]]:
    """The language and direction of texts on a page; an element without its own has those of what contains it."""
    return {(node.attributes.get("lang"), node.attributes.get("dir")) for node in nodes}


EXPECTED = {(SHIPPED[language].code, direction) for language, direction in DIRECTIONS.items()}


@pytest.mark.parametrize("language", DIRECTIONS)
def test_a_story_on_an_evidence_page_has_its_direction(language: Language) -> None:
    a, b = (story_of(TEXTS[language] + more, id=n, language=language) for n, more in enumerate((" 1", " 2")))
    page = LexborHTMLParser(render_evidence(find_evidence(a, b, THRESHOLDS), a, b, None, SHIPPED))
    assert directions(page.css(".story")) == {(SHIPPED[language].code, DIRECTIONS[language])}
    lines = page.css(".story p")
    assert lines
    assert {line.attributes.get("dir") for line in lines} == {DIRECTIONS[language]}


@pytest.mark.usefixtures("db")
async def test_titles_on_the_desk_have_their_direction(tmp_path: Path) -> None:
    async with desk(tmp_path) as client:
        assert await post(client, "/name", {"name": "Asha"}) == 303
        for path in ("/", "/case/0"):
            async with client.get(path) as answer:
                assert answer.status == 200, path
                found = directions(LexborHTMLParser(await answer.text()).css("bdi.words"))
            assert found == (EXPECTED if path == "/" else {("ur", "rtl")}), path


def test_titles_in_an_exported_page_have_their_direction(db: sqlite3.Connection, tmp_path: Path) -> None:
    write(db, tmp_path / "flags.html", ExportOptions("html"), SHIPPED)
    page = LexborHTMLParser((tmp_path / "flags.html").read_text(encoding="utf-8"))
    titles = page.css(".flag [lang]")
    assert {title.text(strip=True) for title in titles} >= {TEXTS[URDU]}
    assert directions(titles) == EXPECTED
