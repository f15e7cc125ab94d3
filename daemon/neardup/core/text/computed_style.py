"""The style that an element has and hands down, and whether a text in it is seen."""

import re
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from typing import Self

from neardup.core.text.boxes import Values
from neardup.core.text.css import FAINT, FAR, TINY
from neardup.core.text.css_doubts import is_doubtful
from neardup.core.text.css_values import FONT_SIZES, PAINTING, Colour, colour, pixels

BLACK: Colour = (0, 0, 0, 1)
WHITE: Colour = (1, 1, 1, 1)
SHARE = re.compile(r"opacity\(\s*([\d.]+%?)\s*\)")
CLOSE = 0.04  # two colours that differ less, in red, green and blue, look the same
DOUBT = "doubtful"  # stands among the values of an element if it is not known which rules apply to it


class Sight(Enum):
    """Whether a browser shows a text."""

    SEEN, DOUBTFUL, HIDDEN = range(3)


@dataclass(frozen=True, slots=True)
class Style:
    """What an element hands down to the elements and the text in it; `faint` text takes its room without being seen.

    An element in a box of which nothing is seen is `boxed_in`.  What is `doubtful` may be hidden in a way that is not
    computed, what is `animated` may be shown later, and what is `painted` may be seen without a colour of its own.
    """

    visible: bool = True
    faint: bool = False
    boxed_in: bool = False
    doubtful: bool = False
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
        return replace(self, doubtful=True) if self.animated else replace(self, boxed_in=True)

    @property
    def sight(self) -> Sight:
        """Whether text directly within it is seen."""
        if self.boxed_in:
            return Sight.HIDDEN
        if not self.visible or self.faint or self.size < TINY or self.indent <= -FAR:
            return Sight.DOUBTFUL if self.animated else Sight.HIDDEN
        if self._is_of_no_colour():
            return Sight.DOUBTFUL if self.painted else Sight.HIDDEN
        return Sight.DOUBTFUL if self.doubtful else Sight.SEEN

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
        doubtful=parent.doubtful
        or DOUBT in values
        or (parent.background is None and "color" in values)  # it may have the colour of the picture
        or _is_doubtful(tuple(values.items())),
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
def _is_doubtful(items: tuple[tuple[str, str], ...]) -> bool:
    values = dict(items)
    if any(is_doubtful(name, value) for name, value in items):
        return True
    clips = values.get("overflow", "visible") != "visible"
    return clips and not {"width", "height", "max-width", "max-height"}.isdisjoint(values)


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
