"""Laws of what is said beside a story: each page names its marks and no others, the catalogue of a work, whose name is
hostile to markup, and the earlier account whose removed text it matches; the queues are filtered by catalogues.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from msgspec.structs import replace
from neardup.core.columns import NONE_MADE
from neardup.core.fingerprint.version import version
from neardup.ledger import cases, connect, marks, now_ms, removed_texts, runs, stories
from neardup.ledger.removed_texts import Returned
from neardup.moderation.desk.api import read_case
from neardup.moderation.wording import MARK_NAMES
from neardup.records import (
    Fingerprinted,
    Language,
    Mark,
    MarkReason,
    Marks,
    Signals,
    Skip,
    Skipped,
    Story,
    Verdict,
)
from neardup.source.parse import parse_id

from tests.support.builders import commit, fingerprint_of, flag_pair
from tests.support.copying_story import CopiedFrom, write_copying_story
from tests.support.desk_client import get, named_client, prose
from tests.support.languages import HINDI, SAMPLED
from tests.support.verdicts import give_verdict

TEXTS = [prose(n, 200).split() for n in range(len(SAMPLED))]
PAGES = "/?status=every", "/case/{}", "/story/{}"
ALL_MARKS = tuple(Mark(reason, "63 %" if reason is MarkReason.HIDDEN else "size") for reason in MarkReason)
CLASSICS, MARKUP = "Classics & more", "<b>पुनर्मुद्रण</b>"
CATALOGUES = dict(zip(SAMPLED, [CLASSICS, MARKUP] * 5, strict=True))  # a copied work of each language
COPY_OF_NONE = 99
OPEN = "Any catalogue or none"
TEXT = prose(1, 200).split()
HOSTILE = '"><script>alert(1)</script>'


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


def name_of(number: int, catalogue: str) -> str:
    return f"reference:{catalogue}/{number}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ten works, each copied by one story that is dated before it; and a story that copies another story."""
    with closing(connect(tmp_path / "neardup.db")) as db:
        runs.put(db, "fingerprint_version", version())
        for number, (language, catalogue) in enumerate(CATALOGUES.items()):
            name = name_of(number, catalogue)
            work = Story(parse_id(name), language, f"{number}.html", "poet", f"रचना {number}", 900_000, name=name)
            copy = Story(number, language, f"copy {number}.html", "copier", f"copy {number}", 1)
            flag(db, replace(work, catalogue=catalogue, licence="CC0"), copy)
        flag(db, Story(COPY_OF_NONE - 1, HINDI, title="own 98"), Story(COPY_OF_NONE, HINDI, title="own 99"))
    return tmp_path


def flag(db: sqlite3.Connection, first: Story, second: Story) -> None:
    for story in (first, second):
        commit(db, Fingerprinted(story, fingerprint_of(abs(story.id).to_bytes(16)), None))
    flag_pair(db, first.id, second.id, signals=Signals(40, jaccard=0.6))


async def test_queues_are_filtered_by_catalogue(folder: Path) -> None:
    async with named_client(folder) as client:
        every = "".join([(await get(client, f"/?page={page_number}"))[1] for page_number in (1, 2)])
        assert OPEN in every and all(f"<bdi>{name}</bdi>" in every for name in (CLASSICS,))
        assert every.count(f'<span class="badge"><bdi>{CLASSICS}') == 5
        assert f"copy {COPY_OF_NONE}" not in every and f"own {COPY_OF_NONE}" in every
        for wanted in (CLASSICS, MARKUP):
            status, page = await get(client, f"/?{urlencode({'catalogue': wanted, 'status': 'every'})}")
            assert status == 200 and f"own {COPY_OF_NONE}" not in page
            for number, catalogue in enumerate(CATALOGUES.values()):
                assert (f">copy {number}<" in page) == (catalogue == wanted), number
            assert urlencode({"catalogue": wanted}) in page, "a filter drops the catalogue from the address"
        _, nothing = await get(client, "/?catalogue=none")
        assert "No cases here." in nothing


async def test_markup_in_the_name_of_a_catalogue_stays_text(folder: Path) -> None:
    async with named_client(folder) as client:
        for path in ("/", "/story/1", "/case/1", f"/pair/{parse_id(name_of(1, MARKUP))}/1"):
            async with client.get(path) as answer:
                assert answer.status == 200 and "<b>पुन" not in await answer.text(), path


async def test_pages_of_copies_and_works_name_the_catalogue(folder: Path) -> None:
    name = name_of(0, CLASSICS)
    paths = ["/story/0", "/case/0", f"/pair/{parse_id(name)}/0", f"/pair/0/{quote(name, safe='')}"]
    async with named_client(folder) as client:
        for path in paths:
            status, page = await get(client, path)
            assert status == 200 and CLASSICS in page, path
        for path in (f"/story/{parse_id(name)}", f"/story/{quote(name, safe='')}"):
            status, page = await get(client, path)
            assert status == 200 and "रचना 0" in page, path


def copy(folder: Path, db: sqlite3.Connection, story_id: int, author: str) -> None:
    """A story by an author that copies one by asha, whose id is one lower."""
    write_copying_story(folder, db, story_id, HINDI, TEXT, [CopiedFrom(TEXT, [(0, 0, 200)], "asha")], author=author)


async def test_the_new_account_is_shown_beside_the_earlier_one(tmp_path: Path) -> None:
    with closing(connect(tmp_path / "neardup.db")) as db:
        removed_texts.keep_for(db, 30, now_ms())
        copy(tmp_path, db, 1001, HOSTILE)
        copy(tmp_path, db, 2001, "ravi2")
        give_verdict(db, [(1000, 1001)], Verdict.PLAGIARISM)
        stories.erase(db, [1001])
        [number] = db.execute("SELECT number FROM stories WHERE id = 2001").fetchone()
        removed_texts.record_checked(db, [Returned(number, 1001, "exact", 1.0)], number)
        cases.refresh(db)
        found = read_case(db, cases.find_case(db, 2001) or 0)
        assert found is not None and [match.removed_author for match in found.removed_texts] == [HOSTILE]
    async with named_client(tmp_path) as client:
        for path, shown in (
            ("/", "matches a removed text"),
            ("/case/2001", "a text that was removed from author"),
            ("/story/2001", "a text that was removed from author"),
            ("/author/ravi2", "Earlier accounts"),
            ("/author/%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E", "Later accounts"),
            ("/authors", "Accounts that may have come back"),
        ):
            status, page = await get(client, path)
            assert status == 200 and shown in page, path
            assert path == "/" or "/author/%22%3E%3Cscript" in page or "/author/ravi2" in page, path
            async with client.get(path) as answer:
                assert "<script>alert" not in await answer.text(), path
        assert "Earlier accounts" not in (await get(client, "/author/asha"))[1]
