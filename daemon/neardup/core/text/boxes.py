"""Whether an element's box leaves anything of it to be seen: off the screen, clipped, or of no size."""

import re
from collections.abc import Mapping
from functools import lru_cache

from neardup.core.text.css import FAR, HIDING_CLIP, HIDING_TRANSFORM, TINY
from neardup.core.text.css_media import HEIGHT, WIDTH
from neardup.core.text.css_values import pixels

Values = Mapping[str, str]  # of longhands and custom properties
CLIPPING = {"paint", "content", "strict"}  # containments
TRANSLATION = re.compile(r"translate\w*\(([^)]*)\)")
HIDING_DISPLAYS = ("none", "table-column", "table-column-group")
NUMBERS = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)[a-z%]*")


def is_out_of_flow(values: Values) -> bool:
    return values.get("position") in ("absolute", "fixed") or values.get("float", "none") != "none"


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
    shifts = (values.get("translate", ""), *TRANSLATION.findall(values.get("transform", "")))
    if is_box and any((pixels(part, size) or 0) <= -FAR for shift in shifts for part in NUMBERS.findall(shift)):
        return True
    return min(moved("margin-left"), moved("margin-top")) <= -FAR


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
