"""Laws: the proposed selector holds the story of every page, and none of the text that the pages share, in every
language and for pages of several designs; where nothing sets the story apart, it is the whole page.

What is the same on page after page of a language is removed from the stories, and nothing else of them is.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.page import Page
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_page_text
from neardup.ops.selectors import propose_body, propose_strip
from neardup.records import Language

from tests.support.languages import CODES, SAMPLED
from tests.support.paths import SAMPLES
from tests.support.sample_texts import STORIES
from tests.support.sampling import count_examples

MENU = "<nav><ul>" + "".join(f"<li><a href='/{n}'>Genre number {n}</a></li>" for n in range(30)) + "</ul></nav>"
FOOTER = "<footer><div class='legal'>" + "All rights are reserved by the publisher. " * 8 + "</div></footer>"
HOLDERS = ("<div class='{}'>{}</div>", "<section class='wide {}'>{}</section>", "<main id='{}'>{}</main>")
names = st.sampled_from(["story", "post-body", "_Content_x1", "chapter"])


def page(text: str, holder: str, name: str, *, related: int = 3) -> Page:
    paragraphs = "".join(f"<p>{line}</p>" for line in text.splitlines() if line.strip())
    links = "".join(f"<a href='/{n}'>{text[n * 20 : n * 20 + 40]}</a>" for n in range(related))
    body = f"{MENU}<div class='page'>{holder.format(name, paragraphs)}<div class='more'>{links}</div></div>{FOOTER}"
    return Page(f"<!doctype html><html><head><title>t</title></head><body>{body}</body></html>".encode())


def words_of(pages: list[Page], body: str) -> list[list[str]]:
    return [extract_page_text(page.body, None, Extraction(body)).split() for page in pages]


@pytest.mark.parametrize("language", SAMPLED)
@settings(max_examples=count_examples(6))
@given(st.sampled_from(HOLDERS), names)
def test_the_proposal_holds_the_stories_and_nothing_else(language: Language, holder: str, name: str) -> None:
    pages = [page(text, holder, name) for text in STORIES[language]]
    proposed = propose_body(pages)
    assert words_of(pages, proposed) == [text.split() for text in STORIES[language]], f"proposed {proposed!r}"


def test_pages_of_two_designs_get_a_selector_each() -> None:
    pages = [Page(path.read_bytes()) for path in sorted(SAMPLES.rglob("*.html"))[::3]]
    proposed = words_of(pages, propose_body(pages))
    wanted = words_of(pages, "article .story, div.post-body")
    shares = [len(first) / len(second) for first, second in zip(proposed, wanted, strict=True)]
    assert all(0.9 < share < 1.2 for share in shares), f"{propose_body(pages)} holds {min(shares)} to {max(shares)}"


def test_the_same_story_twice_does_not_hide_it() -> None:
    texts = STORIES[SAMPLED[0]]
    pages = [page(text, HOLDERS[0], "story") for text in [*texts, texts[0]]]
    assert propose_body(pages) == "div.story"


@pytest.mark.parametrize("bodies", [
    [], [b""], [b"\x89PNG\x00\x01\x02" * 50], ["राजू गाँव में रहता था".encode()] * 3,
    [f"<p>{text}</p>".encode() for text in STORIES[SAMPLED[0]]],
])  # fmt: skip
def test_without_an_element_around_the_story_it_is_the_whole_page(bodies: list[bytes]) -> None:
    assert propose_body([Page(body) for body in bodies]) == ""


BOXES = ("<div class='{}'><a>{}</a></div>", "<p id='{}'>{}</p>", "<ul class='wide {}'><li>{}</li></ul>")
box_names = st.sampled_from(["share", "read-more", "_Box_x1"])


def pages_with(box: str, name: str) -> list[tuple[Language, Page]]:
    """The samples as pages with a box, which says something else in each language."""
    return [
        (
            language,
            Page(
                f"<body><div class='story'><p class='first'>{text}</p>"
                f"{box.format(name, f'more {language} <b>stories</b>')}<i class='n'>{n}</i></div></body>".encode()
            ),
        )
        for language in SAMPLED
        for n, text in enumerate(STORIES[language])
    ]


@settings(max_examples=count_examples(9))
@given(st.sampled_from(BOXES), box_names)
def test_a_box_that_every_page_repeats_is_removed_whatever_its_language(box: str, name: str) -> None:
    pages = pages_with(box, name)
    strip = propose_strip(pages, "div.story")
    assert len(strip) == 1, f"proposed {strip}"
    left = [extract_page_text(page.body, None, Extraction("div.story", strip)).split() for _, page in pages]
    wanted = [[*text.split(), str(n)] for language in SAMPLED for n, text in enumerate(STORIES[language])]
    assert left == wanted, f"{strip} removes more, or less, than the box"


def test_what_only_some_pages_share_stays() -> None:
    pages = pages_with(BOXES[0], "share")
    (language, page), *others = pages
    changed = (language, Page(page.body.replace(b"more ", b"fewer ")))
    assert propose_strip([changed, *others], "div.story") == ()


@pytest.mark.parametrize("body", [b"", b"\x89PNG\x00\x01\x02" * 50, b"only text", b"<div class=story></div>"])
def test_pages_without_boxes_have_none(body: bytes) -> None:
    assert propose_strip([(SAMPLED[0], Page(body))] * 5, "div.story") == ()


def test_the_samples_keep_their_stories() -> None:
    chosen = [path for path in sorted(SAMPLES.rglob("*.html")) if path.parent.name in CODES]
    pages = [(Language(path.parent.name), Page(path.read_bytes())) for path in chosen]
    assert propose_strip(pages, "article .story, div.post-body") == (".share",)
