"""Laws of the case file: it stands by itself, says what the ledger says, is the same each time, and has three pages
before its appendix, in every script.
"""

import hashlib
import re
import sys
import zlib
from collections.abc import Mapping
from contextlib import closing
from html import unescape
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace
from neardup.config import Config, Content, Ledger, Reference, Source
from neardup.config.sections import WorksContent
from neardup.core.columns import NONE_MADE
from neardup.core.languages import SHIPPED
from neardup.core.page import read_file
from neardup.core.text.extraction import Extraction
from neardup.core.verify.text import Text
from neardup.errors import Misuse
from neardup.ledger import complaints, connect, marks, verdicts
from neardup.moderation.case_file import (
    CaseFile,
    compute_digest,
    has_pdf,
    link_to,
    list_notice_languages,
    make_case_file,
    read_case_record,
    render_html,
    render_notice,
    render_pdf,
)
from neardup.query.compare import LoadedStory
from neardup.records import Language, Mark, MarkReason, Skip, Skipped, Story, Verdict, format_percent

from tests.support.copying_story import CopiedFrom, write_copying_story
from tests.support.desk_client import get, named_client
from tests.support.languages import HINDI, MALAYALAM, SAMPLED, TEXTS, URDU
from tests.support.verdicts import CONTACT, PERSON, STATEMENT, decide_case, put_complaint

LANGUAGES = (*SAMPLED, URDU)
WORST = {HINDI: 101, MALAYALAM: 102, URDU: 103}  # stories with many sources, long titles and a long note
TITLE = "<script>alert(1)</script>"
NOTE = "<b>word for word</b> " + "शब्द " * 390
DIGEST = re.compile(r"SHA-256 of the content: <code>([0-9a-f]{64})</code>")


def words_of(language: Language, seed: int, number: int) -> list[str]:
    return Random(seed).choices(TEXTS[language].split(), k=number)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with the story 10 n + 9 in language n, which copies from two, and the WORST; all are decided."""
    folder = tmp_path_factory.mktemp("cases")
    with closing(connect(folder / "neardup.db")) as db:
        for n, language in enumerate(LANGUAGES):
            own, first, second = (words_of(language, 3 * n + k, 200) for k in range(3))
            sources = [CopiedFrom(first, [(50, 20, 120)], title=TITLE), CopiedFrom(second, [(180, 0, 60)], author=None)]
            story = [*own[:50], *first[20:140], *own[50:60], *second[:60], *own[60:100]]
            write_copying_story(folder, db, 1009 + 10 * n, language, story, sources, title=TEXTS[language][:40])
            decide_case(db, 1009 + 10 * n, Verdict.PLAGIARISM, "word for word")
        for language, story_id in WORST.items():
            texts = [words_of(language, 100 * story_id + k, 150) for k in range(12)]
            title = " ".join(words_of(language, 7, 60))
            sources = [CopiedFrom(text, [(150 * k, 0, 150)], title=title) for k, text in enumerate(texts)]
            words = [word for text in texts for word in text]
            write_copying_story(folder, db, 100 * story_id, language, words, sources, title=title)
            decide_case(db, 100 * story_id, Verdict.PLAGIARISM, NOTE)
    return folder


def config_of(folder: Path) -> Config:
    return Config(
        source=Source(manifest=Path("none.csv")),
        content=Content(url=f"file:{folder}", link="https://example.com/story/{id}"),
        ledger=Ledger(path=folder / "neardup.db"),
    )


async def filed(folder: Path, story_id: int) -> CaseFile:
    config = config_of(folder)
    with closing(connect(folder / "neardup.db")) as db:
        record = read_case_record(db, story_id)
    assert record is not None

    async def load(known: Mapping[str, Any]) -> LoadedStory:
        text = read_file((folder / known["path"]).read_bytes(), Extraction())
        assert isinstance(text, Text)
        return LoadedStory(text, known)

    return await make_case_file(record, config, load)


async def test_file_says_what_the_ledger_says_in_every_language(folder: Path) -> None:
    for n, language in enumerate(LANGUAGES):
        case = await filed(folder, 1009 + 10 * n)
        page = render_html(case, SHIPPED)
        shown = " ".join(unescape(re.sub(r"<[^>]+>", "", page)).split())
        for words in (
            f"{format_percent(case.record.found.similarity)} of this story stands in earlier stories by others",
            "published 4 January 1970, 00:00 UTC (listing)",
            "known to neardup since",
            "The source was published 2 days before the story, by the listing.",
            "author copier", "author source", "author not known", "Source 1",
            "Plagiarism, given by Asha,", "on 2 pairs of this story", "word for word",
            f"https://example.com/story/{1009 + 10 * n}", f"https://example.com/story/{1007 + 10 * n}",
            f"The story: {case.passages[0].pair.words} copied words",
        ):  # fmt: skip
            assert words in shown, f"{language}: {words!r} is not in {shown[:1500]}"
        assert page.count("<mark>") >= 2 and "<script" not in page, language
        article = re.search(r"<article>.*</article>", page, re.DOTALL)
        printed = DIGEST.search(page)
        assert article and printed and hashlib.sha256(article[0].encode()).hexdigest() == printed[1], language


async def test_file_is_the_same_each_time_until_something_changes(folder: Path) -> None:
    def digest(case: CaseFile) -> str:
        found = DIGEST.search(render_html(case, SHIPPED))
        assert found
        return found[1]

    before = digest(await filed(folder, 1009))
    assert digest(await filed(folder, 1009)) == before
    with closing(connect(folder / "neardup.db")) as db:
        [decision] = db.execute("SELECT DISTINCT decision FROM verdicts WHERE b = 1009").fetchone()
        verdicts.undo(db, decision, "Ravi", verdicts.identify_state(db, verdicts.list_flags(db, decision)))
        case = await filed(folder, 1009)
        assert case.verdicts == [] and "None stands." in render_html(case, SHIPPED)
        assert digest(case) != before
        assert "Undone: <strong>Plagiarism</strong>, <bdi>Ravi</bdi>" in render_html(case, SHIPPED)
        decide_case(db, 1009, Verdict.PLAGIARISM, "word for word")
    assert compute_digest("<article></article>\n") == compute_digest("<article></article>")


@pytest.mark.parametrize("tick", [1, -1])
async def test_verdict_that_clears_a_story_stays_on_file_and_its_source_names_its_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tick: int
) -> None:
    """The last verdict counts, also if the clock was put back meanwhile."""
    times = count(10_000_000, tick * 1_000_000)
    monkeypatch.setattr(verdicts, "now_ms", lambda: next(times))
    texts = [words_of(HINDI, k, 150) for k in range(3)]
    sources = [CopiedFrom(text, [(150 * k, 0, 150)], author="abc"[k]) for k, text in enumerate(texts)]
    with closing(connect(tmp_path / "neardup.db")) as db:
        words = [word for text in texts for word in text]
        write_copying_story(tmp_path, db, 9, HINDI, words, sources, author="c")
        decide_case(db, 9, Verdict.PLAGIARISM, "word for word")
        for verdict in (Verdict.TEMPLATE, Verdict.NOT_SIMILAR):
            verdicts.decide(db, [1], verdict, "a hymn", "Ravi", verdicts.identify_state(db, [1]))
        db.execute("UPDATE flags SET same_author = 1 WHERE flag_id = 3")
    case = await filed(tmp_path, 9)
    assert [source.about.story_id for source in case.sources] == [7]
    assert [(other.shown, other.status, other.is_same_author) for other in case.others] == [
        (6, "not_similar", False), (8, "open", True),
    ]  # fmt: skip
    assert [(item["verdict"], item["by"], len(item["pairs"])) for item in case.verdicts] == [
        ("not_similar", "Ravi", 1), ("plagiarism", "Asha", 1),
    ]  # fmt: skip
    shown = " ".join(unescape(re.sub(r"<[^>]+>", " ", render_html(case, SHIPPED))).split())
    for sentence in (
        "Not similar , given by Ravi", "a hymn", "2 other stories match this one and do not count as sources",
        "6 was published 3 days before 9, by the listing.", "By the same author",
    ):  # fmt: skip
        assert sentence in shown, f"{sentence!r} is not in {shown}"
    copied = await filed(tmp_path, 7)
    assert (copied.sources, [other.shown for other in copied.others], copied.verdicts) == ((), [9], [])


def _unpacked(pdf: bytes) -> bytes:
    """The objects of a PDF, without the compression of its streams."""
    packed = re.findall(rb"/FlateDecode[^>]*>>\s*stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL)
    return b"".join(zlib.decompressobj().decompress(stream) for stream in packed)


@pytest.mark.parametrize("language", WORST)
async def test_pdf_has_three_pages_before_its_appendix_and_its_fonts_in_it(folder: Path, language: Language) -> None:
    from weasyprint import HTML  # type: ignore[import-untyped] # noqa: PLC0415 - it takes long to load, in each worker

    case = await filed(folder, 100 * WORST[language])
    page = render_html(case, SHIPPED)
    pages = HTML(string=page).render().pages
    appendix = next(n for n, item in enumerate(pages) if "appendix" in item.anchors)
    assert appendix <= 3, f"the appendix begins on page {appendix + 1}"
    assert len(case.sources) == 12
    assert NOTE[:20] in unescape(page) and "<b>word" not in page, "the note is missing, or it is markup"
    pdf = render_pdf(page)
    assert pdf.startswith(b"%PDF") and b"/FontFile" in _unpacked(pdf)


@pytest.mark.parametrize("language", SAMPLED)
async def test_notice_is_in_the_language_of_the_story(folder: Path, language: Language) -> None:
    story_id = 1009 + 10 * LANGUAGES.index(language)
    case = await filed(folder, story_id)
    notice = render_notice(case, SHIPPED)
    share = format_percent(case.record.found.similarity)
    assert SHIPPED[language].code in list_notice_languages()
    for words in (share, TEXTS[language][:40], f"https://example.com/story/{story_id - 2}", str(story_id), TITLE):
        assert words in notice, f"{words!r} is not in {notice}"
    letters = [item for item in notice.replace(TITLE, "") if item.isalpha() and not item.isascii()]
    assert (len(letters) > 150) == (SHIPPED[language].code != "en"), "it is in another script"
    assert not re.search(r"[{}]|\n\n\n", notice), notice


async def test_file_names_the_marks_of_the_story(folder: Path) -> None:
    assert "Marks of the page" not in render_html(await filed(folder, 1009), SHIPPED)
    found = (Mark(MarkReason.HIDDEN, "63 %"), Mark(MarkReason.TRUNCATED, "size"))
    with closing(connect(folder / "neardup.db")) as db:
        for given in (found, ()):
            marks.put(db, NONE_MADE, [Skipped(Story(1019, LANGUAGES[1]), Skip.UNCHANGED, marks=given)])
            shown = unescape(render_html(await filed(folder, 1019), SHIPPED))
            assert ("Marks of the page: hidden text 63\N{NO-BREAK SPACE}%, read in part." in shown) == bool(given), (
                given
            )


async def test_file_has_the_complaints_and_does_not_name_who_complained(folder: Path) -> None:
    with closing(connect(folder / "neardup.db")) as db:
        number = put_complaint(db, 1029, 1027)
        complaints.log_answer(db, number, "author", None, "मैंने लिखा")
        complaints.close(db, number, complaints.UPHELD, "Asha", "taken down")
    shown = unescape(render_html(await filed(folder, 1029), SHIPPED))
    for words in (STATEMENT, "Answer of the author", "मैंने लिखा", "upheld", "taken down", "Compared with the original"):
        assert words in shown, words
    assert PERSON not in shown and CONTACT not in shown


async def test_story_without_sources_has_a_file_but_no_notice(folder: Path) -> None:
    case = await filed(folder, 1007)
    assert "No part of this story is known to be copied" in render_html(case, SHIPPED)
    with pytest.raises(Misuse, match="nothing to notify"):
        render_notice(case, SHIPPED)


def test_links_hold_the_listed_id(folder: Path) -> None:
    assert link_to(config_of(folder), "HINDI", 5, "a/ß?x") == "https://example.com/story/a%2F%C3%9F%3Fx"
    with pytest.raises(ValueError, match="link"):
        Content(url="file:x", link="https://example.com/{name}")
    with pytest.raises(ValueError, match="no http"):
        Content(url="file:x", link="javascript:{id}")


async def test_desk_offers_the_file_for_download(folder: Path) -> None:
    async with named_client(folder) as client:
        assert "/story/1019/file.pdf" in (await get(client, "/story/1019"))[1]
        for ending, kind, start in (("", "text/html", b"<!DOCTYPE html>"), (".pdf", "application/pdf", b"%PDF")):
            async with client.get(f"/story/1019/file{ending}") as answer:
                assert (answer.status, answer.content_type) == (200, kind)
                assert answer.headers["Content-Disposition"].startswith("attachment; filename*=UTF-8''case-1019.")
                assert (await answer.read()).startswith(start)
        assert (await get(client, "/story/7/file"))[0] == 404


async def test_desk_links_no_pdf_that_it_cannot_make(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    has_pdf.cache_clear()
    async with named_client(folder) as client:
        for path in ("/story/1019", "/case/1019"):
            page = (await get(client, path))[1]
            assert "/story/1019/file" in page and "file.pdf" not in page, path
    has_pdf.cache_clear()


def test_links_of_works_hold_the_id_in_their_catalogue(folder: Path) -> None:
    content = WorksContent(url="file:w", link="https://library.example/{language}/{id}")
    reference = Reference(manifest=Path("w.csv"), content=content)
    config = replace(config_of(folder), reference=reference)
    assert link_to(config, "TAMIL", -5, "reference:A/7/b") == "https://library.example/TAMIL/7%2Fb"
    assert link_to(config_of(folder), "TAMIL", -5, "reference:A/7") is None, "a work has no page on the platform"
