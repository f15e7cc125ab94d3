"""The order in which a browser shows the children of an element: flex boxes, grids, floats and positioned boxes."""

import unicodedata
from collections.abc import Sequence

from selectolax.lexbor import LexborNode

from neardup.core.text.boxes import Values, shifts
from neardup.core.text.css_media import HEIGHT, WIDTH
from neardup.core.text.css_values import pixels
from neardup.core.text.grid_cells import cells

LEAST_PLACED = 3  # children; fewer are notes beside a text, which need no order
LINE = 10  # pixels; boxes that are closer in height stand in one line
SIDES = frozenset(("left", "right", "top", "bottom", "margin-left", "margin-top", "translate", "transform"))
CELLS, DRAWN = ("td", "th"), ("text", "tspan")
LETTERS = 40  # characters by which the direction of a text is known

Pair = tuple[LexborNode, Values]


def in_order_shown(
    children: Sequence[LexborNode], styles: Sequence[Values], display: str, values: Values, *, to_the_left: bool
) -> list[LexborNode]:
    """The children of an element, with the values of each, in the order in which they are read.

    `values` are those of the element itself.
    """
    pairs = list(zip(children, styles, strict=True))
    if display.endswith("grid"):
        return _by_cells(pairs, values, is_backwards=_is_backwards(children, to_the_left))
    if display.endswith("flex"):
        pairs.sort(key=lambda pair: _order(pair[1]))
        direction = values.get("flex-direction", "row")
        if ("reverse" in direction) != ("column" not in direction and _is_backwards(children, to_the_left)):
            pairs.reverse()
    elif sum(map(_is_placed, pairs)) >= LEAST_PLACED:
        pairs.sort(key=lambda pair: _place(pair[1]))
    elif _is_backwards(children, _are_floats(styles) or (to_the_left and _are_boxes(pairs))):
        pairs.reverse()
    return [child for child, _ in pairs]


def _is_backwards(children: Sequence[LexborNode], to_the_left: bool) -> bool:
    """Whether a line of these children runs against the direction in which their text is read."""
    if not to_the_left:
        return False
    text = "".join(child.text_lexbor() for child in children[:LEAST_PLACED])[:LETTERS]
    return "L" in map(unicodedata.bidirectional, text)


def _by_cells(pairs: Sequence[Pair], values: Values, *, is_backwards: bool) -> list[LexborNode]:
    """The children of a grid by row and column; white space stays behind the child before it."""
    groups: list[list[Pair]] = []
    for child, own in pairs:
        if groups and child.is_text_node and not (child.text_content or "").strip():
            groups[-1].append((child, own))
        else:
            groups.append([(child, own)])
    groups.sort(key=lambda group: _order(group[0][1]))
    placed = zip(cells(values, [group[0][1] for group in groups]), groups, strict=True)
    in_order = sorted(placed, key=lambda one: (one[0][0], -one[0][1] if is_backwards else one[0][1]))
    return [child for _, group in in_order for child, _ in group]


def _order(values: Values) -> int:
    return int(pixels(values.get("order", "")) or 0)


def _is_placed(pair: Pair) -> bool:
    child, values = pair
    is_free = values.get("position") in ("absolute", "fixed") or child.tag in DRAWN
    return is_free and not SIDES.isdisjoint(values)


def _are_floats(styles: Sequence[Values]) -> bool:
    floats = sum(one.get("float") in ("right", "inline-end") for one in styles)
    return floats >= LEAST_PLACED or floats == len(styles)


def _are_boxes(pairs: Sequence[Pair]) -> bool:
    boxes = (child.tag in CELLS or values.get("display", "").startswith("inline-") for child, values in pairs)
    return sum(boxes) >= LEAST_PLACED


def _place(values: Values) -> tuple[float, float]:
    """Its line, and its place in the line, in pixels from the left."""
    if SIDES.isdisjoint(values):
        return 0, 0

    def side(name: str, whole: float) -> float:
        return pixels(values.get(name, ""), whole=whole) or 0

    x = side("left", WIDTH) if "left" in values or "right" not in values else WIDTH - side("right", WIDTH)
    y = side("top", HEIGHT) if "top" in values or "bottom" not in values else HEIGHT - side("bottom", HEIGHT)
    across, down = shifts(values)
    return (y + side("margin-top", WIDTH) + down) // LINE, x + side("margin-left", WIDTH) + across
