"""Law: the legend of a page explains exactly the marks that the page shows."""

from hypothesis import given
from hypothesis import strategies as st
from neardup.core.languages import SHIPPED
from neardup.moderation.evidence.page import render_evidence
from neardup.query.evidence import find_evidence
from selectolax.lexbor import LexborHTMLParser

from tests.support.compared_stories import THRESHOLDS, story_of

SHARED = [f"w{n}" for n in range(60)]


@given(st.sets(st.integers(20, 40), max_size=2), st.sets(st.integers(20, 40), max_size=2), st.booleans())
def test_legend_explains_the_marks_that_are_shown(cut_from_a: set[int], cut_from_b: set[int], related: bool) -> None:
    a = [word for n, word in enumerate(SHARED) if n not in cut_from_a]
    b = [word if related else f"{word}x" for n, word in enumerate(SHARED) if n not in cut_from_b]
    first, second = story_of(" ".join(a)), story_of(" ".join(b))
    page = LexborHTMLParser(render_evidence(find_evidence(first, second, THRESHOLDS), first, second, None, SHIPPED))
    for mark in ("mark", "del", "ins"):
        assert bool(page.css(f".legend {mark}")) == bool(page.css(f".story {mark}")), f"<{mark}> and the legend differ"
