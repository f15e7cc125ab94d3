"""Declarations by which a browser may hide or move a text in ways that are not computed here.

A text with such a style is doubtful: `core.text.rendering` reads it both with and without the text beside it.
"""

import re
from collections.abc import Callable

from neardup.core.text.css_values import UNCOMPUTED, colour, is_computed, pixels

FAR_ENOUGH, BACK = 300, 20  # pixels; a text that is moved so far may lie outside of what it is part of
SMALL = 6  # pixels; letters of this size can hardly be read
TIGHT = -2  # pixels between letters
DIM = 0.3  # opacity
WHITISH = 0.9  # of red, green and blue
THICK = re.compile(r"\d(px|em|rem|pt|%)")
MOVING = ("left", "top", "right", "bottom", "margin-left", "margin-top", "margin-right", "margin-bottom", "text-indent")
HARMLESS_IF_UNKNOWN = {
    "content", "background-image", "background-color", "width", "height", "max-width", "max-height", *MOVING
}  # fmt: skip
HARMLESS = {"", "none", "normal", "auto", "visible"}


def _moves(value: str) -> bool:
    size = pixels(value) or 0
    return size >= FAR_ENOUGH or size <= -BACK


DOUBTS: dict[str, Callable[[str], bool]] = {
    "position": lambda value: value in ("absolute", "fixed"),
    "z-index": lambda value: value.startswith("-"),
    **dict.fromkeys(("letter-spacing", "word-spacing"), lambda value: (pixels(value) or 0) <= TIGHT),
    **dict.fromkeys(("text-decoration", "text-decoration-thickness"), lambda value: bool(THICK.search(value))),
    "font-size": lambda value: (pixels(value) or SMALL) < SMALL,
    "font-size-adjust": lambda value: value != "none",
    "opacity": lambda value: (pixels(value, whole=1) or 0) < DIM,
    **dict.fromkeys(("color", "-webkit-text-fill-color"), lambda value: value != "currentcolor" and not colour(value)),
    "fill": lambda value: value in ("none", "transparent") or min((colour(value) or (0,))[:3]) > WHITISH,
    "contain": lambda value: any(word in value for word in ("strict", "size", "content")),
    "content": lambda value: value.startswith(("url(", "image-set(", "linear-")),
    **dict.fromkeys(("grid-template-columns", "grid-template-rows"), lambda value: pixels(value.split()[0]) == 0),
    **dict.fromkeys(MOVING, _moves),
}


def is_doubtful(name: str, value: str) -> bool:
    """Whether a text with this declaration may be hidden or moved."""
    if not is_computed(value):
        return name not in HARMLESS_IF_UNKNOWN
    if name in DOUBTS:
        return DOUBTS[name](value)
    return name in UNCOMPUTED and value.split(maxsplit=1)[0] not in HARMLESS
