"""The cascade: of all declarations for a property of an element, which one holds.

As in CSS Cascading and Inheritance Level 5, https://www.w3.org/TR/css-cascade-5/, section 6: declarations are sorted by
importance, a style attribute before style sheets, cascade layer, specificity and order, and the last is the cascaded
value.  What the browser itself declares and what attributes such as `bgcolor` hint at rank below every layer.
`var()` is replaced by the custom property that the element declares or inherits.
"""

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from operator import itemgetter

from msgspec import Struct, field
from selectolax.lexbor import LexborNode

from neardup.core.css.computed_style import DOUBT, Attributes, Looks, Values
from neardup.core.css.declarations import Declaration, parse_declarations, substitute_properties
from neardup.core.css.page_styles import MOST_WORK, StyleSheet
from neardup.core.css.sheets import MOST_RULES, Rule
from neardup.core.css.values import GLOBAL, expand
from neardup.core.text.parsing import find_matching

# Important, of a style attribute, rank of the cascade layer, specificity, order.
Precedence = tuple[bool, bool, int, tuple[int, int, int], int]
Ranked = tuple[Precedence, Declaration]

INITIAL = {
    "display": "inline", "visibility": "visible", "font-size": "medium", "color": "black", "text-indent": "0",
    "-webkit-text-fill-color": "currentcolor", "direction": "ltr",
}  # fmt: skip
NONE: Values = {}
MOST_MATCHES = 200_000  # of rules and elements; each takes 300 bytes
CONTROL = parse_declarations("font-size: 13px; color: black; background: #efefef; text-indent: 0").items
OVERRIDE = parse_declarations("unicode-bidi: isolate-override").items
ISOLATE = parse_declarations("unicode-bidi: isolate").items
UNINDENTED = parse_declarations("text-indent: 0").items
BOX = parse_declarations("overflow: hidden; display: inline-block").items
UNSEEN = parse_declarations("visibility: hidden").items
BROWSER_STYLES = {
    "button": CONTROL, "textarea": CONTROL, "bdo": OVERRIDE, "bdi": ISOLATE, "output": ISOLATE, "mphantom": UNSEEN,
    "svg": BOX, "marquee": BOX, "table": UNINDENTED,
}  # fmt: skip
SIZED = frozenset(("svg", "marquee", "iframe"))  # by attributes
# Attributes that are styles.
HINTS = {"bgcolor": "background-color", "color": "color", "text": "color", "dir": "direction"}
OF_SVG = ("display", "visibility", "opacity", "font-size", "fill", "transform", "clip-path", "mask", "filter")
SVG = frozenset(("svg", "g", "text", "tspan", "textpath", "foreignobject", "switch", "a"))
STYLING = frozenset(("style", *HINTS, *OF_SVG, "x", "y", "width", "height", "hidden", "popover", "open"))
MOST_KNOWN, MOST_VALUES, LONGEST_STYLE = 16, 2_000, 1_000  # that are kept, and characters of the attributes
BARE_COLOUR = re.compile(r"[0-9a-f]{3}(?:[0-9a-f]{3})?", re.IGNORECASE)


class Known(Struct, frozen=True):
    """What is known of the elements of all pages with the same style sheets: their values and their looks."""

    values: dict[Hashable, tuple[Values, Values]] = field(default_factory=dict)
    looks: Looks = field(default_factory=Looks)


# By the style sheets of a page.  An entry may be dropped at any time.
KNOWN: dict[tuple[StyleSheet, ...], Known] = {}


class Rules:
    """The rules of some style sheets, and what is known of the elements that they match.

    They are the first MOST_RULES, and only `is_whole` if there are no others.
    """

    def __init__(self, sheets: Sequence[StyleSheet]) -> None:
        self.rules = [rule for sheet in sheets for rule in sheet.rules][:MOST_RULES]
        self.markers = [marker for sheet in sheets for marker in sheet.markers]
        self.is_whole = len(self.rules) < MOST_RULES and all(sheet.is_whole for sheet in sheets)
        self.known = _get_known(tuple(sheets)) if self.is_whole else Known()

    @property
    def looks(self) -> Looks:
        return self.known.looks

    def find_cascaded_values(
        self, tag: str, matched: tuple[int, ...], attributes: Attributes, custom: Values, pseudo: str = ""
    ) -> Values:
        """The cascaded values of an element, by the rules that match it: one object for elements with the same values.

        `matched` are the places of these rules, and `custom` the custom properties that the element inherits.
        """
        if not (attributes or matched or tag in BROWSER_STYLES):
            return NONE
        style_key = make_style_key(tag, matched, attributes)
        key = style_key, pseudo, id(custom), None if self.is_whole else attributes.get("class")
        found = self.known.values.get(key) if style_key else None
        if found is None:
            if len(self.known.values) >= MOST_VALUES:
                self.known.values.clear()
            found = self._cascade(tag, matched, attributes, custom, pseudo), custom
            if style_key:
                self.known.values[key] = found
        return found[0]

    def _cascade(
        self, tag: str, matched: tuple[int, ...], attributes: Attributes, custom: Values, pseudo: str
    ) -> Values:
        every = [(order, self.rules[order]) for order in matched]
        chosen = [(order, rule) for order, rule in every if rule.pseudo == pseudo]
        ranked: list[Ranked] = [
            ((item.important, False, -rule.layer if item.important else rule.layer, rule.specificity, order), item)
            for order, rule in chosen
            if not rule.is_doubtful
            for item in rule.declarations.items
        ]
        if not pseudo:
            ranked = [*_list_browser_style(tag, attributes), *_list_hints(tag, attributes), *ranked]
            ranked += _list_inline(attributes)
        values = _take_last([item for _, item in sorted(ranked, key=itemgetter(0))], custom) if ranked else {}
        unsure = [rule.selector for _, rule in chosen if rule.is_doubtful and rule.declarations.acts]
        if not pseudo and _is_covered(rule for _, rule in every):
            unsure.append("::before")
        if not self.is_whole and "class" in attributes:
            unsure.append(f".{attributes['class']}")
        if unsure:
            values = {**values, DOUBT: ", ".join(unsure)}
        if values and tag in ("html", "body"):
            values = {**values, "overflow": "visible"}  # one can scroll to what overflows the whole page
            if tag == "html" and values.get("display") == "contents":
                values["display"] = "block"
        return values


class MatchedRules(Rules):
    """The rules of a page's style sheets, by the elements that they match.

    `acting` are the elements on which they act, by their `mem_id`, and `moved` those of them that they may move.
    `pseudos` are the pseudo-elements of an element, by which a text may stand before or after its content.
    """

    def __init__(self, root: LexborNode, sheets: Sequence[StyleSheet]) -> None:
        super().__init__(sheets)
        self._matched: dict[int, list[int]] = {}
        self.slotted: list[str] = []  # selectors of what may be hidden in slots
        self._elements: dict[tuple[int, str], tuple[Attributes, Values]] = {}
        self.pseudos: dict[int, set[str]] = {}
        self.acting: dict[int, LexborNode] = {}
        self.moved: dict[int, LexborNode] = {}
        self._match(root)
        if not self.is_whole:
            self.known = Known()

    def _match(self, root: LexborNode) -> None:
        elements = len(find_matching("*", root))
        room, work = MOST_MATCHES, MOST_WORK
        for order, rule in enumerate(self.rules):
            work -= elements * (elements if rule.is_costly else 1)
            if work < 0:
                self.is_whole = False
                break
            if rule.pseudo == "slotted":
                if rule.declarations.acts:
                    self.slotted.append(rule.selector)
                continue
            nodes = find_matching(rule.selector, root)
            room -= len(nodes)
            if room < 0:
                self.is_whole = False
                break
            by_id = {node.mem_id: node for node in nodes}
            if rule.declarations.acts:
                self.acting.update(by_id)
            if rule.declarations.moves:
                self.moved.update(by_id)
            for element in by_id:
                self._matched.setdefault(element, []).append(order)
                if rule.pseudo:
                    self.pseudos.setdefault(element, set()).add(rule.pseudo)

    def read_element(self, node: LexborNode, custom: Values, pseudo: str = "") -> tuple[Attributes, Values]:
        """The attributes of an element, and its cascaded values; with `pseudo`, those of its `before` or `after`.

        `custom` are the custom properties that it inherits.
        """
        if pseudo and pseudo not in self.pseudos.get(node.mem_id, ()):
            return {}, {}
        key = node.mem_id, pseudo
        if (found := self._elements.get(key)) is None:
            attributes = node.attributes if not pseudo else self.read_element(node, custom)[0]
            tag, matched = node.tag or "", self._list_matched(node)
            found = self._elements[key] = (
                attributes,
                self.find_cascaded_values(tag, matched, attributes, custom, pseudo),
            )
        return found

    def make_style_key(self, node: LexborNode, attributes: Attributes) -> Hashable | None:
        """As the function of this name, of an element."""
        return make_style_key(node.tag or "", self._list_matched(node), attributes)

    def _list_matched(self, node: LexborNode) -> tuple[int, ...]:
        return tuple(self._matched.get(node.mem_id, ()))


def make_style_key(tag: str, matched: tuple[int, ...], attributes: Attributes) -> Hashable | None:
    """What elements have in common that declare the same values and are displayed alike, if they inherit the same.

    None for an element that has too long a style to be remembered.
    """
    if STYLING.isdisjoint(attributes):
        return tag, matched
    styled = [(name, value) for name, value in attributes.items() if name in STYLING]
    if sum(len(value or "") for _, value in styled) > LONGEST_STYLE:
        return None
    return tag, matched, *styled


def _is_covered(rules: Iterable[Rule]) -> bool:
    """Whether generated content may lie over an element that rules match."""
    generated = [rule for rule in rules if rule.pseudo]
    names = {name for rule in generated for item in rule.declarations.items for name, _ in item.longhands}
    return {"position", "background-color"} <= names


def _get_known(sheets: tuple[StyleSheet, ...]) -> Known:
    if (known := KNOWN.get(sheets)) is None:
        if len(KNOWN) == MOST_KNOWN:
            KNOWN.clear()
        known = KNOWN[sheets] = Known()
    return known


def _list_browser_style(tag: str, attributes: Attributes) -> Iterator[Ranked]:
    for declaration in BROWSER_STYLES.get(tag, ISOLATE if "dir" in attributes else ()):
        yield (False, False, -2, (0, 0, 0), 0), declaration


def _list_hints(tag: str, attributes: Attributes) -> Iterator[Ranked]:
    hints: Iterable[tuple[str, str]] = HINTS.items()
    if tag in SVG:
        hints = [(name, name) for name in OF_SVG] + [("x", "left"), ("y", "top")]
    if tag in SIZED:
        hints = [*hints, ("width", "width"), ("height", "height")]
    for name, longhand in hints:
        if value := attributes.get(name):
            for pair in expand(longhand, read_hint(value) if longhand.endswith(("color", "fill")) else value):
                yield (False, False, -1, (0, 0, 0), 0), Declaration(longhand, value, important=False, longhands=(pair,))


def read_hint(value: str) -> str:
    """The value of an attribute that is a style -> that of the style; colours need no sign."""
    return f"#{value}" if BARE_COLOUR.fullmatch(value) else value


def _list_inline(attributes: Attributes) -> Iterator[Ranked]:
    for declaration in parse_declarations(attributes.get("style") or "").items if "style" in attributes else ():
        yield (declaration.important, True, 0, (0, 0, 0), 0), declaration


def _take_last(ordered: list[Declaration], custom: Values) -> Values:
    """The value of each property by the last of its declarations, which are in the order of their precedence."""
    own = {item.name: item.value for item in ordered if item.name.startswith("--") and item.value != "revert-layer"}
    own = {name: value for name, value in own.items() if value.lower() not in GLOBAL - {"initial"}}  # it inherits them
    custom = {**custom, **own} if own else custom
    values = dict(own)
    for declaration in ordered:
        if declaration.value == "revert-layer":
            continue
        if declaration.longhands:
            values.update(declaration.longhands)
        elif not declaration.name.startswith("--"):
            value = substitute_properties(declaration.value, custom)
            longhands = expand(declaration.name, value) if value is not None else ()
            values.update(longhands or ((declaration.name, "unset"),))
    return _replace_keywords(values)


def _replace_keywords(values: Values) -> Values:
    """The values, with the keywords that every property knows replaced by what they stand for."""
    plain = {
        name: text
        for name, text in values.items()
        if text not in GLOBAL or name.startswith("--") or (name, text) == ("display", "revert")
    }
    for name, text in values.items():
        if name in INITIAL and (text == "initial" or (name == "display" and text == "unset")):
            plain[name] = INITIAL[name]
    return plain
