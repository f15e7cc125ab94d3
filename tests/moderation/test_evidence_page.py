"""Laws: read as a browser reads it, the page says both stories, sign for sign; whatever a story holds, it is text; each
passage leads to its other side; and nothing on the page needs anything but itself.
"""

import base64
import hashlib
import re
import unicodedata
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.fingerprint.version import TEXTS
from neardup.core.verify.clusters import clusters
from neardup.moderation.evidence.graph import Graph, graph
from neardup.moderation.evidence.page import render_evidence
from neardup.moderation.templating import UNSEEN, moment, visible
from neardup.query.evidence import WithoutText, WithText, evidence, evidence_on_record
from neardup.records import ISO_CODES, LANGUAGES, Language
from selectolax.lexbor import LexborHTMLParser, LexborNode

from tests.support.compared_stories import THRESHOLDS, every_planted_pair, grapheme_texts, sample, with_text

ATTACKS = [
    "<script>alert(1)</script>",
    "</mark></p></main></html>",
    "<!-- ",
    "&lt;b&gt; &amp;amp; &#60;",
    "=cmd|' /C calc'!A0",
    "{{ 7 * 7 }} {% raw %}",
    "\u202etxt.exe\u202c",
    "\u2067\u2066",
    "\x00\x1b[2J\x07",
    "\ud800 lone \udfff",
    "x" * 10_000,
    "z" + "\u0301" * 100,
    "العربية עברית",
    "' onclick=alert(1) \"",
]
CODES = {language: code for code, language in ISO_CODES.items()}


def page_of(a: WithText, b: WithText, drawn: Graph | None = None) -> LexborHTMLParser:
    return LexborHTMLParser(render_evidence(evidence(a, b, THRESHOLDS), a, b, drawn))


def stories_of(page: LexborHTMLParser) -> list[LexborNode]:
    found: list[LexborNode] = page.css(".story")
    return found


def the(page: LexborHTMLParser, selector: str) -> LexborNode:
    [node] = page.css(selector)
    return node


def said(story: LexborNode) -> str:
    """The words of a story on a page, without what the page itself says between them."""
    for own in story.css(".jump, summary"):
        own.decompose()
    return "".join(story.text(deep=True).split())


def assert_whole(page: LexborHTMLParser, *stories: WithText) -> None:
    assert len(stories_of(page)) == len(stories)
    for shown, one in zip(stories_of(page), stories, strict=True):
        assert said(shown) == "".join(visible(unicodedata.normalize("NFC", one.text)).split())


def assert_harmless(page: LexborHTMLParser) -> None:
    html = page.html or ""
    assert not UNSEEN.search(html.replace("\r", "")), "a control sign is on the page"
    assert len(page.css("script")) == len(page.css("style")) == len(page.css("main")) == 1
    for node in page.css("*"):
        assert not {"style", "src", "onclick", "onload"} & set(node.attributes), node.html
        assert (node.attributes.get("href") or "#").startswith("#"), node.html


def assert_linked(page: LexborHTMLParser) -> None:
    ids = [node.attributes["id"] for node in page.css("[id]")]
    assert len(ids) == len(set(ids)), "two parts of one name"
    for link in page.css("[href]"):
        assert (link.attributes["href"] or "")[1:] in ids, link.html
    for mark in page.css(".story mark[id]"):
        name = mark.attributes["id"] or ""
        [jump] = mark.css(".jump")
        assert jump.attributes["href"] == f"#{'b' if name[0] == 'a' else 'a'}{name[1:]}"


@every_planted_pair
def test_planted_pairs_are_shown_in_their_language(pair: dict[str, Any]) -> None:
    language = LANGUAGES[pair["a"] // 1000 - 4100]
    a, b = (with_text(sample(pair[side]).text, id=pair[side], language=str(language)) for side in "ab")
    page = page_of(a, b)
    assert [story.attributes["lang"] for story in stories_of(page)] == [CODES[language]] * 2
    assert_linked(page)
    assert_harmless(page)
    assert_whole(page, a, b)
    assert "of A stands in B" in the(page, "h1").text() or pair["kind"] == "exact"


@settings(deadline=None, max_examples=50)
@given(grapheme_texts, st.lists(st.sampled_from(ATTACKS), max_size=4), st.sampled_from(Language))
def test_whatever_a_story_holds_it_is_text(wild: str, attacks: list[str], language: Language) -> None:
    hostile = " ".join([wild, *attacks])
    a = with_text(f"{hostile} {TEXTS[language]}", title=hostile, author_id=hostile, id=1, language=str(language))
    b = with_text(f"{TEXTS[language]}\n{hostile}", title=hostile, id=2)
    [cluster] = clusters([(1, 2, 0.5), (2, 3, 1.0)], {})
    page = page_of(a, b, graph(cluster, [(1, 2, 0.5), (2, 3, 1.0)], (1, 2), {1: hostile, 3: hostile}))
    assert_harmless(page)
    assert_linked(page)
    assert_whole(page, a, b)


@pytest.mark.parametrize("name", ["title", "author_id"])
def test_what_the_ledger_tells_is_isolated(name: str) -> None:
    page = page_of(with_text("one two three four", **{name: "אבג <i>"}), with_text("one two three four five", id=2))
    assert "אבג <i>" in [node.text() for node in page.css("bdi")]


def test_file_names_are_isolated() -> None:
    a = WithText("one two three four", [b"one", b"two", b"three", b"four"], {}, "<א>.html")
    page = page_of(a, with_text("one two three four", id=2))
    assert the(page, "#title-a bdi").text() == "<א>.html"


def test_the_policy_allows_what_the_page_holds_and_nothing_else() -> None:
    page = page_of(sample(4107000), sample(4107001))
    policy = the(page, "meta[http-equiv=Content-Security-Policy]").attributes["content"] or ""
    allowed = {
        kind: base64.b64encode(hashlib.sha256(the(page, kind).text().encode()).digest()).decode()
        for kind in ("style", "script")
    }
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{allowed['style']}'; script-src 'sha256-{allowed['script']}'"
    )


def test_a_story_that_is_gone_leaves_the_rest() -> None:
    here = with_text(sample(4107000).text, id=1, title="Here", language="ENGLISH")
    gone = WithoutText({"id": 2, "title": "Gone", "author_id": "8", "language": "ENGLISH"}, "its page is gone: <x>")
    page = LexborHTMLParser(render_evidence(evidence_on_record(here, gone, None), here, gone, None))
    assert_harmless(page)
    assert [node.text() for node in page.css("h2 bdi")] == ["Here", "Gone"]
    assert "its page is gone: <x>" in the(page, ".warning").text()
    first, second = stories_of(page)
    assert said(second) == "Notexttoshow"
    assert said(first) == "".join(here.text.split())


def test_a_cluster_is_a_drawing_and_a_list() -> None:
    edges = [(1, 2, 0.9), (2, 3, 0.51), (3, 4, 1.0)]
    [cluster] = clusters(edges, {1: 1})
    page = page_of(
        with_text("one two three four", id=1),
        with_text("one two three four", id=2),
        graph(cluster, edges, (1, 2), {4: "<Four>"}),
    )
    assert [node.text() for node in page.css(".cluster text")] == ["A", "B", "3", "4"]
    assert len(page.css(".cluster line")) == 3
    assert len(page.css(".cluster line.weakest")) == len(page.css(".cluster line.shown")) == 1
    listed = [" ".join(node.text().split()) for node in page.css(".cluster ol li")]
    assert listed == ["story 1 (A)", "story 2 (B)", "story 3", "story 4 <Four>"]
    text = re.sub(r"[ \n]+", " ", the(page, ".cluster").text())
    assert "The weakest flag, dashed, joins B and 3: 51\N{NO-BREAK SPACE}%." in text
    assert "It is a chain: 3 flags" in text


def test_segments_are_not_parted_by_the_template() -> None:
    a, b = (
        with_text("one two three four fiveক্‌ষ, six seven eight nine"),
        with_text("one two three four six seven eight nine"),
    )
    page = page_of(a, b)
    for own in page.css(".jump"):
        own.decompose()
    [line] = page.css('[data-side="a"] .story p')
    assert line.text() == unicodedata.normalize("NFC", a.text)


def test_a_moment_is_said_for_people() -> None:
    assert moment("2026-11-02T02:05:00.123Z") == "2 November 2026, 02:05 UTC"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x00\x1f", "␀␟"),
        ("\x7f\x85", "[U+007F][U+0085]"),
        ("\u202e", "[U+202E]"),
        ("\ud800", "\ufffd"),
        ("क्\u200dष\u200c \t\n", "क्\u200dष\u200c \t\n"),
    ],
)
def test_what_is_not_seen_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown
    visible(text).encode()


def test_no_heading_is_skipped() -> None:
    page = page_of(sample(4107001), sample(4107007))
    levels = [int((node.tag or "")[1]) for node in page.css("h1, h2, h3, h4")]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert the(page, "html").attributes["lang"] == "en"
