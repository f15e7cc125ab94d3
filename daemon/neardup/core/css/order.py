"""The order in which a browser shows the children of an element: flex boxes, grids, floats and positioned boxes.

The children of a grid stand in the cells that the algorithm of CSS Grid Layout (8.3 and 8.5) places them in.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count, product
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from neardup.core.css.computed_style import Values, measure_shift
from neardup.core.css.sheets import HEIGHT, WIDTH
from neardup.core.css.values import NAME, STRING, parse_length

LEAST_PLACED = 3  # children; fewer are notes beside a text, which need no order
LINE = 10  # pixels; boxes that are closer in height stand in one line
SIDES = frozenset(("left", "right", "top", "bottom", "margin-left", "margin-top", "translate", "transform"))
REVERSED = frozenset(("row-reverse", "column-reverse"))
CELLS, DRAWN = ("td", "th"), ("text", "tspan")
DIRECTION_LETTERS = 40  # characters by which the direction of a text is known

Pair = tuple[LexborNode, Values]

REPEATED = re.compile(r"repeat\(\s*(\d{1,6})\s*,((?:[^()]|\([^()]*\))*)\)", re.IGNORECASE)
TRACK = re.compile(r"\[([^\]]*)\]|[^\s()\[\]]*\((?:[^()]|\([^()]*\))*\)|[^\s()\[\]]+")
LONGEST_TEMPLATE = 10_000  # characters of a template, and of what is repeated in it
MOST_SPANNED = 20  # tracks that a child spans, ...
MANY_CHILDREN = 2_000  # ... and one in a grid of so many, which is not filled densely either: more would cost too much

Cell = tuple[int, int]


def order_children(
    children: Sequence[LexborNode], styles: Sequence[Values], display: str, values: Values, *, to_the_left: bool
) -> list[LexborNode]:
    """The children of an element, with the values of each, in the order in which they are read.

    `values` are those of the element itself.
    """
    pairs = list(zip(children, styles, strict=True))
    if display.endswith("grid"):
        return _order_by_cells(pairs, values, is_backwards=_is_backwards(children, to_the_left))
    if display.endswith("flex"):
        pairs.sort(key=lambda pair: find_order(pair[1]))
        is_column = "column" in values.get("flex-direction", "row")
        if is_reversed(values) != (not is_column and _is_backwards(children, to_the_left)):
            pairs.reverse()
    elif sum(map(_is_placed, pairs)) >= LEAST_PLACED:
        pairs.sort(key=lambda pair: find_position(pair[1]))
    elif _is_backwards(children, _are_floats(styles) or (to_the_left and _are_boxes(pairs))):
        pairs.reverse()
    return [child for child, _ in pairs]


def _is_backwards(children: Sequence[LexborNode], to_the_left: bool) -> bool:
    """Whether a line of these children runs against the direction in which their text is read."""
    if not to_the_left:
        return False
    text = "".join(child.text_lexbor() for child in children[:LEAST_PLACED])[:DIRECTION_LETTERS]
    return "L" in map(unicodedata.bidirectional, text)


def _order_by_cells(pairs: Sequence[Pair], values: Values, *, is_backwards: bool) -> list[LexborNode]:
    """The children of a grid by row and column; white space stays behind the child before it."""
    groups: list[list[Pair]] = []
    for child, own in pairs:
        if groups and child.is_text_node and not (child.text_content or "").strip():
            groups[-1].append((child, own))
        else:
            groups.append([(child, own)])
    groups.sort(key=lambda group: find_order(group[0][1]))
    placed = zip(place_in_grid(values, [group[0][1] for group in groups]), groups, strict=True)

    def split_row_and_column(cell_and_group: tuple[Cell, list[Pair]]) -> Cell:
        (row, column), _ = cell_and_group
        return row, -column if is_backwards else column

    return [child for _, group in sorted(placed, key=split_row_and_column) for child, _ in group]


def is_reversed(values: Values) -> bool:
    """Whether a flex box shows its children from the last to the first; `wrap-reverse` does so with its lines."""
    return not REVERSED.isdisjoint(values.get("flex-direction", "").split())


def find_order(values: Values) -> int:
    return int(parse_length(values.get("order", "")) or 0)


def _is_placed(pair: Pair) -> bool:
    child, values = pair
    is_free = values.get("position") in ("absolute", "fixed") or child.tag in DRAWN
    return is_free and not SIDES.isdisjoint(values)


def _are_floats(styles: Sequence[Values]) -> bool:
    floats = sum(values.get("float") in ("right", "inline-end") for values in styles)
    return floats >= LEAST_PLACED or floats == len(styles)


def _are_boxes(pairs: Sequence[Pair]) -> bool:
    boxes = (child.tag in CELLS or values.get("display", "").startswith("inline-") for child, values in pairs)
    return sum(boxes) >= LEAST_PLACED


def find_position(values: Values) -> tuple[float, float]:
    """Its line, and its place in the line, in pixels from the left."""
    if SIDES.isdisjoint(values):
        return 0, 0

    def side(name: str, whole: float) -> float:
        return parse_length(values.get(name, ""), whole=whole) or 0

    x = side("left", WIDTH) if "left" in values or "right" not in values else WIDTH - side("right", WIDTH)
    y = side("top", HEIGHT) if "top" in values or "bottom" not in values else HEIGHT - side("bottom", HEIGHT)
    across, down = measure_shift(values)
    return (y + side("margin-top", WIDTH) + down) // LINE, x + side("margin-left", WIDTH) + across


class Span(NamedTuple):
    """The tracks of a child in one direction, counted from 0; `start` is None where the browser chooses it."""

    start: int | None
    size: int


class Tracks(NamedTuple):
    """The tracks of a grid in one direction that its style names: how many, and the lines of each name."""

    number: int
    lines: Mapping[str, list[int]]


def place_in_grid(values: Values, children: Sequence[Values]) -> list[Cell]:
    """Row and column of each child of a grid with these values, by the values of the children in their order."""
    flow = values.get("grid-auto-flow", "row").split()
    directions = ("column", "row") if "column" in flow else ("row", "column")
    lines, places = (
        _parse_tracks(values.get(f"grid-template-{direction}s", ""), values.get("grid-template-areas", ""), direction)
        for direction in directions
    )
    of_lines, _ = _shift([_parse_span(child, directions[0], lines) for child in children])
    of_places, before = _shift([_parse_span(child, directions[1], places) for child in children])
    spans, is_dense = list(zip(of_lines, of_places, strict=True)), "dense" in flow
    if len(spans) > MANY_CHILDREN:
        spans, is_dense = [(line._replace(size=1), place._replace(size=1)) for line, place in spans], False
    found = _place_children(spans, places.number + before, is_dense=is_dense)
    return [(row, column) for column, row in found] if "column" in flow else found


def _shift(spans: Sequence[Span]) -> tuple[list[Span], int]:
    """The spans counted from the first track that any has, and how many tracks lie before those of the style."""
    before = -min(0, *(span.start or 0 for span in spans), 0)
    return [span if span.start is None else Span(span.start + before, span.size) for span in spans], before


def _place_children(spans: Sequence[tuple[Span, Span]], length: int, *, is_dense: bool) -> list[Cell]:
    """The cell of each child, in a grid whose lines have `length` places and are filled one after the other."""
    grid = _Grid(spans)
    for child, (line, place) in enumerate(spans):
        if line.start is not None and place.start is not None:
            grid.put(child, (line.start, place.start))
    next_of_line = defaultdict[int, int](int)
    for child, (line, place) in enumerate(spans):
        if line.start is not None and place.start is None:
            free = grid.find_first_free(child, ((line.start, at) for at in count(next_of_line[line.start])))
            grid.put(child, free)
            next_of_line[line.start] = free[1] if not is_dense else 0
    length = max(
        [length, 1, *(at + 1 for _, at in grid.taken), *((place.start or 0) + place.size for _, place in spans)]
    )
    last = 0, 0
    for child, (line, place) in enumerate(spans):
        if line.start is None:
            is_small = line.size == place.size == 1 and place.start is None
            begin = (0, 0) if is_dense and not is_small else last
            cell = grid.find_first_free(child, _list_choices(place, begin, length))
            grid.put(child, cell)
            last = cell if is_small or not is_dense else last
    return [grid.cells[child] for child in range(len(spans))]


class _Grid:
    """The cells of children, and what they cover."""

    def __init__(self, spans: Sequence[tuple[Span, Span]]) -> None:
        self._spans = spans
        self.cells = dict[int, Cell]()
        self.taken = set[Cell]()

    def put(self, child: int, cell: Cell) -> None:
        self.cells[child] = cell
        self.taken.update(self._list_covered_cells(child, cell))

    def find_first_free(self, child: int, choices: Iterable[Cell]) -> Cell:
        return next(cell for cell in choices if self.taken.isdisjoint(self._list_covered_cells(child, cell)))

    def _list_covered_cells(self, child: int, cell: Cell) -> set[Cell]:
        line, place = self._spans[child]
        return {(cell[0] + x, cell[1] + y) for x, y in product(range(line.size), range(place.size))}


def _list_choices(place: Span, begin: Cell, length: int) -> Iterator[Cell]:
    """The cells that a child may have, in turn, from `begin` on."""
    line, at = begin
    if place.start is not None:
        yield from ((row, place.start) for row in count(line + (place.start < at)))
    for row in count(line):
        yield from ((row, here) for here in range(at if row == line else 0, length - place.size + 1))


@lru_cache(256)
def _parse_tracks(template: str, of_areas: str, direction: str) -> Tracks:
    lines = defaultdict[str, list[int]](list)
    number = 0
    template = REPEATED.sub(
        lambda match: f" {match[2]} " * _count_repetitions(int(match[1]), match[2]), template[:LONGEST_TEMPLATE]
    )
    for match in TRACK.finditer(template if template.lower() != "none" else ""):
        if match[1] is None:
            number += 1
        else:
            for name in match[1].split():
                lines[name].append(number)
    areas = [(match[1] or match[2] or "").split() for match in STRING.finditer(of_areas[:LONGEST_TEMPLATE])]
    for row, names in enumerate(areas):
        for column, name in enumerate(names):
            at = row if direction == "row" else column
            lines[f"{name}-start"].append(at)
            lines[f"{name}-end"] = [max(at + 1, *lines[f"{name}-end"], 0)]
    named = len(areas) if direction == "row" else max(map(len, areas), default=0)
    return Tracks(max(number, named), lines)


def _count_repetitions(wanted: int, repeated: str) -> int:
    return min(wanted, LONGEST_TEMPLATE // (len(repeated) + 1))


def _parse_span(child: Values, direction: str, tracks: Tracks) -> Span:
    (start, size), (end, size_to_end) = (
        _parse_line(child.get(f"grid-{direction}-{side}", "auto"), side, tracks) for side in ("start", "end")
    )
    if start is not None and end is not None:
        start, size = min(start, end), abs(end - start)
    elif end is not None:
        start = end - size
    elif start is not None:
        size = size_to_end
    else:
        size = max(size, size_to_end)
    return Span(start, max(1, min(size, MOST_SPANNED)))


def _parse_line(value: str, side: str, tracks: Tracks) -> tuple[int | None, int]:
    """The line that a value names, counted from 0, and how many tracks it spans."""
    words = value.split()
    number = next((int(found) for word in (value, *words) if (found := parse_length(word)) is not None), 0)
    if "span" in map(str.lower, words):
        return None, number
    if name := next(filter(NAME.fullmatch, words), ""):
        lines = tracks.lines.get(f"{name}-{side}") or tracks.lines.get(name) or []
        at = number - 1 if number > 0 else number
        if -len(lines) <= at < len(lines):
            return lines[at], 1
        return tracks.number + max(number, 1) - len(lines), 1  # every line beyond has every name
    if number < 0:
        return tracks.number + 1 + number, 1
    return (number - 1 if number else None), 1
