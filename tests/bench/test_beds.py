"""Laws: the beds hold the same stories, in pages such as editors and sites make."""

import re
from collections.abc import Sequence
from functools import cache

import pytest
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_page_text
from neardup.core.text.normalize import tokenize

from tests.bench.beds import BARE, BEDS, Bed, site_page
from tests.bench.pages import Story, stories

each_bed = pytest.mark.parametrize("bed", BEDS.values(), ids=BEDS)


@cache
def few_stories() -> Sequence[Story]:
    return list(stories(8, seed=1, plant=False))


def shown(bed: Bed, story: Story) -> Sequence[bytes]:
    """The words of a story, as neardup reads them from the bed's page."""
    return tokenize(extract_page_text(bed.page(story).encode(), None, Extraction(bed.body)))


@each_bed
def test_each_bed_holds_the_same_stories(bed: Bed) -> None:
    for story in few_stories():
        bare, found = b" ".join(shown(BEDS[BARE], story)), b" ".join(shown(bed, story))
        if bed.page is site_page and not bed.body:
            assert bare in found != bare, "without a selector the template is a part of the text"
        else:
            assert found == bare, story.id


def test_the_template_is_like_that_of_a_site() -> None:
    first, last = (
        site_page(story).replace("\n".join(f"<p>{text}</p>" for text in story.paragraphs), "")
        for story in (few_stories()[0], few_stories()[-1])
    )
    assert 7_000 < len(last.encode()) < 10_000, "about 8 KB around the story"
    sheet = re.search(r"<style>(.*?)</style>", last, re.DOTALL)
    assert sheet is not None and 2_000 < len(sheet[1]) < 2_500 and sheet[1].count("@media") >= 3
    for piece, least in {"<svg": 5, "<button": 5, 'class="menu"': 1, 'class="modal"': 1, 'class="card"': 5}.items():
        assert last.count(piece) >= least, piece
    assert first.partition("<body>")[0].count("\n") == last.partition("<body>")[0].count("\n"), "stories share it"


@pytest.mark.parametrize(
    ("bed", "pieces"),
    [
        ("pasted from Word", ["MsoNormal", "<span lang", "<o:p>", "<!--[if gte mso"]),
        (
            "pasted from Google Docs",
            ["docs-internal-guid", "font-size", "background-color", "vertical-align", "white-space"],
        ),
    ],
)
def test_pasted_pages_have_what_the_editors_leave(bed: str, pieces: Sequence[str]) -> None:
    page = BEDS[bed].page(few_stories()[0])
    assert not [piece for piece in pieces if piece not in page]
