"""Laws: what is the same on page after page of a language is removed from the stories, and nothing else of them is."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.page import Page
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_page_text
from neardup.ops.selectors import propose_strip
from neardup.records import Language

from tests.support.languages import CODES, SAMPLED
from tests.support.paths import SAMPLES
from tests.support.sample_texts import STORIES
from tests.support.sampling import count_examples

BOXES = ("<div class='{}'><a>{}</a></div>", "<p id='{}'>{}</p>", "<ul class='wide {}'><li>{}</li></ul>")
names = st.sampled_from(["share", "read-more", "_Box_x1"])


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
@given(st.sampled_from(BOXES), names)
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
