"""Law: a page can be read whatever its styles and attributes say; a value that is none hides no story."""

from collections.abc import Iterator

import pytest
from neardup.core.css.values import ALIASES, LONGHANDS, SHORTHANDS
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_markup, extract_visible_text

from tests.support.sampling import sample_cases

MOST_PAGES = 40  # with a value that are read outside `make chaos`
LONG_NUMBER = "9" * 5_000
VALUES = (
    *(LONG_NUMBER, f"-{LONG_NUMBER}px", "1e999", "-1e999px", "1e-999", "1e999%", "nan", "inf", "-1", "1.5", "٣", "²"),
    *("calc(1e999 - 1e999)", "calc(1px / 0)", f"calc({'9' * 90})", "min()", "max(,)", "clamp(1px, 2px)", "var(--none)"),
    *(
        "span",
        "span -1",
        "span 1e999",
        "a / b / c / d / e",
        "1 / -1",
        f"repeat({LONG_NUMBER}, 1px)",
        "repeat(",
        "[",
        "]",
    ),
    *(
        "translate(1e999px)",
        "rect(1e999px, 0, 0, 0)",
        "inset(1e999%)",
        "rgb(1e999 0 0)",
        "lab(1e999 0 0)",
        "url(",
        "(",
        "{}",
    ),
    *(
        "\\",
        "\\0",
        "\\d800",
        "\\110000",
        "--",
        "/*",
        "*/",
        "<!--",
        "@",
        "",
        "é",
        "data:",
        "data:text/css," + LONG_NUMBER,
    ),
)
ATTRIBUTES = (
    "style class id dir hidden width height bgcolor color text size start value max min low high type rows cols span"
    " alt src srcset href data srcdoc content charset media slot name open placeholder label x y fill transform opacity"
)
TAGS = (
    "p div span font ol li table meter progress input textarea button select option img iframe object embed svg a link"
    " style meta details summary ruby rt bdo template slot video math br marquee"
)
SELECTORS = (
    *("{}", "#{}", "[a={}]", "::{}", ":nth-child({})", ":nth-child({}n+{})", ":nth-last-child({} of p)", ":lang({})"),
    *(":not({})", ":is({})", ":has({})", "a {} b", "a > {}", ".a:is({}) > b"),
)
RULES = (
    *(
        "@media (min-width: {0}) {{ p {1} }}",
        "@media {0} {{ p {1} }}",
        "@supports ({0}) {{ p {1} }}",
        "@layer {0} {{ p {1} }}",
    ),
    *(
        "@import {0}; p {1}",
        "@scope ({0}) to ({0}) {{ p {1} }}",
        "@container ({0}) {{ p {1} }}",
        "@counter-style {0} {1}",
    ),
)


def pages(value: str) -> Iterator[str]:
    """Pages with this value in every property, attribute, selector and rule that the program knows."""
    for name in (*LONGHANDS, *SHORTHANDS, *ALIASES, "all"):
        style = f"{name}:{value}"
        yield "".join(
            f"<div style='display:{box};{style}'><p style='{style}'>one</p> <p style='{style}'>two</p></div>"
            for box in ("flex", "grid", "block")
        )
    yield "".join(
        f"<{tag} {attribute}='{value}'>one</{tag}>" for tag in TAGS.split() for attribute in ATTRIBUTES.split()
    )
    for selector in SELECTORS:
        yield f"<style>{selector.format(value, value)} {{ display: none; content: {value} }}</style><p>one</p>"
    for rule in RULES:
        yield f"<style>{rule.format(value, f'{{ display: none; counter-reset: {value} }}')}</style><p>one</p>"


@pytest.mark.parametrize("value", VALUES, ids=[f"{value[:12]!r}-{n}" for n, value in enumerate(VALUES)])
def test_no_value_keeps_a_page_from_being_read(value: str) -> None:
    for page in sample_cases([*pages(value)], MOST_PAGES):
        try:
            extract_visible_text(f"{page} and the rest", Extraction())
        except Exception as error:
            raise AssertionError(f"{type(error).__name__} for the page {page[:300]}") from error


def test_a_number_of_thousands_of_digits_hides_what_it_hides_in_a_browser() -> None:
    page = f"<p style='z-index:{LONG_NUMBER};display:none'>hidden</p><p style='order:{LONG_NUMBER}'>shown</p>"
    assert extract_visible_text(page, Extraction()).split() == ["shown"]


@pytest.mark.parametrize("chain", ["a " * 5_000, "p > " * 999, "b + " * 999, f":is({'a ' * 999}b) ", "a ~ b:not(" * 99])
def test_a_selector_of_many_elements_hides_no_story_and_is_no_error(chain: str) -> None:
    page = f"<style>{chain}i {{ display: none }}</style><p>one <b>two <i>three</i></b></p>"
    found = extract_markup(page, Extraction())
    assert found.text.split()[:2] == ["one", "two"]
    assert found.limit is None
