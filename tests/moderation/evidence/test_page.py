"""Laws: the page, parsed like in a browser, has the full text of both stories; stories never add markup; each passage
links to its other side; the legend explains exactly the marks that are shown; and the page is self-contained.

A cluster is drawn with at most MAX_DRAWN stories, always including the pair, the original and the ends of the weakest
flag, and with every flag between drawn stories; no two stories overlap.
"""

import base64
import hashlib
import math
import re
import unicodedata
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from neardup.core.languages import LANGUAGES, SHIPPED
from neardup.core.verify.clusters import Edge, find_clusters
from neardup.core.verify.text import Text
from neardup.moderation.evidence.page import MAX_DRAWN, SIZE, Graph, lay_out, render_evidence
from neardup.moderation.templating import INVISIBLE, make_visible
from neardup.query.compare import LoadedStory, UnreadableStory, find_evidence, read_evidence
from neardup.records import Language, format_readable_time
from selectolax.lexbor import LexborHTMLParser, LexborNode

from tests.support.compared_stories import THRESHOLDS, every_planted_pair, sample, story_of, wild_texts
from tests.support.languages import CODES, TEXTS
from tests.support.sampling import count_examples

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


def page_of(a: LoadedStory, b: LoadedStory, drawn: Graph | None = None) -> LexborHTMLParser:
    return LexborHTMLParser(render_evidence(find_evidence(a, b, THRESHOLDS), a, b, drawn, SHIPPED))


def stories_of(page: LexborHTMLParser) -> list[LexborNode]:
    found: list[LexborNode] = page.css(".story")
    return found


def only(page: LexborHTMLParser, selector: str) -> LexborNode:
    [node] = page.css(selector)
    return node


def story_text(story: LexborNode) -> str:
    """The text of a story on a page, without the page's own links and summaries, and without white space."""
    for node in story.css(".jump, summary"):
        node.decompose()
    return "".join(story.text(deep=True).split())


def assert_complete(page: LexborHTMLParser, *stories: LoadedStory) -> None:
    assert len(stories_of(page)) == len(stories)
    for shown, story in zip(stories_of(page), stories, strict=True):
        assert story_text(shown) == "".join(make_visible(unicodedata.normalize("NFC", story.text.written)).split())


def assert_harmless(page: LexborHTMLParser) -> None:
    html = page.html or ""
    assert not INVISIBLE.search(html.replace("\r", "")), "an invisible character is on the page"
    assert len(page.css("script")) == len(page.css("style")) == len(page.css("main")) == 1
    for node in page.css("*"):
        assert not {"style", "src", "onclick", "onload"} & set(node.attributes), node.html
        assert (node.attributes.get("href") or "#").startswith("#"), node.html


def assert_linked(page: LexborHTMLParser) -> None:
    ids = [node.attributes["id"] for node in page.css("[id]")]
    assert len(ids) == len(set(ids)), "an id is used twice"
    for link in page.css("[href]"):
        assert (link.attributes["href"] or "")[1:] in ids, link.html
    for mark in page.css(".story mark[id]"):
        name = mark.attributes["id"] or ""
        [jump] = mark.css(".jump")
        assert jump.attributes["href"] == f"#{'b' if name[0] == 'a' else 'a'}{name[1:]}"


@every_planted_pair
def test_planted_pairs_have_the_language_of_their_stories(pair: dict[str, Any]) -> None:
    language = LANGUAGES[pair["a"] // 1000 - 4100]
    a, b = (story_of(sample(pair[side]).text.written, id=pair[side], language=str(language)) for side in "ab")
    page = page_of(a, b)
    assert [story.attributes["lang"] for story in stories_of(page)] == [CODES[language]] * 2
    assert_linked(page)
    assert_harmless(page)
    assert_complete(page, a, b)
    assert "of A is also in B" in only(page, "h1").text() or pair["kind"] == "exact"


@settings(deadline=None, max_examples=count_examples(50))
@given(wild_texts, st.lists(st.sampled_from(ATTACKS), max_size=4), st.sampled_from(LANGUAGES))
def test_hostile_stories_stay_text(wild: str, attacks: list[str], language: Language) -> None:
    hostile = " ".join([wild, *attacks])
    a = story_of(f"{hostile} {TEXTS[language]}", title=hostile, author_id=hostile, id=1, language=str(language))
    b = story_of(f"{TEXTS[language]}\n{hostile}", title=hostile, id=2)
    [cluster] = find_clusters([(1, 2, 0.5), (2, 3, 1.0)], {})
    page = page_of(
        a,
        b,
        lay_out(cluster, [(1, 2, 0.5), (2, 3, 1.0)], (1, 2), {n: {"name": hostile, "title": hostile} for n in (1, 3)}),
    )
    assert_harmless(page)
    assert_linked(page)
    assert_complete(page, a, b)


@pytest.mark.parametrize("name", ["title", "author_id"])
def test_metadata_is_isolated(name: str) -> None:
    page = page_of(story_of("one two three four", **{name: "אבג <i>"}), story_of("one two three four five", id=2))
    assert "אבג <i>" in [node.text() for node in page.css("bdi")]


def test_file_names_are_isolated() -> None:
    a = LoadedStory(Text("one two three four"), {}, "<א>.html")
    page = page_of(a, story_of("one two three four", id=2))
    assert only(page, "#title-a bdi").text() == "<א>.html"


def test_policy_allows_only_the_embedded_style_and_script() -> None:
    page = page_of(sample(4107000), sample(4107001))
    policy = only(page, "meta[http-equiv=Content-Security-Policy]").attributes["content"] or ""
    allowed = {
        kind: base64.b64encode(hashlib.sha256(only(page, kind).text().encode()).digest()).decode()
        for kind in ("style", "script")
    }
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{allowed['style']}'; script-src 'sha256-{allowed['script']}'"
    )


def test_page_is_complete_without_one_text() -> None:
    here = story_of(sample(4107000).text.written, id=1, title="Here", language="ENGLISH")
    gone = UnreadableStory({"id": 2, "title": "Gone", "author_id": "8", "language": "ENGLISH"}, "its page is gone: <x>")
    page = LexborHTMLParser(render_evidence(read_evidence(here, gone, None), here, gone, None, SHIPPED))
    assert_harmless(page)
    assert [node.text() for node in page.css("h2 bdi")] == ["Here", "Gone"]
    assert "its page is gone: <x>" in only(page, ".warning").text()
    first, second = stories_of(page)
    assert story_text(second) == "Textnotavailable"
    assert story_text(first) == "".join(here.text.written.split())


def test_cluster_is_drawn_and_listed() -> None:
    edges = [(1, 2, 0.9), (2, 3, 0.51), (3, 4, 1.0)]
    [cluster] = find_clusters(edges, {1: 1})
    page = page_of(
        story_of("one two three four", id=1),
        story_of("one two three four", id=2),
        lay_out(cluster, edges, (1, 2), {4: {"name": None, "title": "<Four>"}}),
    )
    assert [node.text() for node in page.css(".cluster text")] == ["A", "B", "3", "4"]
    assert len(page.css(".cluster line")) == 3
    assert len(page.css(".cluster line.weakest")) == len(page.css(".cluster line.shown")) == 1
    listed = [" ".join(node.text().split()) for node in page.css(".cluster ol li")]
    assert listed == ["story 1 (A)", "story 2 (B)", "story 3", "story 4 <Four>"]
    text = re.sub(r"[ \n]+", " ", only(page, ".cluster").text())
    assert "The weakest flag, dashed, joins B and 3: 51\N{NO-BREAK SPACE}%." in text
    assert "It is a chain: 3 flags" in text


def test_template_adds_no_white_space_between_fragments() -> None:
    a, b = (
        story_of("one two three four fiveক্‌ষ, six seven eight nine"),
        story_of("one two three four six seven eight nine"),
    )
    page = page_of(a, b)
    for link in page.css(".jump"):
        link.decompose()
    [line] = page.css('[data-side="a"] .story p')
    assert line.text() == unicodedata.normalize("NFC", a.text.written)


def test_readable_time() -> None:
    assert format_readable_time("2026-11-02T02:05:00.123Z") == "2 November 2026, 02:05 UTC"


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
def test_invisible_characters_are_made_visible(text: str, shown: str) -> None:
    assert make_visible(text) == shown
    make_visible(text).encode()


def test_no_heading_level_is_skipped() -> None:
    page = page_of(sample(4107001), sample(4107007))
    levels = [int((node.tag or "")[1]) for node in page.css("h1, h2, h3, h4")]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert only(page, "html").attributes["lang"] == "en"


SHARED = [f"w{n}" for n in range(60)]


@given(st.sets(st.integers(20, 40), max_size=2), st.sets(st.integers(20, 40), max_size=2), st.booleans())
def test_legend_explains_the_marks_that_are_shown(cut_from_a: set[int], cut_from_b: set[int], related: bool) -> None:
    a = [word for n, word in enumerate(SHARED) if n not in cut_from_a]
    b = [word if related else f"{word}x" for n, word in enumerate(SHARED) if n not in cut_from_b]
    first, second = story_of(" ".join(a)), story_of(" ".join(b))
    page = LexborHTMLParser(render_evidence(find_evidence(first, second, THRESHOLDS), first, second, None, SHIPPED))
    for mark in ("mark", "del", "ins"):
        assert bool(page.css(f".legend {mark}")) == bool(page.css(f".story {mark}")), f"<{mark}> and the legend differ"


edges = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 40), st.floats(0.3, 1)).filter(lambda edge: edge[0] < edge[1]),
    min_size=1,
    max_size=80,
    unique_by=lambda edge: edge[:2],
)
times = st.dictionaries(st.integers(0, 40), st.integers(0, 5))


@given(edges, times, st.data())
def test_pair_original_and_weakest_are_drawn(found: list[Edge], published: dict[int, int], data: st.DataObject) -> None:
    cluster = find_clusters(found, published)[0]
    inside = [edge for edge in found if edge[0] in cluster.stories]
    pair = data.draw(st.sampled_from(inside))[:2]
    drawn = lay_out(cluster, inside, pair, {pair[0]: {"name": None, "title": "A title"}})
    stories = [member.story_id for member in drawn.members]
    assert stories == [story for story in cluster.stories if story in stories], "not in order of publication"
    earliest = [member.story_id for member in drawn.members if member.is_earliest]
    assert earliest == ([] if cluster.earliest is None else [cluster.earliest])
    assert {*pair, cluster.stories[0], *cluster.weakest[:2]} <= set(stories)
    assert len(stories) == min(len(cluster.stories), MAX_DRAWN)
    assert len(stories) + drawn.left_out == drawn.stories == len(cluster.stories)
    assert [member.number for member in drawn.members] == [cluster.stories.index(story) + 1 for story in stories]
    assert {member.letter: member.story_id for member in drawn.members if member.letter} == {"A": pair[0], "B": pair[1]}
    assert {member.title for member in drawn.members} <= {"A title", None}
    assert sorted((edge.a.story_id, edge.b.story_id, edge.similarity) for edge in drawn.edges) == sorted(
        edge for edge in inside if edge[0] in stories and edge[1] in stories
    )
    assert [edge.similarity for edge in drawn.edges if edge.weakest] == [cluster.weakest[2]]
    assert [{edge.a.story_id, edge.b.story_id} for edge in drawn.edges if edge.shown] == [set(pair)]


@given(edges)
def test_stories_overlap_neither_each_other_nor_the_edge(found: list[Edge]) -> None:
    [cluster, *_] = find_clusters(found, {})
    assume(len(cluster.stories) > 2)
    drawn = lay_out(cluster, [edge for edge in found if edge[0] in cluster.stories], cluster.weakest[:2], {})
    radius = 13
    for n, member in enumerate(drawn.members):
        assert radius < member.x < SIZE - radius and radius < member.y < SIZE - radius
        for other in drawn.members[:n]:
            assert math.dist((member.x, member.y), (other.x, other.y)) > 2 * radius


def test_order_of_the_flags_does_not_matter() -> None:
    found = [(1, 2, 0.9), (2, 3, 0.5), (1, 3, 0.7)]
    [cluster] = find_clusters(found, {})
    assert lay_out(cluster, found, (1, 2), {}) == lay_out(cluster, found[::-1], (1, 2), {})


def test_large_cluster_keeps_pair_original_and_weakest_flag() -> None:
    chain = [(n, n + 1, 0.9) for n in range(60)]
    chain[40] = (40, 41, 0.5)
    [cluster] = find_clusters(chain, {n: n for n in range(61)})
    drawn = lay_out(cluster, chain, (58, 59), {})
    stories = [member.story_id for member in drawn.members]
    assert stories == [*range(MAX_DRAWN - 4), 40, 41, 58, 59]
    assert drawn.left_out == 61 - MAX_DRAWN
