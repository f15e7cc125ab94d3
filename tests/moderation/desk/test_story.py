"""Laws of the pages of cases and stories: a case is decided only as it was seen, with its open pairs and no others; a
page is shown whatever happened to its text; queues count what they list; and serials that match are named by their
chapters, with a plot that leads to each pair of them.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from html import unescape
from io import StringIO
from pathlib import Path

import pytest
from neardup.core.verify.tiers import COPIED_WORDS, EXACT, PARTIAL, PASSAGE
from neardup.ledger import connect, first_seen, flags, serials
from neardup.moderation.desk.api import read_case
from neardup.moderation.evidence.terminal import render_report
from neardup.moderation.export.tables import export_row
from neardup.pages.reader_pool import ReaderPool
from neardup.query.proof import make_key, read_proof, verify
from neardup.query.similarity import compute_similarity
from neardup.records import Fingerprinted, Signals, Story
from rich.console import Console

from tests.support.builders import commit, fingerprint_of, flag_pair
from tests.support.copying_story import CopiedFrom, write_copying_story
from tests.support.desk_client import get, hidden_fields, named_client, prose, send
from tests.support.languages import HINDI, TAMIL

OWN, FIRST, SECOND, THIRD = (prose(n, 200).split() for n in range(4))
STORY = [*OWN[:50], *FIRST[20:120], *OWN[50:60], *SECOND[:40], *OWN[60:100]]  # 240 words, 140 of them copied
COPYING, OTHER, SERIAL = 1003, 2001, 3002  # the ids of three stories that copy
TITLE = "<script>alert(1)</script> कहानी"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A ledger with COPYING, which has three sources, OTHER, which has one, and SERIAL, with one by its own author."""
    with closing(connect(tmp_path / "neardup.db")) as db:
        sources = [
            CopiedFrom(FIRST, [(50, 20, 100)], title=TITLE),
            CopiedFrom(SECOND, [(160, 0, 40)], author=None),
            CopiedFrom(FIRST[20:80], [(50, 0, 60)], author='x" onload="alert(2)'),
        ]
        write_copying_story(tmp_path, db, COPYING, HINDI, STORY, sources, title=TITLE)
        copy = CopiedFrom(THIRD, [(0, 0, 200)], kind=EXACT)
        write_copying_story(tmp_path, db, OTHER, TAMIL, THIRD, [copy])
        recap = [CopiedFrom(OWN, [(0, 0, 100)], author="one"), CopiedFrom(SECOND, [(100, 0, 100)], author="two")]
        write_copying_story(tmp_path, db, SERIAL, HINDI, [*OWN[:100], *SECOND[:100]], recap, author="one")
        yield db


def statuses(db: sqlite3.Connection) -> dict[tuple[int, int], str]:
    return {(a, b): status for a, b, status in db.execute("SELECT a, b, status FROM flags")}


def with_status(db: sqlite3.Connection, status: str) -> set[tuple[int, int]]:
    return {pair for pair, its in statuses(db).items() if its == status}


def case_on(page: str, action: str) -> str:
    """The address of the form of a case's page that gives a verdict or reopens the case."""
    [path] = re.findall(rf'action="(/case/\d+/{action})"', page)
    return str(path)


PAIRS = {(1000, COPYING), (1001, COPYING), (1002, COPYING)}


@pytest.mark.usefixtures("ledger")
async def test_report_lists_sources_by_share(tmp_path: Path) -> None:
    async with named_client(tmp_path) as client:
        status, page = await get(client, f"/story/{COPYING}")
    assert status == 200
    assert "58 % of this story stands in earlier stories by others" in page
    assert "140 of 240 words, from 3 sources" in page
    assert re.findall(r'class="source" href="/pair/(\d+)/1003', page) == ["1000", "1002", "1001"]
    assert re.findall(r"<strong>(\d+)\s%</strong>, (\d+) words", page) == [("42", "100"), ("25", "60"), ("17", "40")]
    marks = re.findall(r'<mark class="s(\d)" data-passage="(\d)" id="p\d"><a class="jump" href="([^"]*)"', page)
    assert marks == [
        ("1", "1", f"/pair/1000/{COPYING}?word=50#here"),
        ("3", "2", f"/pair/1001/{COPYING}?word=160#here"),
    ]
    assert "100 words from source 1, also in 2" in page, "the second source is hidden by the first, and not said to be"
    assert "author not known" in page


@pytest.mark.usefixtures("ledger")
async def test_source_is_left_out_and_counted_again(tmp_path: Path) -> None:
    async with named_client(tmp_path) as client:
        _, page = await get(client, f"/case/{COPYING}?sort=date&at=0")
        leave_out = re.findall(r'href="([^"]*)">Leave this source out', page)
        assert [address.partition("without=")[2] for address in leave_out] == [
            "1000#sources",
            "1002#sources",
            "1001#sources",
        ]
        assert all("sort=date&at=0" in address for address in leave_out), "the place in the queue is lost"
        _, page = await get(client, leave_out[0])
        assert "42 % of this story stands in stories by others without the source that is left out" in page
        assert "100 of 240 words, from 2 sources" in page
        assert re.findall(r"words from source (\d)", page) == ["2", "3"], "the numbers of the sources are others"
        [again] = re.findall(r'href="([^"]*)">Count this source again', page)
        assert "58 % of this story" in (await get(client, again))[1]
        _, page = await get(client, f"/story/{COPYING}?without=1000&without=1001&without=1002&without=7")
        assert "0 % of this story stands in stories by others without the 3 sources that are left out" in page
        _, page = await get(client, f"/story/{OTHER}")
        assert "Leave this source out" not in page, "there is no other source"
        assert (await get(client, f"/story/{COPYING}?without=a%01b"))[0] == 400


@pytest.mark.usefixtures("ledger")
async def test_titles_and_authors_are_text(tmp_path: Path) -> None:
    async with named_client(tmp_path) as client:
        for path in (f"/story/{COPYING}", "/", f"/case/{COPYING}", f"/pair/1000/{COPYING}?word=60"):
            async with client.get(path) as answer:
                page = await answer.text()
            assert answer.status == 200
            assert "&lt;script&gt;alert(1)" in page
            assert "<script>alert" not in page
            assert 'x" onload' not in page
            assert not re.findall(r"<[^>]* on\w+=|<style|<script>|style=", page), "inline code breaks the policy"


async def test_unknown_stories_have_a_page_that_says_so(tmp_path: Path) -> None:
    async with named_client(tmp_path) as client:
        for path in ("/story/5", "/story/0", "/story/x", "/story/-1", "/story/" + "9" * 30, "/story/1.5", "/story/5/x"):
            status, page = await get(client, path)
            assert (status, "Back to the queue" in page) == (404, True), path
        for query in ("at=x", "sort=x", "similarity=7", "done=-1", "inbox=x", "since=x", "authors=x", "status=x"):
            assert (await get(client, f"/case/{COPYING}?{query}"))[0] == 400, query


async def test_story_without_text_is_reported_from_the_ledger(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    (tmp_path / f"{COPYING}.html").unlink()
    (tmp_path / f"{OTHER}.html").write_text(f"<p>{' '.join(FIRST)}</p>")
    async with named_client(tmp_path) as client:
        status, page = await get(client, f"/story/{COPYING}")
        assert status == 200
        assert "The text of this story is not available" in page
        assert "58 % of this story" in page
        assert 'class="source"' in page and "<mark" not in page
        status, page = await get(client, f"/story/{OTHER}")
        assert (status, "The page has changed since it was compared" in page) == (200, True)
        assert FIRST[0] in page and "<mark" not in page
        status, page = await get(client, "/story/1000")
        assert (status, "No part of this story is known to be copied from a story by others" in page) == (200, True)
    assert statuses(ledger)[1000, COPYING] == "open"


async def test_case_is_decided_with_its_open_pairs_and_undone(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    async with named_client(tmp_path) as client:
        _, page = await get(client, "/pair/1001/1003")
        form = hidden_fields(page) | {"verdict": "quotation"}
        assert (await send(client, "/pair/1001/1003/verdict", form))[0] == 303
        _, page = await get(client, f"/case/{COPYING}?language=HINDI&at=0")
        assert "all 2 open pairs" in page and "1 of 2" in page
        form = hidden_fields(page) | {"verdict": "plagiarism", "note": "woven together"}
        status, target, _ = await send(client, case_on(page, "verdict"), form)
        assert (status, target[:6], target.endswith("?language=HINDI&at=0&done=2")) == (303, "/case/", True), target
        assert with_status(ledger, "plagiarism") == {(1000, COPYING), (1002, COPYING)}
        assert with_status(ledger, "quotation") == {(1001, COPYING)}, "a verdict was replaced unasked"
        _, page = await get(client, target)
        assert "2 pairs: <strong>plagiarism" in page
        status, target, _ = await send(client, "/undo/2", hidden_fields(page, "done"))
        assert (status, target.endswith("?language=HINDI&at=0")) == (303, True)
        _, page = await get(client, target)
        assert "all 2 open pairs" in page, "the undo does not lead back to its case"
    assert with_status(ledger, "quotation") == {(1001, COPYING)}
    assert PAIRS - {(1001, COPYING)} <= with_status(ledger, "open")


async def test_pairs_are_left_out_of_a_verdict_also_after_a_conflict(
    tmp_path: Path, ledger: sqlite3.Connection
) -> None:
    async with named_client(tmp_path) as client:
        _, page = await get(client, f"/case/{COPYING}")
        left_out = dict(ledger.execute("SELECT 'except-' || flag_id, 1 FROM flags WHERE a = 1002 AND b = 1003"))
        assert set(left_out) <= set(re.findall(r'name="(except-\d+)"', page))
        form = hidden_fields(page) | {"verdict": "plagiarism", "note": "नोट"} | dict.fromkeys(left_out, "1")
        _, pair = await get(client, "/pair/1000/1003")
        assert (await send(client, "/pair/1000/1003/verdict", hidden_fields(pair) | {"verdict": "quotation"}))[0] == 303
        status, _, conflict = await send(client, case_on(page, "verdict"), form)
        assert (status, "नोट</textarea>" in conflict) == (409, True)
        assert not with_status(ledger, "plagiarism")
        again = hidden_fields(conflict) | {"verdict": "plagiarism"}
        assert (await send(client, case_on(page, "verdict"), again))[0] == 303
        assert with_status(ledger, "plagiarism") == {(1001, COPYING)}, "the conflict forgot what was left out"
        assert (await send(client, "/case/5/verdict", again))[0] == 409
        for wrong in ("x", "reopened"):
            assert (await send(client, case_on(page, "verdict"), again | {"verdict": wrong}))[0] == 400
        assert (await send(client, case_on(page, "verdict"), again | {"token": "x"}))[0] == 403


async def test_verdict_leads_from_case_to_case(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    async with named_client(tmp_path) as client:
        _, page = await get(client, "/")
        path = unescape(re.findall(r'class="row" href="([^"]*)"', page)[0])
        for n, lead in enumerate([OTHER, COPYING, SERIAL], 1):
            _, page = await get(client, path)
            assert f"Story {lead}:" in page and f"1 of {4 - n}</span>" in page
            form = hidden_fields(page) | {"verdict": "plagiarism"}
            status, path, _ = await send(client, case_on(page, "verdict"), form)
            assert status == 303
        assert path.startswith("/?done=")
    assert with_status(ledger, "open") == {(3000, SERIAL)}, "the author's own pair was decided, too"


async def test_chosen_cases_get_one_verdict_and_are_undone_together(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    async with named_client(tmp_path) as client:
        decided = PAIRS | {(2000, OTHER), (3001, SERIAL)}
        _, page = await get(client, "/?sort=date")
        marks = {name: unescape(mark) for name, mark in re.findall(r'name="(case-\d+)" value="([^"]*)"', page)}
        form = hidden_fields(page, "chosen") | {"verdict": "template", "note": "a prayer"}
        assert (await send(client, "/cases/verdict", form))[0] == 400, "no case was chosen"
        changed = dict.fromkeys(list(marks)[:1], "another mark")
        assert (await send(client, "/cases/verdict", form | changed))[0] == 409
        status, target, _ = await send(client, "/cases/verdict", form | marks)
        assert (status, target) == (303, "/?sort=date&done=1")
        assert with_status(ledger, "template") == decided
        _, page = await get(client, target)
        assert "3 cases, 5 pairs" in page
        assert (await send(client, "/undo/1", hidden_fields(page, "done")))[:2] == (303, "/?sort=date")
    assert with_status(ledger, "open") >= decided


async def test_decided_case_is_opened_again_for_a_reason(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    async with named_client(tmp_path) as client:
        _, page = await get(client, f"/case/{OTHER}")
        await send(client, case_on(page, "verdict"), hidden_fields(page) | {"verdict": "plagiarism", "note": "same"})
        _, page = await get(client, f"/case/{OTHER}")
        form = hidden_fields(page)
        assert (await send(client, case_on(page, "reopen"), form | {"note": " "}))[0] == 400
        status, target, _ = await send(client, case_on(page, "reopen"), form | {"note": "the author objects"})
        assert status == 303
        _, page = await get(client, target)
        assert "the author objects" in page and "same" in page, "the history is lost"
        assert "Your verdict on the case" in page
    assert not with_status(ledger, "plagiarism")


async def test_story_says_when_it_was_seen_first_and_offers_the_proof(
    tmp_path: Path, ledger: sqlite3.Connection
) -> None:
    for digest, at in ((b"1" * 32, 1_000), (b"2" * 32, 9_000)):
        first_seen.append(ledger, [OTHER, COPYING], [digest, digest], at)
    link = f'<a href="/story/{COPYING}/proof">signed proof (JSON)</a>'
    said = "In the log of texts since 1 January 1970, 00:00 UTC, entry 2"
    async with named_client(tmp_path) as client:
        _, page = await get(client, f"/story/{COPYING}")
        assert said in page and link not in page, "without a key nothing is signed"
    public_key = make_key(tmp_path / "key")
    async with named_client(tmp_path, proof_key=tmp_path / "key") as client:
        for path in (f"/story/{COPYING}", f"/case/{COPYING}"):
            assert f"{said}: {link}" in (await get(client, path))[1]
        async with client.get(f"/story/{COPYING}/proof") as answer:
            content = await answer.read()
        assert (await get(client, "/story/7/proof"))[0] == 404
    verified = verify(read_proof(content), public_key)
    assert (verified.head.size, [entry.seen_at for entry in verified.proof.entries]) == (4, [1_000, 9_000])


async def test_case_that_another_has_open_is_read_and_not_decided(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    async with named_client(tmp_path) as client:
        _, page = await get(client, f"/case/{COPYING}")
        form = hidden_fields(page) | {"verdict": "plagiarism", "note": "नोट"}
        assert (await send(client, "/name", {"token": form["token"], "name": "Ravi"}))[0] == 303
        _, seen = await get(client, f"/case/{COPYING}")
        assert "Asha</bdi> has this case open" in seen and 'name="verdict"' not in seen
        _, queue = await get(client, "/")
        assert "Asha</bdi> has it open" in queue and queue.count('type="checkbox"') == 2
        assert [(await get(client, f"/?inbox={inbox}"))[1].count('class="row"') for inbox in ("mine", "free")] == [0, 2]
        status, _, refused = await send(client, case_on(page, "verdict"), form)
        assert (status, "Asha has this case open" in refused, "नोट</textarea>" in refused) == (409, True, True)
        assert not with_status(ledger, "plagiarism")


async def test_queues_list_and_count_by_the_same_filters(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    async with named_client(tmp_path) as client:
        _, page = await get(client, "/")
        assert re.findall(r">(\d+)\s% copied</strong>", page)[:2] == ["100", "58"]
        assert "3 cases</h1>" in page
        assert re.findall(r"(Hindi|Tamil) <span class=\"n\">(\d)", page) == [("Hindi", "2"), ("Tamil", "1")]
        for query, n in (("similarity=0.75", 1), ("language=HINDI", 2), (f"kind={PARTIAL}", 2), ("status=judged", 0)):
            _, page = await get(client, f"/?{query}")
            assert page.count('class="row"') == n, query


CHAPTERS = [(n, n + 10) for n in range(1, 5)]


def write_serials(path: Path) -> None:
    """Chapters 1 to 4 of "asha" are chapters 3 to 6 of "ravi"."""
    with closing(connect(path)) as db:
        for author, ids, first in (("asha", range(1, 5), 1), ("ravi", range(11, 15), 3)):
            for place, story_id in enumerate(ids, first):
                story = Story(story_id, HINDI, author_id=author, title=f"{author} part {place}", published_at=story_id)
                commit(db, Fingerprinted(story, fingerprint_of(story_id.to_bytes(16)), None))
        for a, b in CHAPTERS:
            flag_pair(db, b, a, PASSAGE, signals=Signals(60, extra={COPIED_WORDS: 90}))
        serials.refresh(db)


async def test_case_names_the_chapters_and_the_plot_leads_to_each_pair(tmp_path: Path) -> None:
    write_serials(tmp_path / "neardup.db")
    async with named_client(tmp_path) as client:
        _, case = await get(client, "/case/12")
        _, plot = await get(client, "/serials/12/2")
    said = "chapters 3 to 6 are chapters 1 to 4 of the source"
    assert said in case and said in plot
    assert '<a href="/serials/1/11">' in case
    svg = plot[plot.index('<svg class="dots"') : plot.index("</svg>", plot.index('<svg class="dots"'))]
    for a, b in CHAPTERS:
        assert f'<a href="/pair/{a}/{b}"><rect class="part s1" x="{a - 1}" y="{a - 1}"' in svg
    with closing(connect(tmp_path / "neardup.db")) as db:
        found = read_case(db, 11)
    assert found is not None
    assert [serial.model_dump(mode="json") for serial in found.serials] == [
        {
            "source_author_id": "asha",
            "source_serial": "asha",
            "copy_author_id": "ravi",
            "copy_serial": "ravi",
            "aligned_pairs": 4,
            "parts": [{"source": [1, 4], "copy": [3, 6]}],
        }
    ]


def read_nothing() -> ReaderPool:
    raise AssertionError("no words are copied that could be shown")


async def test_exports_and_show_name_the_works_of_chapters(tmp_path: Path) -> None:
    path = tmp_path / "neardup.db"
    write_serials(path)
    with closing(connect(path)) as db:
        rows = [export_row(row, {}) for row in flags.select(db)]
    assert {(row["story_serial"], row["matched_serial"]) for row in rows} == {("ravi", "asha")}
    report = await compute_similarity(path, read_nothing, 12, "12")
    assert (report.serial, [match["source_serial"] for match in report.serial_matches]) == ("ravi", ["asha"])
    printed = StringIO()
    Console(width=200, file=printed).print(render_report(report))
    said = "serial ravi by author ravi follows asha by author asha: chapters 3 to 6 are chapters 1 to 4"
    assert said in printed.getvalue()
