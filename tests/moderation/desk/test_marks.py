"""Law: the pages of a case, a story and an author name the marks of the author's stories, and so does the queue."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from neardup.core.columns import NONE_MADE
from neardup.ledger import connect, marks
from neardup.moderation.wording import MARK_NAMES
from neardup.records import Language, Mark, MarkReason, Marks, Skip, Skipped, Story

from tests.support.copying_story import CopiedFrom, write_copying_story
from tests.support.desk_client import get, named_client
from tests.support.desk_corpus import prose
from tests.support.languages import SAMPLED

TEXTS = [prose(n, 200).split() for n in range(len(SAMPLED))]
PAGES = "/?status=every", "/case/{}", "/story/{}"
ALL_MARKS = tuple(Mark(reason, "63 %" if reason is MarkReason.HIDDEN else "size") for reason in MarkReason)


def mark(db: sqlite3.Connection, story_id: int, language: Language, author: str, found: Marks) -> None:
    marks.put(db, NONE_MADE, [Skipped(Story(story_id, language, author_id=author), Skip.UNCHANGED, marks=found)])


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A ledger with a copying story in each language."""
    with closing(connect(tmp_path / "neardup.db")) as db:
        for n, language in enumerate(SAMPLED):
            sources = [CopiedFrom(TEXTS[n], [(0, 0, 200)], author=f"source{n}")]
            write_copying_story(tmp_path, db, 1001 + 10 * n, language, TEXTS[n], sources, author=f"a{n}")
        yield db


async def test_pages_show_the_marks_of_a_story_and_no_others(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    async with named_client(tmp_path) as client:
        for n, language in enumerate(SAMPLED):
            story_id, reason = 1001 + 10 * n, list(MarkReason)[n % len(MarkReason)]
            paths = [path.format(story_id) for path in PAGES]
            for path in paths:
                assert MARK_NAMES[reason] not in (await get(client, path))[1], (
                    f"{path} has a mark that the story has not"
                )
            mark(ledger, story_id, language, f"a{n}", (Mark(reason, "63 %"),))
            for path in paths:
                status, page = await get(client, path)
                assert (
                    status == 200 and f'<span class="badge">{MARK_NAMES[reason]} 63\N{NO-BREAK SPACE}%</span>' in page
                ), path
            mark(ledger, story_id, language, f"a{n}", ())


async def test_every_mark_has_a_name_in_each_language_of_the_desk(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    mark(ledger, 1001, SAMPLED[0], "a0", ALL_MARKS)
    async with named_client(tmp_path) as client:
        _, english = await get(client, "/story/1001")
        assert all(f">{name}" in english for name in MARK_NAMES.values())
        assert "size" not in english.partition("Marks of the page:")[2].partition("</li>")[0]
        async with client.get("/story/1001", headers={"Accept-Language": "hi"}) as answer:
            page = await answer.text()
        assert not [name for name in MARK_NAMES.values() if f">{name}" in page]


async def test_page_of_an_author_counts_the_marks(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    hidden, controls = Mark(MarkReason.HIDDEN, "63 %"), Mark(MarkReason.CONTROLS, "7 %")
    mark(ledger, 1001, SAMPLED[0], "a0", (hidden, controls))
    mark(ledger, 5, SAMPLED[1], "a0", (hidden,))
    mark(ledger, 6, SAMPLED[1], "only marked", (controls,))
    async with named_client(tmp_path) as client:
        _, page = await get(client, "/author/a0")
        assert "2 stories with marks: 1 control characters, 2 hidden text" in page
        assert "with marks" not in (await get(client, "/author/a1"))[1]
        status, page = await get(client, "/author/only%20marked")
        assert status == 200 and "1 story with marks: 1 control characters" in page
        assert (await get(client, "/author/none"))[0] == 404
