"""The style that an element has and hands down, how it is displayed, and what both mean for the text in it.

Three things decide whether a text is seen: what the element inherits and declares (`compute_style`), whether its box
leaves anything of it to be seen (`is_unseen`: off the screen, clipped, or of no size), and for what is not computed, a
doubt.  Texts that are as likely to be seen form a layer, and large doubtful layers are read once more, apart
(`choose_layers_apart`).  Elements that inherit one style and declare the same values have one `Look`.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Self

from msgspec import Struct, field
from msgspec.structs import replace

from neardup.core.css.declarations import FAINT, FAR, HIDING_CLIP, HIDING_DISPLAYS, HIDING_TRANSFORM, TINY, is_doubtful
from neardup.core.css.sheets import HEIGHT, WIDTH
from neardup.core.css.values import FONT_SIZES, PAINTING, Colour, is_light, parse_colour, parse_length

LEAST_APART = 200  # characters; layers that are shorter are read with the others alone
LEAST_HIDDEN = 400  # characters; hidden texts are read too if they have so many,
MOST_HIDING = 2  # and more than so many times as many as are shown
MOST_LAYERS = 2  # of doubtful texts are read apart; the others are read together

# What texts have in common that are as likely to be seen: the declarations by which they may be hidden.
Layer = frozenset[str]
SEEN: Layer = frozenset()
HIDDEN: Layer = frozenset(["hidden"])
ANIMATED: Layer = frozenset(["animation"])
PAINTED: Layer = frozenset(["painting"])

Values = Mapping[str, str]  # of longhands and custom properties
Attributes = Mapping[str, str | None]
CLIPPING = {"paint", "content", "strict"}  # containments
TRANSLATION = re.compile(r"translate(3d|[xyz])?\(((?:[^()]|\([^()]*\))*)\)", re.IGNORECASE)
LINES = 2.5  # a box that is lower than so many font sizes shows one line, or a part of one
NUMBERS = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)[a-z%]*")

BLACK: Colour = (0, 0, 0, 1)
WHITE: Colour = (1, 1, 1, 1)
SHARE = re.compile(r"opacity\(\s*([\d.]+%?)\s*\)")
LARGEST_SIZES = ("max-width", "max-height")
SIZES = ("width", "height", *LARGEST_SIZES)
CLOSE = 0.04  # two colours that differ less, in red, green and blue, look the same
LEAST_SIZE = 8  # pixels of a text within which letters that are smaller still are seen
MOST_VARIANTS = 16  # of a style that are kept
# Stands among the values of an element like a property; its value names the rules of which it is not known whether they
# apply.
DOUBT = "doubtful"

BLOCKS = frozenset((
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "dir",
    "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6",
    "header", "hgroup", "hr", "html", "legend", "li", "listing", "main", "menu", "nav", "ol", "optgroup",
    "option", "p", "plaintext", "pre", "search", "section", "summary", "table", "td", "th", "tr", "ul", "xmp",
))  # fmt: skip
# Not shown, unless their style displays them.
NOT_SHOWN = frozenset((
    "area", "base", "datalist", "head", "link", "meta", "noembed", "noframes", "param", "rp", "script", "style",
    "title", "defs", "desc", "metadata", "symbol", "clippath", "annotation", "annotation-xml",
))  # fmt: skip
NEVER_SHOWN = frozenset(("audio", "canvas", "meter", "noscript", "progress", "template", "video"))  # by any style
DRAWINGS = frozenset(("svg", "math"))  # they show only the text of DRAWN_TEXTS
DRAWN_TEXTS = frozenset(("text", "foreignobject", "mtext", "mi", "mn", "mo", "ms"))
PERHAPS_SHOWN = frozenset(("rt", "defs", "symbol"))  # beside a text, in small letters, or in another place
LISTS = frozenset(("select",))
CONTROLS = frozenset(("button", "textarea", "input"))
# A shadow tree may stand in these and in custom elements, whose names have a hyphen; NOT_HOSTS are none (DOM 4.8).
HOSTS = frozenset((
    "article", "aside", "blockquote", "body", "div", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "main",
    "nav", "p", "section", "span",
))  # fmt: skip
NOT_HOSTS = frozenset((
    "annotation-xml", "color-profile", "font-face", "font-face-src", "font-face-uri", "font-face-format",
    "font-face-name", "missing-glyph",
))  # fmt: skip
# The values of `display` that break the line.
BREAKING = frozenset((
    "block", "flex", "grid", "table", "table-row", "table-cell", "table-caption", "list-item", "flow-root",
    "-webkit-box",
))  # fmt: skip


class Style(Struct, frozen=True, dict=True):
    """What an element hands down to the elements and the text in it; `faint` text takes its room without being seen.

    An element in a box of which nothing is seen is `boxed_in`.  What is `in_drawing` stands in an SVG or a formula, of
    which only a few kinds of elements show their text.  What has `doubts` may be hidden in a way that is not computed,
    what is `animated` may be shown later, and what is `painted` may be seen without a colour of its own.  An element
    that `lays_out` its children, as a flex box does, gives each of them a box of its own.
    """

    visible: bool = True
    faint: bool = False
    boxed_in: bool = False
    in_drawing: bool = False
    doubts: Layer = SEEN
    animated: bool = False
    painted: bool = False
    size: float = 16
    indent: float = 0
    ink: Colour = BLACK
    fill: Colour | None = None  # of the letters, instead of `ink`
    background: Colour | None = WHITE  # None for a picture
    to_the_left: bool = False
    lays_out: bool = False
    custom: Values = field(default_factory=dict)

    def enter_unseen_box(self) -> Self:
        """The style of what is within a box of which nothing is seen, or perhaps nothing if it is animated."""
        return self.doubt(*ANIMATED) if self.animated else self._replace_field("boxed_in", True)

    def doubt(self, *doubts: str) -> Self:
        """The style of what may be hidden for these reasons too."""
        return self._replace_field("doubts", self.doubts.union(doubts))

    def set_in_drawing(self, *, in_drawing: bool) -> Self:
        """The style of a drawing, or of an element in it that shows its text all the same."""
        return self._replace_field("in_drawing", in_drawing)

    def lay_out_children(self, *, lays_out: bool) -> Self:
        """The style of the children of an element that lays them out, or that does not."""
        return self if self.lays_out == lays_out else self._replace_field("lays_out", lays_out)

    def _replace_field(self, name: str, value: Hashable) -> Self:
        """The style with another value of a field, which is one object for the same value."""
        if (style := self._variants.get((name, value))) is None:
            changes: dict[str, Any] = {name: value}
            style = replace(self, **changes)
            if len(self._variants) < MOST_VARIANTS:
                self._variants[name, value] = style
        return style

    @cached_property
    def _variants(self) -> dict[tuple[str, Hashable], Self]:
        return {}

    @cached_property
    def is_plain(self) -> bool:
        """Whether a text in any element within is seen, and in its place, unless what that element declares acts."""
        is_seen = self.visible and not (self.faint or self.boxed_in or self.in_drawing or self.to_the_left)
        is_dark = not is_light(self.fill or self.ink) and self.background is not None and is_light(self.background)
        return is_seen and is_dark and self.size >= LEAST_SIZE and self.indent > -FAR

    @cached_property
    def takes_room(self) -> bool:
        """Whether a text directly within it parts words even if it is not read."""
        return self.visible and self.size >= 1 and not self.boxed_in

    @cached_property
    def layer(self) -> Layer:
        """That of the text directly within it."""
        if self.boxed_in or self.in_drawing:
            return HIDDEN
        if not self.visible or self.faint or self.size < TINY or self.indent <= -FAR:
            return self.doubts | ANIMATED if self.animated else HIDDEN
        if self._is_of_no_colour():
            return self.doubts | PAINTED if self.painted else HIDDEN
        return self.doubts

    def _is_of_no_colour(self) -> bool:
        shade = self.fill or self.ink
        if shade[3] < FAINT or self.background is None:
            return shade[3] < FAINT
        return max(abs(a - b) for a, b in zip(shade[:3], self.background, strict=False)) <= CLOSE


def compute_style(parent: Style, values: Values) -> Style:
    """The style of an element in `parent`, by its declared values."""
    custom = {name: value for name, value in values.items() if name.startswith("--")}
    size = _compute_font_size(values.get("font-size"), parent.size) * (
        parse_length(values.get("zoom", "1"), whole=1) or 1
    )
    return Style(
        visible=values["visibility"] == "visible" if "visibility" in values else parent.visible,
        faint=parent.faint or (values.get("display") != "contents" and _is_faint(values)),
        boxed_in=parent.boxed_in,
        in_drawing=parent.in_drawing,
        doubts=parent.doubts | _find_doubts(tuple(values.items()), on_picture=parent.background is None),
        animated=parent.animated or values.get("animation", "none") != "none",
        painted=parent.painted or any(values.get(name, "none") not in ("none", "border-box") for name in PAINTING),
        size=size,
        indent=(parse_length(values["text-indent"].split()[0], size) or 0)
        if "text-indent" in values
        else parent.indent,
        ink=parse_colour(values.get("color", "")) or parent.ink,
        fill=parse_colour(values["-webkit-text-fill-color"]) if "-webkit-text-fill-color" in values else parent.fill,
        background=_find_background(values, parent.background),
        to_the_left=values["direction"] == "rtl" if "direction" in values else parent.to_the_left,
        custom={**parent.custom, **custom} if custom else parent.custom,
    )


@lru_cache(4096)
def _find_doubts(items: tuple[tuple[str, str], ...], *, on_picture: bool) -> Layer:
    """The declarations by which a text may be hidden; `on_picture`, it may have the colour of the picture."""
    clips = dict(items).get("overflow", "visible") != "visible"
    return frozenset(
        f"{name}: {value}"
        for name, value in items
        if name == DOUBT
        or (not name.startswith("--") and is_doubtful(name, value))
        or (name in SIZES and (clips or _is_tiny(value)))
        or (on_picture and name == "color")
    )


def _is_tiny(size: str) -> bool:
    found = parse_length(size)
    return found is not None and found < TINY


def _compute_font_size(value: str | None, parent: float) -> float:
    if value is None:
        return parent
    if value in ("smaller", "larger"):
        return parent * (0.8 if value == "smaller" else 1.2)
    size = FONT_SIZES.get(value, parse_length(value, parent, parent))
    return 16 if size is None else size


def _find_background(values: Values, parent: Colour | None) -> Colour | None:
    if values.get("background-image", "none") != "none":
        return None
    own = parse_colour(values.get("background-color", ""))
    return parent if own is None or own[3] < 0.5 else own


def _is_faint(values: Values) -> bool:
    opacity = parse_length(values.get("opacity", "1"), whole=1)
    if opacity is not None and opacity < FAINT:
        return True
    share = SHARE.search(values.get("filter", ""))
    return share is not None and (parse_length(share[1], whole=1) or 0) < FAINT


def find_display(tag: str, attributes: Attributes, values: Values) -> str:
    """The value of `display` that an element has, by its cascaded values or by its tag."""
    display = values.get("display", "none" if "hidden" in attributes else "revert")
    if display == "revert":
        return _find_display_without_styles(tag, attributes)
    if tag == "html" and display != "none":
        return "block"
    return "inline-block" if display == "inline" and tag in CONTROLS else display


def _find_display_without_styles(tag: str, attributes: Attributes) -> str:
    if tag in NOT_SHOWN or "popover" in attributes or (tag == "dialog" and "open" not in attributes):
        return "none"
    return "block" if tag in BLOCKS else "inline-block" if tag in CONTROLS else "inline"


def may_be_host(tag: str) -> bool:
    """Whether a shadow tree may stand in the markup of an element."""
    return tag in HOSTS or ("-" in tag and tag not in NOT_HOSTS)


def is_block(display: str) -> bool:
    """Whether it breaks the line that it stands in."""
    words = display.split()
    return "inline" not in words and not BREAKING.isdisjoint(words)


def is_out_of_flow(values: Values) -> bool:
    return values.get("position") in ("absolute", "fixed") or values.get("float", "none") != "none"


def is_low(values: Values, size: float) -> bool:
    """Whether it is clipped to a line, or to a part of one."""
    if values.get("-webkit-line-clamp", "none") != "none":
        return True
    if values.get("overflow", "visible") == "visible":
        return False
    heights = (parse_length(values.get(name, ""), size) for name in ("height", "max-height"))
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


def is_unseen(values: Values, display: str, size: float, *, is_laid_out: bool) -> bool:
    """Whether nothing within an element can be seen, in whatever style it is; a flex box may lay it out."""
    if not values or display in HIDING_DISPLAYS or display == "contents":
        return display in HIDING_DISPLAYS
    return _is_moved_or_clipped(tuple(values.items()), display, size, is_laid_out=is_laid_out)


@lru_cache(4096)
def _is_moved_or_clipped(items: tuple[tuple[str, str], ...], display: str, size: float, *, is_laid_out: bool) -> bool:
    values = dict(items)
    is_box = display != "inline" or is_out_of_flow(values)
    limits = () if "table" in display else LARGEST_SIZES if is_laid_out else SIZES
    return _is_off_screen(values, size, is_box=is_box) or _is_clipped(values, size, limits, is_box=is_box)


def _is_off_screen(values: Values, size: float, *, is_box: bool) -> bool:
    """Whether it is moved to where no reader looks; to the right, only from far more pixels on."""

    def shift_of(name: str) -> float:
        return parse_length(values.get(name, ""), size) or 0

    if values.get("position", "static") != "static":
        if min(shift_of("left"), shift_of("top"), shift_of("right")) <= -FAR:
            return True
        if max(shift_of("left"), shift_of("right"), shift_of("bottom")) >= 5 * FAR:
            return True
    if values.get("position") == "fixed" and (shift_of("top") >= HEIGHT or shift_of("left") >= WIDTH):
        return True
    if is_box and _is_shifted_out(values, size):
        return True
    return min(shift_of("margin-left"), shift_of("margin-top")) <= -FAR


def _is_shifted_out(values: Values, size: float) -> bool:
    """Whether transformations move it off the screen, from where its sides and margins put it."""
    across, down = measure_shift(values, size)
    sides = ("left", "top") if values.get("position", "static") != "static" else ("margin-left", "margin-top")
    left, top = (max(0, parse_length(values.get(side, ""), size) or 0) for side in sides)
    return min(across + left, down + top) <= -FAR


def measure_shift(values: Values, size: float = 16) -> tuple[float, float]:
    """How far it is moved to the right and down by transformations, in pixels."""
    across = down = 0.0
    for axes, numbers in TRANSLATION.findall(f"translate({values.get('translate', '')}) {values.get('transform', '')}"):
        x, *others = [parse_length(part.strip(), size) or 0 for part in _split_arguments(numbers)]
        across += x if axes != "y" else 0
        down += x if axes == "y" else others[0] if others and axes in ("", "3d") else 0
    return across, down


def _split_arguments(text: str) -> list[str]:
    return text.split(",") if "," in text or "(" in text else text.split() or [""]


def _is_clipped(values: Values, size: float, limits: Iterable[str], *, is_box: bool) -> bool:
    """Whether it is cut down to nothing, or to a dot; it is no larger than any of its `limits` says."""
    if HIDING_CLIP.search(values.get("clip-path", "")):
        return True
    corners = [parse_length(part, size) or 0 for part in NUMBERS.findall(values.get("clip", ""))]
    if values.get("position") in ("absolute", "fixed") and len(corners) == 4:
        top, right, bottom, left = corners
        if bottom - top < TINY or right - left < TINY:
            return True
    if not is_box:
        return False
    if values.get("content-visibility") == "hidden" or HIDING_TRANSFORM.search(values.get("transform", "")):
        return True
    if 0 in map(parse_length, values.get("scale", "none").split()[:2]):
        return True
    sides = (parse_length(values.get(name, ""), size) for name in limits)
    is_small = any(side is not None and side < TINY for side in sides)
    clips = not {"hidden", "clip"}.isdisjoint(values.get("overflow", "visible").split())
    return is_small and (clips or not CLIPPING.isdisjoint(values.get("contain", "").split()))


class Look(NamedTuple):
    """The style of an element, whether nothing in its box is seen, and whether the box is clipped to a line."""

    style: Style
    is_unseen: bool
    is_low: bool


MOST_LOOKS = 2_000  # that are kept


class Looks:
    """The looks of elements, by the styles that they inherit, their values and their display."""

    def __init__(self) -> None:
        # The styles and values are kept, so that their ids stay.
        self._known: dict[tuple[int, int, str], tuple[Look, Style, Values]] = {}

    def find_look(self, parent: Style, values: Values, display: str) -> Look:
        """The look of an element in `parent`."""
        if not values:
            return Look(parent, display in HIDING_DISPLAYS, is_low=False)
        key = id(parent), id(values), display
        if (found := self._known.get(key)) is None:
            if len(self._known) == MOST_LOOKS:
                self._known.clear()
            style = compute_style(parent, values)
            unseen = is_unseen(values, display, style.size, is_laid_out=parent.lays_out)
            look = Look(style, unseen, is_low(values, style.size))
            found = self._known[key] = look, parent, values
        return found[0]


def choose_layers_apart(characters: Counter[Layer]) -> list[list[Layer]]:
    """The layers that are read once more, by the numbers of their characters.

    Each large part of what may be seen is read apart, and all that is left without it.  What is hidden is read if it is
    much more than the rest.
    """
    large = [layer for layer, n in characters.most_common() if n > LEAST_APART and layer not in (SEEN, HIDDEN)]
    rest = [layer for layer in characters if layer not in (SEEN, HIDDEN, *large[:MOST_LAYERS])]
    parts = [[SEEN], *([layer] for layer in large[:MOST_LAYERS]), rest]
    parts = [part for part in parts if sum(characters[layer] for layer in part) > LEAST_APART]
    without = [[layer for layer in characters if layer not in (HIDDEN, *part)] for part in parts]
    again = parts + without if len(parts) > 2 else parts if len(parts) == 2 else []  # one of two is all but the other
    hidden = characters[HIDDEN]
    is_story = hidden >= LEAST_HIDDEN and hidden > MOST_HIDING * (characters.total() - hidden)
    return [*again, [HIDDEN]] if is_story else again
