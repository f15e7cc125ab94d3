"""Laws: the page of a site around a story does not change what is read of it, and only what acts on the story, or on an
element around it, has it rendered; what is kept of style sheets and attributes is bounded.
"""

import random
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.css import cascade, page_styles, rendering
from neardup.core.text import html, story
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_markup
from neardup.core.text.normalize import tokenize
from neardup.core.text.story import Parts, Story
from selectolax.lexbor import LexborNode

from tests.support.languages import ENGLISH, TEXTS
from tests.support.random_pages import SHEET, STORY, in_template
from tests.support.rendered_pages import generated_rules, generated_story
from tests.support.sampling import CHAOS

unhurried = settings(deadline=None)


def every_part(story: Story, *_: Iterable[LexborNode]) -> Parts:
    every = {node.mem_id: list(node.iter()) for body in story.bodies for node in body.traverse()}
    return Parts(every.keys(), every)


def words(page: str, extraction: Extraction = STORY) -> list[bytes]:
    return tokenize(extract_markup(page, extraction).text)


def words_rendered(page: str, extraction: Extraction = STORY) -> list[bytes]:
    """The words of a page of which each element is rendered."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(html, "find_reason_to_render", lambda *_: "the test")
        patch.setattr(rendering, "collect_parts", every_part)
        return words(page, extraction)


@unhurried
@given(st.integers(0, 2**32), st.sampled_from(["", SHEET]))
def test_a_story_reads_as_if_each_element_of_its_page_was_rendered(seed: int, sheet: str) -> None:
    rng = random.Random(seed)
    page = in_template(generated_story(rng), sheet + generated_rules(rng))
    assert words(page) == words_rendered(page)
    assert words(page, Extraction()) == words_rendered(page, Extraction())


PLAIN = f"<p class=x>{TEXTS[ENGLISH]}</p><p style='color: #333; font: 12pt serif'>{TEXTS[ENGLISH]}</p>"


def test_a_page_around_a_plain_story_does_not_have_it_rendered() -> None:
    found = extract_markup(in_template(PLAIN * 3), STORY)
    assert found.rendered is None
    assert tokenize(found.text) == tokenize(TEXTS[ENGLISH]) * 6


HIT = {
    "<button>b</button>": "element button",
    "<i hidden>b</i>": "attribute hidden",
    "<i style='display: none'>b</i>": "attribute style",
    "<style>.x { display: none }</style>": "style sheet",
    "<style>body { color: white }</style>": "style sheet",
    "<link rel=stylesheet href='data:text/css,.x{display:none}'>": "element link",
    "<iframe srcdoc='<p>b</p>'></iframe>": "element iframe",
}
RULES = [
    ".x { display: none }", "article { opacity: 0 }", "html .story > p + p { font-size: 0 }", "* { opacity: .01 }",
    ":root { --d: none } .story { display: var(--d) }", "@layer a { .page { color: white } }",
    "@import url('data:text/css,.x{display:none}');", "p:has(+ p) { position: absolute }",
    "header ~ div { opacity: 0 }",
    "@container (width > 1px) { .x { display: none } }", ".story { & p { display: none } }", "P.X, p { float: right }",
    "p::before { content: 'b' }", "body :is(.x, b) { display: none }",
    "@supports (display: grid) { .x { display: none } }",
    "@counter-style a { symbols: 'a' 'b' }", "[class=x i] { text-indent: -9999px }",
]  # fmt: skip


@pytest.mark.parametrize(("author", "reason"), HIT.items())
def test_what_an_author_writes_has_the_story_rendered(author: str, reason: str) -> None:
    assert extract_markup(in_template(PLAIN + author), STORY).rendered == (reason, "python")


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_that_acts_on_a_story_or_around_it_has_it_rendered(rule: str) -> None:
    page = in_template(PLAIN * 3, rule + SHEET).replace(" class=x", " class=x" if "P.X" not in rule else " class=X")
    assert extract_markup(page, STORY).rendered == ("style sheet", "python")
    assert words(page) == words_rendered(page)


OPEN = {  # rules with custom properties around a story, and whether some of their values act
    ":root { --c: #222; --b: #fff } body { color: var(--c); background: var(--b) }": False,
    ":root { --c: #222 } .dark { --c: #eee } body { color: var(--c) }": True,
    "article { margin: var(--space, 1em) var(--none) }": False,
    "article { opacity: var(--none, 0) }": True,
    "article { opacity: var(--none) }": False,
    ":root { --a: var(--b); --b: var(--c, 1) } article { opacity: var(--a) }": False,
    ":root { --a: var(--b); --b: var(--c, .01) } article { opacity: var(--a) }": True,
    ":root { --a: var(--a) } article { opacity: var(--a) }": True,
    "@property --o { syntax: '*'; inherits: true; initial-value: 0 } article { opacity: var(--o) }": True,
    "article { opacity: 0; color: var(--none) }": True,
    "article { opacity: var(/**/--none) }": False,
    ":root { --a: var(--b) var(--b); --b: var(--a, 1) } article { margin: var(--a) }": True,
}


@pytest.mark.parametrize(("rules", "acts"), OPEN.items())
def test_a_custom_property_around_a_story_has_it_rendered_if_one_of_its_values_acts(rules: str, *, acts: bool) -> None:
    page = in_template(PLAIN * 3, rules)
    assert extract_markup(page, STORY).rendered == (("style sheet", "python") if acts else None)
    assert words(page) == words_rendered(page)


def test_a_custom_property_is_looked_for_in_the_styles_of_the_elements_around_a_story() -> None:
    page = in_template(PLAIN * 3, "article { opacity: var(--o) }")
    assert extract_markup(page.replace("<body>", "<body style='--o: 1'>"), STORY).rendered is None
    assert extract_markup(page.replace("<body>", "<body style='--o: 0'>"), STORY).rendered == ("style sheet", "python")


@pytest.mark.parametrize("around", ["hidden", "style='opacity: 0'", "popover", "style='visibility: hidden'"])
def test_an_element_around_a_story_hides_it_by_its_attributes(around: str) -> None:
    page = in_template("<p>A short one</p>").replace("<article>", f"<article {around}>")
    assert words(page) == []
    rendered = extract_markup(page, STORY).rendered
    assert rendered is not None and rendered.reason.startswith("attribute")


def test_what_is_kept_of_styles_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_styles, "MOST_SHEETS", 8)
    monkeypatch.setattr(page_styles, "MOST_CHARACTERS", 4_000)
    monkeypatch.setattr(cascade, "MOST_KNOWN", 8)
    monkeypatch.setattr(story, "MOST_VERDICTS", 8)
    monkeypatch.setattr(rendering, "MOST_FRAMES", 8)
    for cache in (page_styles.STYLE_SHEETS, cascade.KNOWN, story.STYLE_VERDICTS, rendering.FRAMES):
        cache.clear()
    for n in range(60 * CHAOS):
        rules = "".join(f".a{rule} {{ color: #{n:03x} }}" for rule in range(n))
        extract_markup(in_template(f"<p style='width: {n}px; display: block'>a</p>", rules), STORY)
        assert len(page_styles.STYLE_SHEETS) <= 8
        assert sum(map(len, page_styles.STYLE_SHEETS)) <= 4_000
        assert len(cascade.KNOWN) <= 8
        assert len(story.STYLE_VERDICTS) <= 8
        assert len(rendering.FRAMES) <= 8
