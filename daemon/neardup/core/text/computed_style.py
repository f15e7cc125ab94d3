"""The style that an element has and hands down, and whether a text in it is seen."""

import re
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Self

from neardup.core.text.boxes import Values
from neardup.core.text.css import FAINT, FAR, TINY
from neardup.core.text.css_doubts import is_doubtful
from neardup.core.text.css_values import FONT_SIZES, PAINTING, Colour, colour, is_light, pixels
from neardup.core.text.layers import ANIMATED, HIDDEN, PAINTED, SEEN, Layer

BLACK: Colour = (0, 0, 0, 1)
WHITE: Colour = (1, 1, 1, 1)
SHARE = re.compile(r"opacity\(\s*([\d.]+%?)\s*\)")
SIZES = ("width", "height", "max-width", "max-height")
CLOSE = 0.04  # two colours that differ less, in red, green and blue, look the same
LEAST_SIZE = 8  # pixels of a text in which smaller letters are still seen
MOST_VARIANTS = 16  # of a style that are kept
DOUBT = "doubtful"  # names, among the values of an element, the rules of which it is not known whether they apply


@dataclass(frozen=True)
class Style:
    """What an element hands down to the elements and the text in it; `faint` text takes its room without being seen.

    An element in a box of which nothing is seen is `boxed_in`; `drawn` is what only shows the text of some elements in
    it.  What has `doubts` may be hidden in a way that is not computed, what is `animated` may be shown later, and what
    is `painted` may be seen without a colour of its own.
    """

    visible: bool = True
    faint: bool = False
    boxed_in: bool = False
    drawn: bool = False
    doubts: Layer = SEEN
    animated: bool = False
    painted: bool = False
    size: float = 16
    indent: float = 0
    ink: Colour = BLACK
    fill: Colour | None = None  # of the letters, instead of `ink`
    background: Colour | None = WHITE  # None for a picture
    to_the_left: bool = False
    custom: Values = field(default_factory=dict)

    def in_unseen_box(self) -> Self:
        """The style of what is within a box of which nothing is seen, or perhaps nothing if it is animated."""
        return self.doubted(*ANIMATED) if self.animated else self._changed("boxed_in", True)

    def doubted(self, *doubts: str) -> Self:
        """The style of what may be hidden for these reasons too."""
        return self._changed("doubts", self.doubts.union(doubts))

    def drawing(self, *, drawn: bool) -> Self:
        """The style of what only shows the text of some elements in it, or of such an element."""
        return self._changed("drawn", drawn)

    def _changed(self, name: str, value: Hashable) -> Self:
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
        """Whether a text in any element within is seen, unless what this element declares acts."""
        is_seen = self.visible and not (self.faint or self.boxed_in or self.drawn or self.to_the_left)
        is_dark = not is_light(self.fill or self.ink) and self.background is not None and is_light(self.background)
        return is_seen and is_dark and self.size >= LEAST_SIZE and self.indent > -FAR

    @cached_property
    def takes_room(self) -> bool:
        """Whether a text directly within it parts words even if it is not read."""
        return self.visible and self.size >= 1 and not self.boxed_in

    @cached_property
    def layer(self) -> Layer:
        """That of the text directly within it."""
        if self.boxed_in or self.drawn:
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


def computed(parent: Style, values: Values) -> Style:
    """The style of an element in `parent`, by its declared values."""
    custom = {name: value for name, value in values.items() if name.startswith("--")}
    size = _font_size(values.get("font-size"), parent.size) * (pixels(values.get("zoom", "1"), whole=1) or 1)
    return Style(
        visible=values["visibility"] == "visible" if "visibility" in values else parent.visible,
        faint=parent.faint or (values.get("display") != "contents" and _is_faint(values)),
        boxed_in=parent.boxed_in,
        drawn=parent.drawn,
        doubts=parent.doubts | _doubts(tuple(values.items()), on_picture=parent.background is None),
        animated=parent.animated or values.get("animation", "none") != "none",
        painted=parent.painted or any(values.get(one, "none") not in ("none", "border-box") for one in PAINTING),
        size=size,
        indent=(pixels(values["text-indent"].split()[0], size) or 0) if "text-indent" in values else parent.indent,
        ink=colour(values.get("color", "")) or parent.ink,
        fill=colour(values["-webkit-text-fill-color"]) if "-webkit-text-fill-color" in values else parent.fill,
        background=_background(values, parent.background),
        to_the_left=values["direction"] == "rtl" if "direction" in values else parent.to_the_left,
        custom={**parent.custom, **custom} if custom else parent.custom,
    )


@lru_cache(4096)
def _doubts(items: tuple[tuple[str, str], ...], *, on_picture: bool) -> Layer:
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
    found = pixels(size)
    return found is not None and found < TINY


def _font_size(value: str | None, parent: float) -> float:
    if value is None:
        return parent
    if value in ("smaller", "larger"):
        return parent * (0.8 if value == "smaller" else 1.2)
    size = FONT_SIZES.get(value, pixels(value, parent, parent))
    return 16 if size is None else size


def _background(values: Values, parent: Colour | None) -> Colour | None:
    if values.get("background-image", "none") != "none":
        return None
    own = colour(values.get("background-color", ""))
    return parent if own is None or own[3] < 0.5 else own


def _is_faint(values: Values) -> bool:
    if (pixels(values.get("opacity", "1"), whole=1) or 0) < FAINT:
        return True
    share = SHARE.search(values.get("filter", ""))
    return share is not None and (pixels(share[1], whole=1) or 0) < FAINT
