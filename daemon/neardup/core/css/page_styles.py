"""The style sheets of a page, each parsed once a process, and whether their rules act on its story.

A site has few style sheets, and most of their rules that may hide a text, or change where its words end, match nothing
of a story.  The engine of the parser finds what they match.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from itertools import chain

from msgspec import Struct
from selectolax.lexbor import LexborNode, SelectolaxError

from neardup.core.css.declarations import MARKERS, Declaration, Declarations, list_possible_values, parse_declarations
from neardup.core.css.sheets import MOST_RULES, Rule, applies, decode_data_url, parse_rules
from neardup.core.text.parsing import find_matching, parse

MOST_WORK = 100_000_000  # comparisons of an element and a selector; each takes about 10 ns
LONG_MARKERS = 100  # characters of the markers of lists and quotes; fewer are no part of a story
MOST_SHEETS, MOST_CHARACTERS = 256, 1_000_000  # that are kept
PARSING = 50  # comparisons take as long as to parse a selector
# Selectors that mean the same in a list of selectors as alone.
LISTABLE = re.compile(r"(?:[\w\s.#:>+~*-]|\[[\w\s\"'=~|^$*-]*\]|\([\w\s.#+-]*\))+")
# The tag, or the first class or id, that an element must have which a plain selector matches.
SUBJECT = re.compile(r"(?:[\w\s.#>+~*-]*[\s>+~])?(?:\*?([.#][\w-]++)|([\w-]++))[\w.#-]*+")
EMPTY_PAGE = parse("<p>")


class StyleSheet(Struct, frozen=True, eq=False):
    """The rules of a style sheet that matter here, and lists of selectors of those that act.

    `within` are those that act on the elements that they match, and `around` the selectors of those that act on what
    these contain, each with the tag, class or id that such an element has, empty where that is not plain to see, and
    with its declarations that are open; `custom` are all values of each custom property.
    `acting` counts those of `within`, and `costly` those of them that take, for each element, as many comparisons as a
    page has elements.
    The rules are the whole sheet's unless it has MOST_RULES.
    """

    rules: tuple[Rule, ...]
    is_whole: bool
    acting: int
    costly: int
    within: tuple[str, ...]
    around: tuple[tuple[str, str, tuple[Declaration, ...]], ...]
    custom: Mapping[str, AbstractSet[str]]
    markers: tuple[Declaration, ...]
    has_counter_styles: bool


# By text.  An entry may be dropped at any time.
STYLE_SHEETS: dict[str, StyleSheet] = {}


def find_style_sheets(root: LexborNode) -> list[StyleSheet]:
    """The style sheets of a page that apply to a screen, wherever they stand."""
    sheets = []
    for node in find_matching("style, link[href]", root):
        attributes = node.attributes
        is_css = (attributes.get("type") or "text/css").lower() == "text/css"
        text = node.text_lexbor() if node.tag == "style" else _read_linked_sheet(attributes)
        if is_css and text is not None and applies(attributes.get("media") or ""):
            sheets.append(_parse_style_sheet(text))
    return sheets


def _read_linked_sheet(attributes: Mapping[str, str | None]) -> str | None:
    """The style sheet in the address of a `link`; None if a browser takes it for none, or does not apply it."""
    kinds = (attributes.get("rel") or "").lower().split()
    if "stylesheet" not in kinds or "alternate" in kinds or "disabled" in attributes:
        return None
    linked = decode_data_url(attributes["href"])
    return linked.text if linked is not None and linked.kind == "text/css" else None


def _parse_style_sheet(text: str) -> StyleSheet:
    if (sheet := STYLE_SHEETS.get(text)) is None:
        sheet = _parse_sheet(text)
        if len(STYLE_SHEETS) == MOST_SHEETS or sum(map(len, STYLE_SHEETS)) + len(text) > MOST_CHARACTERS:
            STYLE_SHEETS.clear()
        if len(text) <= MOST_CHARACTERS:
            STYLE_SHEETS[text] = sheet
    return sheet


def _parse_sheet(text: str) -> StyleSheet:
    every_rule = parse_rules(text)
    known = tuple(rule for rule in every_rule if _is_selector(rule.selector))
    acting = [rule for rule in known if rule.declarations.acts and rule.pseudo != "slotted"]
    around = [
        (_find_subject(rule.selector), rule.selector, rule.declarations.open)
        for rule in acting
        if rule.declarations.acts_around and not rule.pseudo
    ]
    return StyleSheet(
        rules=known,
        is_whole=len(every_rule) < MOST_RULES,
        acting=len(acting),
        costly=sum(rule.is_costly for rule in acting),
        within=_join_selectors([rule.selector for rule in acting]),
        around=tuple(dict.fromkeys(around)),
        custom=_collect_custom_properties(rule.declarations for rule in known),
        markers=tuple(item for rule in known for item in rule.declarations.items if item.name in MARKERS),
        has_counter_styles="@counter-style" in text,
    )


def _is_selector(selector: str) -> bool:
    """Whether the parser's engine knows a selector; where it does not, the rule cannot be followed."""
    if EMPTY_PAGE is None:
        return False
    try:
        find_matching(selector, EMPTY_PAGE)
    except (SelectolaxError, UnicodeEncodeError):  # an escape may stand for a lone surrogate
        return False
    return True


def _join_selectors(selectors: Iterable[str]) -> tuple[str, ...]:
    """As few lists of selectors as match the same."""
    listable: list[str] = []
    others: list[str] = []
    for selector in dict.fromkeys(selectors):
        (listable if LISTABLE.fullmatch(selector) else others).append(selector)
    return (", ".join(listable), *others) if listable else tuple(others)


def _collect_custom_properties(blocks: Iterable[Declarations]) -> dict[str, set[str]]:
    values: dict[str, set[str]] = {}
    for block in blocks:
        for declaration in block.items:
            if declaration.name.startswith("--"):
                values.setdefault(declaration.name, set()).add(declaration.value)
    return values


def _find_subject(selector: str) -> str:
    match = SUBJECT.fullmatch(selector)
    return (match[1] or match[2]).lower() if match else ""


def act_nowhere(sheets: Collection[StyleSheet]) -> bool:
    """Whether style sheets act on no story, whatever is in it."""
    if not sheets:
        return True
    return not (any(sheet.acting for sheet in sheets) or _show_markers(sheets) or _are_too_many(sheets, 0, ""))


def act_on(
    sheets: Collection[StyleSheet],
    root: LexborNode,
    bodies: Collection[LexborNode],
    around: Mapping[int, LexborNode],
    html: str | bytes,
) -> bool:
    """Whether style sheets act on a story, or take too long to say.

    The story is what stands in the elements `bodies` of the page `root`, whose markup is `html`; `around` are the
    elements that contain them, by their `mem_id`.
    """
    if not sheets:
        return False
    if _show_markers(sheets) or _are_too_many(sheets, len(bodies), html):
        return True
    within = chain.from_iterable(sheet.within for sheet in sheets)
    if any(find_matching(selectors, body) for selectors in within for body in bodies):
        return True
    names = _collect_names(around.values())
    outside = [(selector, unknown) for sheet in sheets for name, selector, unknown in sheet.around if name in names]
    return any(
        any(node.mem_id in around for node in find_matching(selector, root))
        and _may_act(unknown, sheets, around.values())
        for selector, unknown in outside
    )


def _may_act(unknown: Iterable[Declaration], sheets: Collection[StyleSheet], around: Collection[LexborNode]) -> bool:
    """Whether one of the open declarations acts for some values of custom properties; True where none is open."""
    own = _collect_custom_properties(parse_declarations(node.attributes.get("style") or "") for node in around)

    def values_of(name: str) -> Iterable[str]:
        return chain(own.get(name, ()), *(sheet.custom.get(name, ()) for sheet in sheets))

    for declaration in unknown:
        values = list_possible_values(declaration.value, values_of)
        if values is None or any(parse_declarations(f"{declaration.name}: {value}").acts_around for value in values):
            return True
    return not unknown


def _collect_names(elements: Iterable[LexborNode]) -> set[str]:
    """What the subjects of selectors may be that match one of the elements."""
    names: set[str] = set()
    for element in elements:
        attributes = element.attributes
        names.update(("", element.tag or "", f"#{attributes.get('id') or ''}".lower()))
        names.update(f".{name}" for name in (attributes.get("class") or "").lower().split())
    return names


def _show_markers(sheets: Collection[StyleSheet]) -> bool:
    """Whether the markers of lists and quotes may be a part of the story."""
    markers = sum(len(marker.value) for sheet in sheets for marker in sheet.markers)
    return markers > LONG_MARKERS or any(sheet.has_counter_styles for sheet in sheets)


def _are_too_many(sheets: Collection[StyleSheet], bodies: int, html: str | bytes) -> bool:
    acting, costly = (sum(counts) for counts in zip(*((sheet.acting, sheet.costly) for sheet in sheets), strict=True))
    is_whole = all(sheet.is_whole for sheet in sheets) and sum(len(sheet.rules) for sheet in sheets) < MOST_RULES
    tags = _count_tags(html) if costly else len(html) // len("<b>")
    return not is_whole or acting * (tags + PARSING * bodies) + costly * tags * tags > MOST_WORK


def _count_tags(html: str | bytes) -> int:
    """How many elements markup has at most, apart from a few that it need not name."""
    return html.count("<") if isinstance(html, str) else html.count(b"<")
