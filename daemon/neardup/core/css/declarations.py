"""The declarations that decide whether a browser shows a text, and which of them act.

The parser is tinycss2.  Most pages use the same few styles, so parsed ones are cached.

A declaration acts if it may hide a text, change where its words end, or show another one.  What it does is computed
where that can be done; otherwise the text is doubtful, and `core.css.rendering` reads it both with and without the text
beside it.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Any

import tinycss2
from msgspec import Struct

from neardup.core.css.values import (
    GLOBAL,
    UNCOMPUTED,
    expand,
    is_computed,
    is_known,
    is_light,
    parse_colour,
    parse_length,
)

Longhands = tuple[tuple[str, str], ...]  # names and values
NODES = {"skip_comments": True, "skip_whitespace": True}
BRACKETS = re.compile(r"[][(){}]")
LONG_NUMBER = re.compile(r"(\d{4000})\d+")
MOST_NESTED = 32
MOST_VALUES, LONGEST_VALUE = 100, 1_000  # that are looked at of a declaration with custom properties, and characters
CUSTOM_PROPERTY = re.compile(r"--[\w-]+")
VAR = re.compile(r"var\(", re.IGNORECASE)
FAR = 1_000  # pixels; what lies further to the left of a page or above it is never seen
LOW = 40  # pixels; a box may be clipped to a line
TINY = 2  # pixels; letters of this size cannot be read
FAINT = 0.05  # opacity
HIDING_DISPLAYS = ("none", "table-column", "table-column-group")
PICTURES = ("url(", "image-set(", "linear-")  # values of `content` that stand in the place of a text
# Properties that act on the lines and the children of the element that has them.
OF_LINES = frozenset((
    "white-space", "-webkit-line-clamp", "float", "order", "flex-direction", "grid-auto-flow", "grid-row-start",
    "grid-column-start",
))  # fmt: skip
# What takes an element out of the flow of those beside it, to a place of its own.
FREED = frozenset((("position", "absolute"), ("position", "fixed"), ("float", "right"), ("float", "inline-end")))
HIDING_CLIP = re.compile(r"inset\(\s*(100|[5-9]\d)(\.\d*)?%|(circle|ellipse)\(\s*0|polygon\(\s*0[^,)]*(,\s*0[^,)]*)*\)")
HIDING_TRANSFORM = re.compile(
    r"scale(x|y|3d)?\(\s*([\d.]+\s*,\s*)?0*(\.0+)?%?\s*[,)]|matrix\(\s*0\s*,\s*0\s*,|rotate[xy]\(\s*-?90deg"
)

MARKERS = frozenset(("list-style", "list-style-type", "quotes"))  # properties whose strings are shown

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


class Declaration(Struct, frozen=True):
    """A declaration; `longhands` are empty for MARKERS, and where a custom property, which the element has, decides."""

    name: str
    value: str
    important: bool
    longhands: Longhands


class Declarations(Struct, frozen=True):
    """The declarations of one block; `acts` says that they may hide a text, or change where its words end.

    `acts_around` says the same of a text that stands in another element within the one that has the declarations.
    What `moves` may place the element out of the order of those beside it, or over them.  Where only declarations with
    custom properties make it act around, these are `open`: their values may be such that nothing acts.
    """

    items: tuple[Declaration, ...]
    acts: bool
    acts_around: bool = False
    moves: bool = False
    open: tuple[Declaration, ...] = ()


@lru_cache(4096)
def parse_declarations(style: str) -> Declarations:
    """The value of a `style` attribute -> its valid declarations of properties that matter here."""
    return read_declarations(tinycss2.parse_blocks_contents(make_parsable(style), **NODES))


def make_parsable(style: str) -> str:
    """A style as the parser can follow it: numbers have at most 4,000 digits.

    It is empty if brackets are nested deeper than MOST_NESTED, as in no honest style.
    """
    deepest = depth = 0
    for bracket in BRACKETS.findall(style):
        depth += 1 if bracket in "([{" else -1
        deepest = max(deepest, depth)
    return LONG_NUMBER.sub(r"\1", style) if deepest <= MOST_NESTED else ""


def substitute_properties(value: str, custom: Mapping[str, str], depth: int = 0) -> str | None:
    """A value with its `var()`s replaced; None if a property is not defined and has no fallback."""
    found = VAR.search(value)
    if found is None:
        return value
    at, end = found.start(), _find_closing(value, found.end() - 1)
    name, comma, fallback = value[found.end() : end].partition(",")
    held = custom.get(name.strip())
    if held is None or held.lower() == "initial":  # which makes it one that is not defined
        held = fallback if comma else None
    if held is None or depth > 16:
        return None
    return substitute_properties(f"{value[:at]}{held}{value[end + 1 :]}".strip(), custom, depth + 1)


def list_possible_values(value: str, custom: Callable[[str], Iterable[str]]) -> set[str] | None:
    """The values that one with `var()`s may have, by those of each custom property; None if they are not all known.

    One of which a property is not defined, and has no fallback, has none.
    """
    known: set[str] = set()
    pending = [value]
    for _ in range(MOST_VALUES):
        if not pending:
            return known
        text = pending.pop()
        found = VAR.search(text)
        if found is None:
            known.add(text)
            continue
        at, end = found.start(), _find_closing(text, found.end() - 1)
        name, comma, fallback = text[found.end() : end].partition(",")
        declared = (choice for choice in custom(name.strip()) if choice.lower() not in GLOBAL)
        choices = {*declared, *([fallback] if comma else [])}
        if not CUSTOM_PROPERTY.fullmatch(name.strip()) or len(text) > LONGEST_VALUE or len(choices) > MOST_VALUES:
            return None
        pending += [f"{text[:at]}{choice}{text[end + 1 :]}".strip() for choice in choices]
    return None


def _find_closing(value: str, opening: int) -> int:
    depth = 0
    for at in range(opening, len(value)):
        depth += {"(": 1, ")": -1}.get(value[at], 0)
        if not depth:
            return at
    return len(value)


def read_declarations(nodes: list[Any]) -> Declarations:
    """The nodes of a block -> its valid declarations of properties that matter here."""
    items = []
    for node in nodes:
        if node.type != "declaration":
            continue
        value = tinycss2.serialize([token for token in node.value if token.type != "comment"]).strip()
        if node.name.startswith("--"):
            items.append(Declaration(node.name, value, node.important, ()))
        elif ("var(" in value.lower() and is_known(node.lower_name)) or (node.lower_name in MARKERS and '"' in value):
            items.append(Declaration(node.lower_name, value, node.important, ()))
        elif longhands := expand(node.lower_name, value):
            items.append(Declaration(node.lower_name, value, node.important, longhands))
    pairs = [
        (name, value)
        for name, value in _choose_strongest(items).items()
        if _may_hide(name, value) or is_doubtful(name, value)
    ]
    reaches_within = any(_reaches_within(name, value) for name, value in pairs)
    if unknown := tuple(item for item in items if _has_custom_property(item)):
        return Declarations(tuple(items), True, True, True, () if reaches_within else unknown)
    return Declarations(tuple(items), bool(pairs), reaches_within, any(_moves(name, value) for name, value in pairs))


def _has_custom_property(declaration: Declaration) -> bool:
    """Whether a custom property decides on a declaration, which is not that of another one."""
    is_own = declaration.name.startswith("--")
    return not (is_own or declaration.longhands) and "var(" in declaration.value.lower()


def _choose_strongest(items: list[Declaration]) -> dict[str, str]:
    """The longhands that a block sets, each with the value that holds."""
    ordered = sorted(items, key=attrgetter("important"))
    return {
        name: value
        for declaration in ordered
        if declaration.value != "revert-layer"
        for name, value in declaration.longhands
    }


def _reaches_within(name: str, value: str) -> bool:
    """Whether what acts on the text directly in an element may act on that of an element within, too."""
    if name == "display":
        return value in HIDING_DISPLAYS or not is_computed(value)
    if name == "content":
        return value.startswith(PICTURES)
    if name in ("height", "max-height"):
        return not is_computed(value) or (parse_length(value) or 0) < TINY
    return name not in OF_LINES


def _moves(name: str, value: str) -> bool:
    return name == "order" or (name, value) in FREED


def _may_hide(name: str, value: str) -> bool:  # noqa: C901, PLR0911 - one line a property
    match name:
        case "display" | "content" | "content-visibility" | "clip":
            return value not in ("normal", "auto", "visible")
        case "unicode-bidi":
            return value.endswith("override")
        case "visibility":
            return value not in ("visible", "inherit")
        case "font-size" | "zoom" | "width" | "max-width":
            return (size := parse_length(value)) is not None and size < TINY
        case "height" | "max-height":
            return (size := parse_length(value)) is not None and size < LOW
        case "white-space" | "-webkit-line-clamp":
            return value not in ("normal", "none", "pre-wrap", "pre-line")
        case "opacity":
            return (parse_length(value, whole=1) or 0) < FAINT
        case "color" | "-webkit-text-fill-color":
            return (parsed := parse_colour(value)) is not None and (parsed[3] < FAINT or is_light(parsed))
        case "background-color":
            return (parsed := parse_colour(value)) is not None and not is_light(parsed)
        case "left" | "top" | "right" | "bottom" | "margin-left" | "margin-top" | "text-indent":
            return abs(parse_length(value) or 0) >= FAR
        case "float" | "position":
            return value in ("left", "right", "inline-start", "inline-end", "absolute", "fixed")
        case "contain" | "order" | "flex-direction" | "grid-auto-flow" | "grid-row-start" | "grid-column-start":
            return value not in ("none", "row", "column", "auto")
    return False


def _is_moved_far(value: str) -> bool:
    size = parse_length(value) or 0
    return size >= FAR_ENOUGH or size <= -BACK


DOUBTS: dict[str, Callable[[str], bool]] = {
    "position": lambda value: value in ("absolute", "fixed"),
    "z-index": lambda value: value.startswith("-"),
    **dict.fromkeys(("letter-spacing", "word-spacing"), lambda value: (parse_length(value) or 0) <= TIGHT),
    **dict.fromkeys(("text-decoration", "text-decoration-thickness"), lambda value: bool(THICK.search(value))),
    "font-size": lambda value: (parse_length(value) or SMALL) < SMALL,
    "font-size-adjust": lambda value: value != "none",
    "opacity": lambda value: (parse_length(value, whole=1) or 0) < DIM,
    **dict.fromkeys(
        ("color", "-webkit-text-fill-color"), lambda value: value != "currentcolor" and not parse_colour(value)
    ),
    "fill": lambda value: value in ("none", "transparent") or min((parse_colour(value) or (0,))[:3]) > WHITISH,
    "contain": lambda value: any(word in value for word in ("strict", "size", "content")),
    "content": lambda value: value.startswith(("url(", "image-set(", "linear-")),
    **dict.fromkeys(("grid-template-columns", "grid-template-rows"), lambda value: parse_length(value.split()[0]) == 0),
    **dict.fromkeys(MOVING, _is_moved_far),
}


def is_doubtful(name: str, value: str) -> bool:
    """Whether a text with this declaration may be hidden or moved."""
    if not is_computed(value):
        return name not in HARMLESS_IF_UNKNOWN
    if name in DOUBTS:
        return DOUBTS[name](value)
    return name in UNCOMPUTED and value.split(maxsplit=1)[0] not in HARMLESS
