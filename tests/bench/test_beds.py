"""Laws: the beds hold the same stories, in pages such as editors and sites make, and the candidates planted in them."""

import re
from collections.abc import Sequence
from functools import cache

import pytest
from neardup.core.fingerprint.compute import hash_rare_pairs
from neardup.core.fingerprint.word_hashes import MIN_SHARED
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_page_text
from neardup.core.text.normalize import tokenize
from neardup.core.verify.text import Text

from tests.bench.beds import BARE, BEDS, Bed, site_page
from tests.bench.pages import Story, stories
from tests.bench.rewritten import LEVELS, make_stories

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


def test_rare_words_nominate_the_candidates_that_are_planted_and_no_others() -> None:
    earlier, new = make_stories(40)
    held = [set(hash_rare_pairs(Text(" ".join(story.words)).word_hashes).tolist()) for story in earlier]
    for name, (one_in, candidates) in LEVELS.items():
        for n, story in enumerate(new[name]):
            own = set(hash_rare_pairs(Text(" ".join(story.words)).word_hashes).tolist())
            found = [place for place, hashes in enumerate(held) if len(own & hashes) >= MIN_SHARED]
            first = n // one_in * candidates
            assert found == ([] if n % one_in else list(range(first, first + candidates))), f"{name}: story {n}"
