"""Laws: a media query holds for a screen of 1,280 by 720 pixels as it does in Chromium; any text is a query."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.css.sheets import HEIGHT, MOST_COMPOUNDS, WIDTH, _shorten, applies

from tests.support.desk_browser import chromium

FEATURES = [
    "(min-width: 1px)", "(max-width:9999px)", "(min-width:99em)", "(width >= 300px)", "(width<300px)",
    "(300px <= width <= 2000px)", "(300px <= width <= 900px)", "(min-height:1px)", "(max-height:10px)",
    "(orientation:landscape)", "(orientation: portrait)", "(hover:none)", "(monochrome)", "(prefers-color-scheme:dark)",
    "(min-resolution:9dppx)", "(forced-colors:active)", "(prefers-reduced-motion: reduce)", "(aspect-ratio>1)",
    "(max-aspect-ratio: 1/1)", "(min-aspect-ratio:16 / 9)", "(color:0)", "(min-color:8)", "(color)", "(grid:0)",
    "(update:none)", "(update)", "(display-mode:fullscreen)", "(color-gamut:srgb)", "(color-gamut:rec2020)",
    "(-webkit-min-device-pixel-ratio:3)", "(-webkit-device-pixel-ratio:1)", "(min-resolution:96dpi)",
    "(resolution:1x)", "(color-index:0)", "(dynamic-range:high)", "(scripting:enabled)", "(any-hover)", "(foo:bar)",
    "(-moz-device-pixel-ratio:1)", "(prefers-reduced-motion)", "(prefers-color-scheme)", "(width)", "(min-width)",
    "(horizontal-viewport-segments:1)", "(inverted-colors:none)", "(-webkit-transform-3d)", "(transform-3d)",
    "(720px=height)", "(min-width: calc(100px * 2))", "(2 > aspect-ratio > 1)",
]  # fmt: skip
KINDS = ["screen", "ALL", "only screen", "print", "speech", "not all", "not screen", "not print", "tv"]
PAIRS = list(product(FEATURES, FEATURES[::4]))
QUERIES = [
    "",
    *KINDS,
    *FEATURES,
    *(f"not {feature}" for feature in FEATURES),
    *(f"{kind} and {feature}" for kind, feature in product(KINDS, FEATURES)),
    *(f"{first} and {second}" for first, second in PAIRS),
    *(f"{first} or {second}" for first, second in PAIRS),
    *(f"{kind}, {feature}" for kind, feature in product(KINDS, FEATURES)),
]


def test_a_query_holds_as_in_a_browser() -> None:
    with chromium() as browser:
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        found = tab.evaluate("queries => queries.map(query => matchMedia(query).matches)", QUERIES)
    differ = [query for query, holds in zip(QUERIES, found, strict=True) if applies(query) is not holds]
    assert not differ, f"{len(differ)} of {len(QUERIES)} queries differ: {differ[:20]}"


@given(st.text("notaligscrewidthm-x(<>=:,0.9) ") | st.lists(st.sampled_from(FEATURES + KINDS)).map(" ".join))
def test_any_text_is_a_query(query: str) -> None:
    applies(query)


@pytest.mark.parametrize("last", ["p", "p.x", ":is(p)", "p[title]", "[title]:not(.x)"])
def test_of_a_long_selector_the_last_compound_remains(last: str) -> None:
    selector = "a > " * (MOST_COMPOUNDS - 1) + last
    assert _shorten(selector) == selector, "it is short enough"
    assert _shorten(f"a {selector}") == last


@pytest.mark.parametrize("last", [":is(p b)", ":not(p > b)", "p[title='a b']"])
def test_of_a_long_selector_that_ends_within_brackets_any_element_remains(last: str) -> None:
    assert _shorten("a > " * MOST_COMPOUNDS + last) == "*"
