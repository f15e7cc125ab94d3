"""Laws: arithmetic comes to what it comes to in a browser, and what is none has no value."""

import pytest
from neardup.core.css.values import pixels


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
    assert pixels(value) == number
