"""Laws of the desk's languages: every message has a translation with the same placeholders and elements, no page has
anything English left, and a page asked for in any way is in one of the desk's languages, with its direction.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from babel.messages import Catalog
from babel.messages.pofile import read_po, write_po
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.columns import NONE_MADE
from neardup.core.languages import SHIPPED
from neardup.ledger import connect
from neardup.ledger import marks as mark_table
from neardup.moderation.catalogue import TRANSLATIONS, collect_messages, list_translations
from neardup.moderation.desk.pages import choose_preferred_interface, list_interfaces
from neardup.moderation.interface import CURRENT
from neardup.moderation.templating import language_name
from neardup.records import Mark, MarkReason, Skip, Skipped, Story, Verdict
from selectolax.lexbor import LexborHTMLParser

from tests.support.copying_story import CopiedFrom, write_copying_story
from tests.support.desk_client import OPEN, TOKEN, desk, form_token, named_client, origin, prose
from tests.support.languages import HINDI, TAMIL
from tests.support.verdicts import give_verdict, put_complaint

COMPLETE = "hi"
TEXTS = [prose(n, 200).split() for n in range(4)]
PAGES = {
    "cases": "/",
    "all cases": "/?status=every&inbox=mine",
    "no cases": "/?until=2000-01-01",
    "case": "/case/1003",
    "decided case": "/case/2001",
    "pair": "/pair/1000/1003",
    "decided pair": "/pair/2000/2001",
    "story": "/story/1003",
    "search": "/search?q=कहानी",
    "nothing found": "/search?q=x1",
    "sentence": "/search?q=" + "+".join(TEXTS[0][:20]),
    "author": "/author/copier",
    "authors": "/authors",
    "decisions": "/decisions",
    "complaints": "/complaints",
    "complaint": "/complaint/1",
    "statistics": "/statistics",
    "second review": "/second",
    "blind pair": "/pair/2000/2001?blind=1",
    "name": "/name",
    "no such story": "/story/999",
    "no such filter": "/?kind=none",
}
VISIBLE = "title", "aria-label", "placeholder", "alt"
# Names, texts and codes: what is no wording of the desk.
FOREIGN = "script, style, kbd, bdi, code, .words, .languages, body [lang=en]"
NAMES = {"neardup", "review", "UTC", "PDF", "SimHash", "Esc", "copier", "Asha", "Ravi"}


def catalogue(code: str) -> Catalog:
    with (TRANSLATIONS / f"{code}.po").open("rb") as file:
        return read_po(file, code)


def marks(text: str) -> list[str]:
    """The placeholders and elements of a message."""
    return sorted(re.findall(r"%\(\w+\)s|\{\w+\}|</?\w+[^>]*>", text))


def forms(text: object) -> list[str]:
    """A message or its translation: its one form, or those of singular and plural."""
    if isinstance(text, str):
        return [text]
    return [str(message or "") for message in text] if isinstance(text, list | tuple) else []


def test_every_message_has_a_translation() -> None:
    translated = {message.id: message for message in catalogue(COMPLETE) if message.id}
    used = {message.id for message in collect_messages() if message.id}
    assert set(translated) == used, "`python -m neardup.moderation.catalogue` updates the catalogues"
    for message in translated.values():
        assert all(forms(message.string)), f"not translated: {message.id}"
        assert not message.fuzzy, f"not certain: {message.id}"


@pytest.mark.parametrize("path", sorted(TRANSLATIONS.glob("*.po")), ids=lambda path: path.stem)
def test_translations_have_the_placeholders_of_their_messages(path: Path) -> None:
    for message in catalogue(path.stem):
        for text in forms(message.string) if message.id else ():
            if text:
                assert marks(text) in [marks(form) for form in forms(message.id)], f"{message.id} -> {text}"


@given(
    st.text(max_size=40)
    | st.lists(st.sampled_from(["hi", "hi-IN", "en", "ta", "*", ";q=0.5", ";q=0", ","])).map("".join)
)
def test_every_preference_leads_to_a_language_of_the_desk(accepted: str) -> None:
    assert choose_preferred_interface(accepted) in list_interfaces().values()


@pytest.mark.parametrize(
    ("accepted", "code"),
    [
        ("", "en"),
        ("hi-IN,hi;q=0.9,en;q=0.8", "hi"),
        ("ta, hi;q=0.5, en;q=0.4", "hi"),
        ("en;q=0.4, hi;q=0.5", "hi"),
        ("hi;q=0, en;q=0.1", "en"),
        ("fr", "en"),
    ],
)
def test_the_browsers_preference_decides(accepted: str, code: str) -> None:
    assert choose_preferred_interface(accepted).code == code


def test_hindi_groups_digits_and_names_languages_as_in_india() -> None:
    hindi = list_interfaces()["hi"]
    assert (hindi.number(1234567), hindi.time("2026-11-23T13:05:00Z")) == ("12,34,567", "23 नवंबर 2026, 13:05 UTC")
    token = CURRENT.set(hindi)
    try:
        assert language_name(SHIPPED, TAMIL) == "तमिल"
    finally:
        CURRENT.reset(token)
    assert language_name(SHIPPED, TAMIL) == "Tamil"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A ledger in which one author copies from two others, with a verdict."""
    with closing(connect(tmp_path / "neardup.db")) as db:
        story = [*TEXTS[0][:60], *TEXTS[1][:50], *TEXTS[3][:40]]
        sources = [CopiedFrom(TEXTS[0], [(0, 0, 60)], title="कहानी"), CopiedFrom(TEXTS[1], [(60, 0, 50)], author=None)]
        write_copying_story(tmp_path, db, 1003, HINDI, story, sources, title="कहानी")
        write_copying_story(tmp_path, db, 2001, HINDI, TEXTS[2], [CopiedFrom(TEXTS[2], [(0, 0, 200)])])
        give_verdict(db, [(2000, 2001)], Verdict.PLAGIARISM)
        put_complaint(db, 1003, 1001)
        listed = Story(1003, HINDI, author_id="copier")
        found = tuple(Mark(reason, "63 %") for reason in MarkReason)
        mark_table.put(db, NONE_MADE, [Skipped(listed, Skip.UNCHANGED, marks=found)])
        yield db


def english_of(page: str) -> list[str]:
    """The words of a page in Latin letters that are no name, text or code."""
    tree = LexborHTMLParser(page)
    shown = [element.attributes.get(name) or "" for element in tree.css("*") for name in VISIBLE]
    for element in tree.css(FOREIGN):
        element.decompose()
    shown.append(tree.root.text(separator=" ") if tree.root else "")
    return [word for text in shown for word in re.findall(r"[A-Za-z]{2,}", text) if word not in NAMES]


@pytest.mark.usefixtures("ledger")
async def test_no_page_has_english_left(tmp_path: Path) -> None:
    left = {}
    async with named_client(tmp_path, name="Ravi", second_reviews=1.0) as client:
        for name, path in PAGES.items():
            async with client.get(path, headers={"Accept-Language": COMPLETE}) as answer:
                page = await answer.text()
            assert 'lang="hi" dir="ltr"' in page, name
            left[name] = english_of(page)
            async with client.get(path) as answer:
                page = await answer.text()
            assert '<html lang="en" dir="ltr">' in page and english_of(page), name
    assert not any(left.values()), {name: words for name, words in left.items() if words}


@pytest.mark.usefixtures("ledger")
@pytest.mark.parametrize(("path", "form"), [("/case/2001/reopen", {}), ("/cases/verdict", {"verdict": "plagiarism"})])
async def test_no_refused_form_has_english_left(tmp_path: Path, path: str, form: dict[str, str]) -> None:
    async with named_client(tmp_path, name="Ravi") as client:
        sent, headers = {"token": await form_token(client), **form}, origin(client) | {"Accept-Language": COMPLETE}
        async with client.post(path, data=sent, headers=headers) as answer:
            assert (answer.status, english_of(await answer.text())) == (400, [])


async def test_a_chosen_language_is_kept(tmp_path: Path) -> None:
    async with named_client(tmp_path) as client:
        async with client.get("/language/hi?back=/authors", allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (303, "/authors")
        async with client.get("/authors") as answer:
            page = await answer.text()
        assert '<html lang="hi"' in page
        assert 'href="/language/en?back=%2Fauthors"' in page
        for path, status in (("/language/xx", 404), ("/language/hi?back=//evil.example", 303)):
            async with client.get(path, allow_redirects=False) as answer:
                assert (answer.status, answer.headers.get("Location", "/")) == (status, "/")


async def test_the_language_can_be_chosen_before_logging_in(tmp_path: Path) -> None:
    async with desk(tmp_path, OPEN, TOKEN) as client:
        async with client.get("/language/hi?back=/login") as answer:
            page = await answer.text()
        assert not english_of(page)


def test_a_language_is_offered_once_it_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    half = Catalog("ur")
    half.add("Authors", "مصنفین")
    half.add(("%(n)s case", "%(n)s cases"), ("%(n)s کیس", ""))
    monkeypatch.setattr("neardup.moderation.catalogue.TRANSLATIONS", tmp_path)
    for translated in ("", "%(n)s کیس"):
        half["%(n)s case"].string = ("%(n)s کیس", translated)
        with (tmp_path / "ur.po").open("wb") as file:
            write_po(file, half)
        assert [(found.code, found.direction) for found in list_translations()] == [("ur", "rtl")] * bool(translated)
