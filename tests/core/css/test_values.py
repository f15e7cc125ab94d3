"""Laws: arithmetic comes to what it comes to in a browser, and what is none has no value; colours have their light."""

import pytest
from neardup.core.css.values import expand, is_computed, is_light, parse_colour, parse_length


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("calc(1px - 1px)", 0),
        ("calc(2 * (3px + 1em))", 38),
        ("calc(-1 * 10000px)", -10000),
        ("calc(50% / 2)", 320),
        ("-webkit-calc(1px)", 1),
        ("min(1px, 2px)", 1),
        ("max(1px, calc(2px * 3), 0px)", 6),
        ("clamp(1px, 5px, 3px)", 3),
        ("calc(1px / 0)", None),
        ("calc(1px + 1quux)", None),
        ("calc(__import__)", None),
        ("calc(", None),
        ("calc(" + "(" * 5000, None),
        ("max()", None),
    ],
)
def test_the_value_of_arithmetic(value: str, number: float | None) -> None:
    assert parse_length(value) == number


@pytest.mark.parametrize(
    ("white", "black"),
    [
        ("#fff", "#000"),
        ("rgb(255 255 255)", "rgb(0 0 0)"),
        ("hsl(0 0% 100%)", "hsl(0 0% 0%)"),
        ("lab(100 0 0)", "lab(0 0 0)"),
        ("lch(100 0 0)", "lch(0 0 0)"),
        ("oklab(1 0 0)", "oklab(0 0 0)"),
        ("oklch(1 0 0)", "oklch(0 0 0)"),
    ],
)
def test_white_is_light_in_each_colour_space_and_black_is_not(white: str, black: str) -> None:
    shades = parse_colour(white), parse_colour(black)
    assert shades[0] is not None and shades[1] is not None
    assert (is_light(shades[0]), is_light(shades[1])) == (True, False), shades


@pytest.mark.parametrize(
    ("value", "is_known"),
    [
        ("red", True),
        ("rgb(1 2 3)", True),
        ("linear-gradient(rgb(1 2 3), #fff)", True),
        ("rgb(from red r g b)", False),
        ("color-mix(in srgb, red, blue)", False),
        ("linear-gradient(light-dark(red, blue), rgb(1 2 3))", False),
        ("calc(1px + 1em)", True),
        ("calc(1px + 1quux)", False),
    ],
)
def test_a_value_is_computed_if_each_function_in_it_is(value: str, is_known: bool) -> None:
    assert is_computed(value) is is_known


@pytest.mark.parametrize("shorthand", ["inset-inline", "inset-block", "margin-inline", "margin-block"])
def test_a_logical_shorthand_sets_its_start_and_its_end(shorthand: str) -> None:
    start, end = (expand(f"{shorthand}-{edge}", value) for edge, value in (("start", "1px"), ("end", "-999px")))
    assert start and end and expand(shorthand, "1px -999px") == (*start, *end)
