"""The values of the properties that decide whether a browser shows a text: validity, shorthands, lengths, colours.

A declaration is expanded to the longhands that matter here (`expand`), and one that a browser would ignore to none.
Lengths come to pixels, arithmetic included: calc(), min(), max() and clamp() (CSS Values and Units 4, 10).  The
shorthands of a grid follow CSS Grid Layout 7 and 8.
"""

import ast
import operator
import re
from collections.abc import Callable
from functools import lru_cache
from math import isnan

from tinycss2.color4 import parse_color

CALC = re.compile(r"(?:-webkit-)?calc(?=\()")
ARITHMETIC = ("calc(", "-webkit-calc(", "min(", "max(", "clamp(")
TERM = re.compile(r"(?<![\w.])(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?[a-z%]*")
MOST_PIXELS = 33_554_428.0
LONGEST_ARITHMETIC = 100  # characters; a browser reads longer ones, which pages do not have
OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
SIGNS: dict[type[ast.unaryop], Callable[[float], float]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}

GRID_LINES = ("grid-row-start", "grid-row-end", "grid-column-start", "grid-column-end")
GRID_TRACKS = ("grid-template-areas", "grid-template-rows", "grid-template-columns")
GRID_SHORTHANDS = ("grid-area", "grid-row", "grid-column", "grid-template", "grid")
STRING = re.compile(r"\"([^\"]*)\"|'([^']*)'")
NAME = re.compile(r"(?!(?:auto|span)$)-*[^\W\d][\w-]*", re.IGNORECASE)

Colour = tuple[float, float, float, float]  # red, green, blue and opacity, from 0 to 1

GLOBAL = frozenset(["inherit", "initial", "unset", "revert", "revert-layer"])
LENGTH = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)([a-z%]*)")
UNITS = {  # in pixels, in a window of 1,280 by 720 with a font of 16
    "px": 1, "pt": 4 / 3, "pc": 16, "in": 96, "cm": 96 / 2.54, "mm": 9.6 / 2.54, "q": 2.4 / 2.54, "rem": 16,
    "rlh": 18, "rex": 8, "rch": 8, "ric": 16, "rcap": 11,
    **{size + side: 12.8 for size in ("", "d", "s", "l") for side in ("vw", "vi", "vmax")},
    **{size + side: 7.2 for size in ("", "d", "s", "l") for side in ("vh", "vb", "vmin")},
    "cqw": 12.8, "cqi": 12.8, "cqmax": 12.8, "cqh": 7.2, "cqb": 7.2, "cqmin": 7.2,  # where there is no container
}  # fmt: skip
OF_FONT = {"em": 1, "ex": 0.5, "ch": 0.5, "cap": 0.7, "lh": 1, "ic": 1}  # in sizes of the element's font
FONT_SIZES = {
    "xx-small": 9, "x-small": 10, "small": 13, "medium": 16, "large": 18, "x-large": 24, "xx-large": 32,
    "xxx-large": 48, "smaller": 13, "larger": 19, "math": 16,
}  # fmt: skip
# The properties that may hide or move a text in ways that are not computed.
UNCOMPUTED = (
    "mask", "mix-blend-mode", "animation", "clip-path", "transform", "scale", "rotate", "translate", "filter",
    "offset-path", "backface-visibility", "perspective", "font-size-adjust", "-webkit-box-reflect", "text-security",
)  # fmt: skip
# They only make a text visible that has no colour of its own.
PAINTING = ("text-shadow", "-webkit-text-stroke", "background-clip")
ARRANGING = ("order", "flex-direction", "grid-auto-flow", *GRID_TRACKS, *GRID_LINES)
# Their values are case-sensitive.
CASED = frozenset(("content", *GRID_SHORTHANDS, *GRID_TRACKS, *GRID_LINES))
# The functions whose value is known; that of others, such as color-mix(), env() and if(), is not.
KNOWN_FUNCTIONS = re.compile(
    r"(?:-webkit-)?(calc|min|max|clamp|url|attr|counter|counters|rgba?|hsla?|hwb|lab|lch|oklab|oklch|color|rect|inset|"
    r"circle|ellipse|polygon|path|opacity|[\w-]*gradient|scale\w*|translate\w*|rotate\w*|matrix\w*|skew\w*|"
    r"var|fit-content|minmax|repeat|image-set)$"
)
COLOUR_WORD = re.compile(r"[a-z]+\([^)]*\)|#?[\w-]+")
FUNCTION = re.compile(r"([a-z-]+)\(")
LIGHT_SYSTEM_COLOURS = frozenset(
    ("canvas", "field", "buttonface", "highlighttext", "accentcolortext", "mark", "window")
)
LIGHTNESS = {"lab": 100, "lch": 100, "oklab": 1, "oklch": 1}  # of white, by colour space
DISPLAYS = frozenset((
    "none", "inline", "block", "inline-block", "flex", "inline-flex", "grid", "inline-grid", "table", "inline-table",
    "table-row", "table-cell", "table-row-group", "table-header-group", "table-footer-group", "table-column",
    "table-column-group", "table-caption", "list-item", "flow-root", "contents", "ruby", "ruby-text", "-webkit-box",
    "-webkit-inline-box", "flow", "math",
))  # fmt: skip
SIDES = ("top", "right", "bottom", "left")
# Properties that are read as another one: logical ones as in a text from left to right, those by an older or a newer
# name, and some longhands as their shorthand.
ALIASES = {
    "inset-inline-start": "left", "inset-inline-end": "right", "inset-block-start": "top", "inset-block-end": "bottom",
    "margin-inline-start": "margin-left", "margin-inline-end": "margin-right",
    "margin-block-start": "margin-top", "margin-block-end": "margin-bottom",
    "inline-size": "width", "block-size": "height", "max-inline-size": "max-width", "max-block-size": "max-height",
    "mask-image": "mask", "animation-name": "animation", "flex-flow": "flex-direction", "offset": "offset-path",
    "-webkit-text-security": "text-security",
    "-webkit-text-stroke-width": "-webkit-text-stroke", "-webkit-mask-image": "mask",
    "line-clamp": "-webkit-line-clamp",
    "overflow-x": "overflow", "overflow-y": "overflow", "overflow-inline": "overflow", "overflow-block": "overflow",
}  # fmt: skip


def calculate(value: str, length: Callable[[str], float | None]) -> float | None:
    """The number that an arithmetic value comes to, where `length` gives that of a term; None for other values."""
    if not value.startswith(ARITHMETIC) or len(value) > LONGEST_ARITHMETIC:
        return None
    terms = TERM.sub(lambda term: str(length(term[0])), CALC.sub("", value))
    try:
        return clamp_pixels(_read_number(ast.parse(terms, mode="eval").body))
    except (SyntaxError, ValueError, ArithmeticError):
        return None


def clamp_pixels(number: float) -> float:
    """A number within what a browser can lay out; 0 for one that is none, as in a browser."""
    return 0.0 if isnan(number) else max(-MOST_PIXELS, min(number, MOST_PIXELS))


def _read_number(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=float(number)):
            return number
        case ast.UnaryOp(op, operand) if type(op) in SIGNS:
            return SIGNS[type(op)](_read_number(operand))
        case ast.BinOp(left, op, right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_read_number(left), _read_number(right))
        case ast.Call(ast.Name("min"), [first, *rest]):
            return min([_read_number(first), *map(_read_number, rest)])
        case ast.Call(ast.Name("max"), [first, *rest]):
            return max([_read_number(first), *map(_read_number, rest)])
        case ast.Call(ast.Name("clamp"), [least, middle, most]):
            return max(_read_number(least), min(_read_number(middle), _read_number(most)))
    raise ValueError("not arithmetic")


def _expand_grid(name: str, value: str) -> list[tuple[str, str]]:
    """One of GRID_SHORTHANDS -> its longhands."""
    if name in ("grid-template", "grid"):
        return _expand_template(value)
    first, second, third, fourth = ([part.strip() for part in value.split("/")] + [""] * 3)[:4]
    if name != "grid-area":
        return [(f"{name}-start", first), (f"{name}-end", second or _complete_line(first))]
    column = second or _complete_line(first)
    return list(
        zip(GRID_LINES, (first, third or _complete_line(first), column, fourth or _complete_line(column)), strict=True)
    )


def _complete_line(start: str) -> str:
    """The end that a declaration means which names a start only: a name counts for both."""
    return start if NAME.fullmatch(start) else "auto"


def _expand_template(value: str) -> list[tuple[str, str]]:
    rows, _, columns = value.partition("/")
    areas = " ".join(match[0] for match in STRING.finditer(rows)) or "none"
    flow = "column" if "auto-flow" in columns.lower() else "row"
    return [
        ("grid-template-areas", areas),
        ("grid-template-rows", "none" if "auto-flow" in rows.lower() else STRING.sub(" ", rows).strip() or "none"),
        ("grid-template-columns", "none" if flow == "column" else columns.strip() or "none"),
        ("grid-auto-flow", flow),
    ]


@lru_cache(4096)
def parse_length(value: str, em: float = 16, whole: float = 1280) -> float | None:
    """A length in pixels, or a share of `whole`; a plain number is taken as it is.  None for other values."""
    match = LENGTH.fullmatch(value)
    if not match:
        return calculate(value, lambda length: parse_length(length, em, whole))
    number, unit = clamp_pixels(float(match[1])), match[2]
    if unit in ("", "%"):
        return number * (whole / 100 if unit else 1)
    if unit in OF_FONT:
        return number * em * OF_FONT[unit]
    return number * UNITS[unit] if unit in UNITS else None


@lru_cache(4096)
def parse_colour(value: str) -> Colour | None:
    """A colour, of lab and lch the grey of its lightness; None for `currentcolor` and for what is no colour of sRGB."""
    try:
        parsed = parse_color(value)
        if parsed is None or isinstance(parsed, str):
            return None
        if parsed.space in LIGHTNESS:  # of these colours, only what is as good as black or white is of interest
            red = green = blue = float(parsed.coordinates[0] or 0) / LIGHTNESS[parsed.space]
        else:
            red, green, blue = parsed.to("srgb").coordinates
    except (NotImplementedError, ValueError, TypeError):
        return None
    return float(red or 0), float(green or 0), float(blue or 0), float(parsed.alpha)


def is_light(colour: Colour) -> bool:
    """Whether a dark text can be read on it."""
    return colour[3] < 0.5 or 0.3 * colour[0] + 0.6 * colour[1] + 0.1 * colour[2] > 0.6


def is_length(value: str) -> bool:
    """Whether it is a length, or has a function, which may come to one."""
    return parse_length(value) is not None or "(" in value


def is_one_of(words: str) -> Callable[[str], bool]:
    return frozenset(words.split()).__contains__


def is_size(value: str) -> bool:
    return is_length(value) or value in ("auto", "none", "min-content", "max-content", "fit-content")


def is_font_size(value: str) -> bool:
    return value in FONT_SIZES or ("(" in value or ((size := parse_length(value)) is not None and size >= 0))


def is_colour(value: str) -> bool:
    known = value in LIGHT_SYSTEM_COLOURS or value.startswith(("color", "ok", "lab(", "lch(", "rgb(from", "hsl(from"))
    return known or value == "currentcolor" or parse_colour(value) is not None


@lru_cache(4096)
def is_computed(value: str) -> bool:
    """Whether the value of each function in it is known."""
    if value.startswith(ARITHMETIC) and parse_length(value) is None:
        return False
    return all(map(KNOWN_FUNCTIONS.match, FUNCTION.findall(value))) and "(from " not in value


def is_any_value(value: str) -> bool:
    return bool(value)


LONGHANDS: dict[str, Callable[[str], bool]] = {
    "display": lambda value: all(word in DISPLAYS for word in value.split()),
    "visibility": is_one_of("visible hidden collapse"),
    "position": is_one_of("static relative absolute fixed sticky -webkit-sticky"),
    "float": is_one_of("none left right inline-start inline-end"),
    "font-size": is_font_size,
    **dict.fromkeys(("opacity", "zoom"), lambda value: parse_length(value, whole=1) is not None),
    "color": is_colour,
    "-webkit-text-fill-color": is_colour,
    "background-color": is_colour,
    "background-image": is_any_value,
    "overflow": lambda value: all(map(is_one_of("visible hidden clip scroll auto overlay"), value.split())),
    "content-visibility": is_one_of("visible hidden auto"),
    "content": is_any_value,
    **dict.fromkeys(("clip", "contain"), is_any_value),
    **dict.fromkeys(
        ("width", "height", "max-width", "max-height", *SIDES, *(f"margin-{side}" for side in SIDES)), is_size
    ),
    **dict.fromkeys((*UNCOMPUTED, *PAINTING, *ARRANGING, "fill", "z-index", "text-decoration"), is_any_value),
    **dict.fromkeys(("letter-spacing", "word-spacing", "text-decoration-thickness"), is_any_value),
    "direction": is_one_of("ltr rtl"),
    **dict.fromkeys(("white-space", "-webkit-line-clamp"), is_any_value),
    "unicode-bidi": is_one_of("normal embed isolate plaintext bidi-override isolate-override"),
    "text-indent": lambda value: is_length(value.split()[0]),
}
AXES = {
    "inset-inline": ("left", "right"), "inset-block": ("top", "bottom"),
    "margin-inline": ("margin-left", "margin-right"), "margin-block": ("margin-top", "margin-bottom"),
}  # fmt: skip
SHORTHANDS = frozenset(("font", "background", "inset", "margin", *AXES, *GRID_SHORTHANDS))


def is_known(name: str) -> bool:
    """Whether a property, or a shorthand, has longhands that matter here."""
    spellings = name, name.removeprefix("-webkit-")
    return any(spelling in known for known in (LONGHANDS, SHORTHANDS, ALIASES) for spelling in spellings)


def expand(name: str, value: str) -> tuple[tuple[str, str], ...]:
    """A declaration -> its longhands that matter here; empty if it has none, or if a browser would ignore it."""
    name = ALIASES.get(name, name)
    if name not in LONGHANDS and name.startswith("-webkit-"):
        name = name.removeprefix("-webkit-")
    if name not in CASED:
        value = value.lower()
    if name == "all":
        return tuple((longhand, value) for longhand in LONGHANDS) if value in GLOBAL else ()
    pairs = _expand(name, value)
    return tuple(pairs) if all(_is_valid(longhand, text) for longhand, text in pairs) else ()


def _is_valid(name: str, value: str) -> bool:
    if name not in LONGHANDS or not value:
        return False
    return value in GLOBAL or LONGHANDS[name](value) or not is_computed(value)


def _expand(name: str, value: str) -> list[tuple[str, str]]:
    words = value.split()
    if name == "font":
        sizes = [word.split("/")[0] for word in words]
        return [("font-size", next((size for size in sizes if size in GLOBAL or _is_size_of_font(size)), ""))]
    if name == "background":
        return _expand_background(value)
    if name in GRID_SHORTHANDS:
        return _expand_grid(name, value)
    if name in ("inset", "margin") and words:
        prefix = "margin-" if name == "margin" else ""
        each = (words * 4)[:4] if len(words) != 3 else [*words, words[1]]
        pairs = [(prefix + side, word) for side, word in zip(SIDES, each, strict=False)]
        return [pair for pair in pairs if pair[0] in LONGHANDS]
    if name in AXES and words:
        return list(zip(AXES[name], (words[0], words[-1]), strict=True))
    return [(name, value)]


def _is_size_of_font(word: str) -> bool:
    """Whether it is the size, not the weight, which is a plain number."""
    return word in FONT_SIZES or (parse_length(word) is not None and (not word[-1].isdigit() or word in ("0", "0.0")))


def _expand_background(value: str) -> list[tuple[str, str]]:
    image = "url(" in value or "gradient(" in value
    outside = re.sub(r"(url|[a-z-]*gradient)\(.*\)", " ", value)
    stops = [colour for colour in COLOUR_WORD.findall(value.partition("gradient(")[2]) if is_colour(colour)]
    if len(stops) > 1 and len({parse_colour(stop) for stop in stops}) == 1:  # a picture of one colour
        image, outside = False, stops[0]
    found = next(
        (colour for colour in COLOUR_WORD.findall(outside) if colour in GLOBAL or is_colour(colour)), "transparent"
    )
    clip = "text" if "text" in outside.split() else "border-box"
    return [("background-color", found), ("background-image", "image" if image else "none"), ("background-clip", clip)]
