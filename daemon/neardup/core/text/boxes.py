"""Whether an element's box leaves anything of it to be seen: off the screen, clipped, or of no size."""

import re
from collections.abc import Mapping
from functools import lru_cache

from neardup.core.text.css import FAR, HIDING_CLIP, HIDING_DISPLAYS, HIDING_TRANSFORM, TINY
from neardup.core.text.css_media import HEIGHT, WIDTH
from neardup.core.text.css_values import pixels

Values = Mapping[str, str]  # of longhands and custom properties
CLIPPING = {"paint", "content", "strict"}  # containments
TRANSLATION = re.compile(r"translate(3d|[xyz])?\(((?:[^()]|\([^()]*\))*)\)", re.IGNORECASE)
LINES = 2.5  # lines of text are lower
NUMBERS = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)[a-z%]*")


def is_out_of_flow(values: Values) -> bool:
    return values.get("position") in ("absolute", "fixed") or values.get("float", "none") != "none"


def is_low(values: Values, size: float) -> bool:
    """Whether it is clipped to a line, or to a part of one."""
    if values.get("-webkit-line-clamp", "none") != "none":
        return True
    if values.get("overflow", "visible") == "visible":
        return False
    heights = (pixels(values.get(name, ""), size) for name in ("height", "max-height"))
    is_one_line = values.get("white-space", "normal") in ("nowrap", "pre")
    is_narrow = is_one_line and not {"width", "max-width"}.isdisjoint(values)
    return is_narrow or any(height is not None and height < LINES * size for height in heights)


def covers(values: Values) -> bool:
    """Whether it lies over what is beside it."""
    if (
        values.get("position") not in ("absolute", "fixed")
        or values.get("background-color", "transparent") == "transparent"
    ):
        return False
    return all(
        values.get(side) == "100%" or (start in values and end in values)
        for side, start, end in (("width", "left", "right"), ("height", "top", "bottom"))
    )


def is_unseen(values: Values, display: str, size: float) -> bool:
    """Whether nothing within an element can be seen, whatever its own style."""
    if not values or display in HIDING_DISPLAYS or display == "contents":
        return display in HIDING_DISPLAYS
    return _is_moved_or_clipped(tuple(values.items()), display, size)


@lru_cache(4096)
def _is_moved_or_clipped(items: tuple[tuple[str, str], ...], display: str, size: float) -> bool:
    values = dict(items)
    is_box = display != "inline" or is_out_of_flow(values)
    return _is_off_screen(values, size, is_box=is_box) or _is_clipped(values, size, is_box=is_box)


def _is_off_screen(values: Values, size: float, *, is_box: bool) -> bool:
    """Whether it is moved to where no reader can scroll."""

    def moved(name: str) -> float:
        return pixels(values.get(name, ""), size) or 0

    if values.get("position", "static") != "static":
        if min(moved("left"), moved("top"), moved("right")) <= -FAR:
            return True
        if max(moved("left"), moved("right"), moved("bottom")) >= 5 * FAR:
            return True
    if values.get("position") == "fixed" and (moved("top") >= HEIGHT or moved("left") >= WIDTH):
        return True
    if is_box and min(shifts(values, size)) <= -FAR:
        return True
    return min(moved("margin-left"), moved("margin-top")) <= -FAR


def shifts(values: Values, size: float = 16) -> tuple[float, float]:
    """How far it is moved to the right and down by transformations, in pixels."""
    across = down = 0.0
    for axes, numbers in TRANSLATION.findall(f"translate({values.get('translate', '')}) {values.get('transform', '')}"):
        x, *others = [pixels(part.strip(), size) or 0 for part in _arguments(numbers)]
        across += x if axes != "y" else 0
        down += x if axes == "y" else others[0] if others and axes in ("", "3d") else 0
    return across, down


def _arguments(text: str) -> list[str]:
    return text.split(",") if "," in text or "(" in text else text.split() or [""]


def _is_clipped(values: Values, size: float, *, is_box: bool) -> bool:
    """Whether it is cut down to nothing, or to a dot."""
    if values.get("content-visibility") == "hidden" or HIDING_CLIP.search(values.get("clip-path", "")):
        return True
    corners = [pixels(part, size) or 0 for part in NUMBERS.findall(values.get("clip", ""))]
    if values.get("position") in ("absolute", "fixed") and len(corners) == 4:
        top, right, bottom, left = corners
        if bottom - top < TINY or right - left < TINY:
            return True
    if not is_box:
        return False
    if HIDING_TRANSFORM.search(values.get("transform", "")) or 0 in map(
        pixels, values.get("scale", "none").split()[:2]
    ):
        return True
    sides = (pixels(values.get(name, ""), size) for name in ("width", "height", "max-width", "max-height"))
    is_small = any(side is not None and side < TINY for side in sides)
    clips = not {"hidden", "clip"}.isdisjoint(values.get("overflow", "visible").split())
    return is_small and (clips or not CLIPPING.isdisjoint(values.get("contain", "").split()))
