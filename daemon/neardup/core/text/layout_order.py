"""The order in which a browser shows the children of an element: flex boxes, grids, floats and positioned boxes."""

from collections.abc import Sequence

from selectolax.lexbor import LexborNode

from neardup.core.text.boxes import Values
from neardup.core.text.css_values import pixels

LEAST_PLACED = 3  # children; fewer are notes beside a text, which need no order


def in_order_shown(
    children: Sequence[LexborNode], styles: Sequence[Values], display: str, values: Values, *, to_the_left: bool
) -> list[LexborNode]:
    """The children of an element, with the values of each, in the order in which they are shown.

    `values` are those of the element itself.
    """
    pairs = list(zip(children, styles, strict=True))
    if display.endswith("grid"):
        pairs.sort(key=lambda pair: (*_cell(pair[1]), _number(pair[1].get("order"))))
    elif display.endswith("flex"):
        pairs.sort(key=lambda pair: _number(pair[1].get("order")))
        direction = values.get("flex-direction", "row")
        if ("reverse" in direction) != (to_the_left and "column" not in direction):
            pairs.reverse()
    elif sum(map(_is_placed, styles)) >= LEAST_PLACED:
        pairs.sort(key=lambda pair: _place(pair[1]))
    elif sum(one.get("float") in ("right", "inline-end") for one in styles) >= LEAST_PLACED:
        pairs.reverse()
    return [child for child, _ in pairs]


def _number(value: str | None) -> int:
    words = (value or "").replace("/", " ").split()
    return int(words[0]) if words and words[0].removeprefix("-").isdecimal() else 0


def _cell(values: Values) -> tuple[int, int]:
    return _number(values.get("grid-row")), _number(values.get("grid-column"))


def _is_placed(values: Values) -> bool:
    return values.get("position") in ("absolute", "fixed") and ("left" in values or "top" in values)


def _place(values: Values) -> tuple[float, float]:
    return pixels(values.get("top", "0")) or 0, pixels(values.get("left", "0")) or 0
