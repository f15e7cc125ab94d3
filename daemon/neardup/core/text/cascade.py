"""The cascade: which declarations hold for each element of a page, and the style that an element inherits and has."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter

from selectolax.lexbor import LexborNode, SelectolaxError

from neardup.core.text.boxes import Values
from neardup.core.text.css import (
    FAINT,
    FAR,
    MOST_RULES,
    TINY,
    Declaration,
    Rule,
    declarations,
    rules,
    substituted,
)
from neardup.core.text.css_media import applies
from neardup.core.text.css_values import FONT_SIZES, GLOBAL, Colour, colour, expanded, pixels

Key = tuple[bool, bool, tuple[int, int, int], int]  # important, of a style attribute, specificity, order
Weighed = tuple[Key, Declaration]
Attributes = Mapping[str, str | None]

BLACK: Colour = (0, 0, 0, 1)
WHITE: Colour = (1, 1, 1, 1)
INITIAL = {
    "display": "inline", "visibility": "visible", "font-size": "medium", "color": "black", "text-indent": "0",
    "-webkit-text-fill-color": "currentcolor", "direction": "ltr",
}  # fmt: skip
SHARE = re.compile(r"opacity\(\s*([\d.]+%?)\s*\)")
MOST_MATCHES = 200_000  # of rules and elements; each takes 300 bytes
MOST_WORK = 100_000_000  # comparisons of an element and a selector; each takes about 10 ns
COSTLY = re.compile(r"~|:nth|:has|:last|:only")  # selectors that look at all siblings of an element
CLOSE = 0.04  # two colours that differ less, in red, green and blue, look the same
CONTROL = declarations("font-size: 13px; color: black; background: #efefef; text-indent: 0").items
OVERRIDE = declarations("unicode-bidi: isolate-override").items
BROWSER_STYLES = {"button": CONTROL, "textarea": CONTROL, "bdo": OVERRIDE}
HINTS = {"bgcolor": "background-color", "color": "color", "dir": "direction"}  # attributes of old that are styles


@dataclass(frozen=True, slots=True)
class Style:
    """What an element hands down to the elements and the text in it; `faint` text takes its room without being seen."""

    visible: bool = True
    faint: bool = False
    size: float = 16
    indent: float = 0
    ink: Colour = BLACK
    fill: Colour | None = None  # of the letters, instead of `ink`
    background: Colour | None = WHITE  # None for a picture
    to_the_left: bool = False
    custom: Values = field(default_factory=dict)

    @property
    def readable(self) -> bool:
        """Whether text directly within it can be read."""
        shade = self.fill or self.ink
        if self.faint or shade[3] < FAINT or self.size < TINY or self.indent <= -FAR:
            return False
        return (
            self.background is None or max(abs(a - b) for a, b in zip(shade[:3], self.background, strict=False)) > CLOSE
        )


class Sheets:
    """The rules of a page's style sheets, by the elements that they match."""

    def __init__(self, root: LexborNode) -> None:
        self._matched: dict[int, list[tuple[Key, Rule]]] = {}
        elements = sum(1 for _ in root.traverse())
        room, work = MOST_MATCHES, MOST_WORK
        for order, rule in enumerate(_rules_of(root.css("style"))):
            work -= elements * (elements if COSTLY.search(rule.selector) else 1)
            if work < 0:
                break
            try:
                nodes = root.css(rule.selector)
            except SelectolaxError:
                continue
            room -= len(nodes)
            if room < 0:
                break
            for node in {node.mem_id: node for node in nodes}.values():
                self._matched.setdefault(node.mem_id, []).append(((False, False, rule.specificity, order), rule))

    def values(self, node: LexborNode, attributes: Attributes, custom: Values, pseudo: str = "") -> Values:
        """The declared values of an element, or of its `before` or `after`: the last of the strongest."""
        weighed = [
            ((one.important, *key[1:]), one)
            for key, rule in self._matched.get(node.mem_id, ())
            if rule.pseudo == pseudo
            for one in rule.declarations.items
        ]
        if not pseudo:
            weighed = [*_browser_style(node), *_hints(attributes), *weighed, *_inline(attributes)]
        values = _cascaded([one for _, one in sorted(weighed, key=itemgetter(0))], custom) if weighed else {}
        # One can scroll to what overflows the whole page.
        return {**values, "overflow": "visible"} if values and node.tag in ("html", "body") else values


def acting(sheets: Iterable[LexborNode]) -> bool:
    """Whether a style sheet among these elements may hide a text, or change where its words end."""
    return any(rule.declarations.acts for rule in _rules_of(sheets))


def _rules_of(sheets: Iterable[LexborNode]) -> list[Rule]:
    found: list[Rule] = []
    for sheet in sheets:
        attributes = sheet.attributes
        if (attributes.get("type") or "text/css").lower() == "text/css" and applies(attributes.get("media") or ""):
            found += rules(sheet.text_lexbor())
    return found[:MOST_RULES]


def _browser_style(node: LexborNode) -> Iterator[Weighed]:
    for one in BROWSER_STYLES.get(node.tag or "", ()):
        yield (False, False, (0, 0, 0), -2), one


def _hints(attributes: Attributes) -> Iterator[Weighed]:
    for name, longhand in HINTS.items():
        if value := attributes.get(name):
            for pair in expanded(longhand, value):
                yield (False, False, (0, 0, 0), -1), Declaration(longhand, value, important=False, longhands=(pair,))


def _inline(attributes: Attributes) -> Iterator[Weighed]:
    for one in declarations(attributes.get("style") or "").items if "style" in attributes else ():
        yield (one.important, True, (0, 0, 0), 0), one


def _cascaded(ordered: list[Declaration], custom: Values) -> Values:
    own = {one.name: one.value for one in ordered if one.name.startswith("--")}
    custom = {**custom, **own} if own else custom
    values = dict(own)
    for one in ordered:
        if one.longhands:
            values.update(one.longhands)
        elif not one.name.startswith("--"):
            value = substituted(one.value, custom)
            longhands = expanded(one.name, value) if value is not None else ()
            values.update(longhands or ((one.name, "unset"),))
    return _without_keywords(values)


def computed(parent: Style, values: Values) -> Style:
    """The style of an element in `parent`, by its declared values."""
    custom = {name: value for name, value in values.items() if name.startswith("--")}
    size = _font_size(values.get("font-size"), parent.size) * (pixels(values.get("zoom", "1"), whole=1) or 1)
    return Style(
        visible=values["visibility"] == "visible" if "visibility" in values else parent.visible,
        faint=parent.faint or (values.get("display") != "contents" and _is_faint(values)),
        size=size,
        indent=(pixels(values["text-indent"].split()[0], size) or 0) if "text-indent" in values else parent.indent,
        ink=colour(values.get("color", "")) or parent.ink,
        fill=colour(values["-webkit-text-fill-color"]) if "-webkit-text-fill-color" in values else parent.fill,
        background=_background(values, parent.background),
        to_the_left=values["direction"] == "rtl" if "direction" in values else parent.to_the_left,
        custom={**parent.custom, **custom} if custom else parent.custom,
    )


def _without_keywords(values: Values) -> Values:
    """The values, with the keywords that every property knows replaced by what they stand for."""
    plain = {name: text for name, text in values.items() if text not in GLOBAL or (name, text) == ("display", "revert")}
    for name, text in values.items():
        if name in INITIAL and (text == "initial" or (name == "display" and text == "unset")):
            plain[name] = INITIAL[name]
    return plain


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
