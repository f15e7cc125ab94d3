"""Writes the text of a parsed page as a browser shows it, element by element, by the styles of the page.

Pages whose markup hides nothing do not need this; `core.text.html` decides.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from neardup.core.text.boxes import covers, is_out_of_flow, is_unseen
from neardup.core.text.cascade import Attributes, Sheets
from neardup.core.text.computed_style import Style, computed
from neardup.core.text.css import declarations
from neardup.core.text.display import display_of, is_block
from neardup.core.text.edges import Low, Override, edges
from neardup.core.text.elements import BLOCKS, DRAWINGS, DRAWN_TEXTS, NEVER_SHOWN, NOT_SHOWN, PERHAPS_SHOWN
from neardup.core.text.layers import HIDDEN, Layer, apart
from neardup.core.text.layout_order import in_order_shown
from neardup.core.text.looks import Looks
from neardup.core.text.own_texts import (
    is_aside,
    marks,
    page_within,
    signs_of_counters,
    text_of_content,
    text_of_field,
    texts_perhaps_shown,
)
from neardup.core.text.page_styles import style_sheets
from neardup.core.text.parsing import parsed
from neardup.core.text.pieces import Piece, Text, written
from neardup.core.text.shadow_trees import Host, markup_of, shadow_among

SPACES = re.compile(r"[ \t\n\r\f]+")
FIRST_LETTER = re.compile(r"^(\s*)[^\w\s]*\w[^\w\s]*")  # with the marks and signs beside it
DEEPEST = 8  # pages within pages
PECULIAR = ("details", "iframe", "slot")  # do not always show their own text


class _Page(NamedTuple):
    """The page's style sheets, the `mem_id` of its story's elements, and how many pages it stands within.

    `left_out` are the pages that stand within too many, `characters` counts those of each layer.  `host` is the element
    whose shadow tree the page is.
    """

    sheets: Sheets
    bodies: frozenset[int]
    depth: int
    left_out: list[str]
    characters: Counter[Layer]
    looks: Looks
    host: "Host[_Page] | None" = None


class Rendered(NamedTuple):
    """The text of a page, whether no page that stands too deep was left out, and the share that is hidden."""

    text: str
    is_whole: bool
    hidden: float


Part = tuple[LexborNode, Style, bool, _Page] | Piece | Low


def rendered(root: LexborNode, bodies: frozenset[int]) -> Rendered:
    """The text of a page within the elements whose `mem_id` is in `bodies`.

    White space does not count as hidden, nor does what no browser shows, such as scripts.  Doubtful texts are read
    among the others, and if they are many once more, apart from these.  A page that hides much more than it shows may
    show it by a script, or in a way that is not known here, so the hidden texts follow those that are shown.
    """
    page = _Page(Sheets(root, style_sheets(root)), bodies, 0, [], Counter(), Looks())
    counters = (signs_of_counters(sheet.text_lexbor()) for sheet in root.css("style"))
    signs = " ".join((*counters, marks(page.sheets.marking, {}))).strip()
    pieces, characters = [_shown(signs, Style().doubted("signs"), page), *_pieces(root, page)], page.characters
    texts = [written(pieces), *(written(pieces, layers) for layers in apart(characters))]
    return Rendered("\n".join(texts), not page.left_out, characters[HIDDEN] / max(1, characters.total()))


def _pieces(root: LexborNode, page: _Page) -> list[Piece]:
    out: list[Piece] = []
    has_text: list[bool] = []  # for each low box, whether a text was read in it
    pending: list[Part] = [(root, Style(), False, page)]
    while pending:
        part = pending.pop()
        if part is Low.START:
            has_text.append(False)
        elif part is Low.END:
            has_text.pop()
        elif isinstance(part, tuple) and not isinstance(part, Text):
            node, style, is_inside, inside = part
            if has_text and node.is_text_node and (node.text_content or "").strip():
                style = style.doubted("clipped") if any(has_text) else style
                has_text = [True] * len(has_text)
            pending += reversed(list(_parts(node, style, is_inside, inside)))
        else:
            out.append(part)
    return out


def _parts(node: LexborNode, parent: Style, is_inside: bool, page: _Page) -> Iterator[Part]:
    """What a node shows, in order: texts, breaks, and the nodes in it."""
    if node.is_text_node:
        if is_inside:
            yield _shown(node.text_content or "", parent, page)
    elif not node.is_element_node:
        return
    elif is_inside:
        yield from _element(node, parent, page)
    elif node.mem_id in page.bodies:
        yield from ("\n", *_element(node, parent, page), "\n")
    else:
        tag = node.tag or ""
        attributes, values = page.sheets.of(node, parent.custom)
        style, is_box_unseen, _ = page.looks.of(parent, values, display_of(tag, attributes, values))
        if is_box_unseen or is_aside(node, attributes, values):
            style = style.in_unseen_box()
        if tag not in NEVER_SHOWN:
            yield from ((child, style, False, page) for child in node.iter(include_text=True))


def _element(node: LexborNode, parent: Style, page: _Page) -> Iterator[Part]:
    """What an element of the story shows."""
    tag = node.tag or ""
    attributes, values = page.sheets.of(node, parent.custom)
    display = display_of(tag, attributes, values)
    style, is_box_unseen, is_box_low = page.looks.of(parent, values, display)
    if tag == "wbr" or tag in NEVER_SHOWN or (tag in NOT_SHOWN and display == "none" and tag not in PERHAPS_SHOWN):
        if tag == "style":
            yield from _asides(node, attributes, style, page)
        return
    if tag == "br":
        yield _line_break(style) if display not in ("none", "contents") else ""
        return
    is_out = is_out_of_flow(values)
    if is_box_unseen and is_block(display) and not is_out:
        yield _line_break(style)
    start: Sequence[Piece]
    end: Sequence[Piece]
    start, end = ((), ()) if is_box_unseen and is_out else edges(display)
    if is_box_unseen or is_aside(node, attributes, values):
        style = style.in_unseen_box()
    if is_block(display) and start:
        start = end = (_line_break(style),) if tag in BLOCKS or not is_out else ()
    if tag in DRAWINGS or tag in DRAWN_TEXTS:
        style = replace(style, drawn=tag in DRAWINGS)
    parts = _content(node, style, display, page)
    yield from chain(start, [Low.START] if is_box_low else (), parts, [Low.END] if is_box_low else (), end)


def _content(node: LexborNode, style: Style, display: str, page: _Page) -> Iterator[Part]:
    """What stands within the box of an element."""
    attributes, values = page.sheets.of(node, style.custom)
    parts: Iterator[Part] = _children(node, style, display, page)
    if attributes:
        parts = chain(_asides(node, attributes, style, page), parts)
    if page.sheets.generate_in(node):
        before, after = (_generated(node, style, page, *names) for names in (("marker", "before"), ("after",)))
        parts = chain(before, parts, after)
    if values.get("unicode-bidi", "").endswith("override"):
        direction = Override.RIGHT_TO_LEFT if style.to_the_left else Override.LEFT_TO_RIGHT
        parts = chain([Override.START], parts, [direction])
    yield from parts


def _children(node: LexborNode, style: Style, display: str, page: _Page) -> Iterator[Part]:
    attributes, values = page.sheets.of(node, style.custom)
    children = list(node.iter(include_text=True))
    if children and children[0].is_text_node and _hides_first_letter(node, style, page):
        yield _shown(FIRST_LETTER.sub(r"\1", children.pop(0).text_content or ""), style, page)
    if not attributes and len(children) == 1 and children[0].is_text_node and node.tag not in PECULIAR:
        yield children[0], style, True, page
        return
    if field := text_of_field(node, attributes):
        yield from (" ", _shown(field, style, page), " ")
    if markup := page_within(node, attributes):
        framed = Style(boxed_in=style.boxed_in or not style.visible, doubts=style.doubts)
        yield from _page_within(markup, framed, page._replace(host=None))
    if node.tag == "iframe":
        return
    if node.tag == "details" and "open" not in attributes:
        style = style.doubted("closed")
    if node.tag == "slot" and page.host is not None and (slotted := page.host.in_slot(attributes.get("name") or "")):
        yield from ((child, _as_slotted(child, style, page), True, page.host.page) for child in slotted)
        return
    if (shadow := shadow_among(children)) is not None:
        yield from _page_within(markup_of(shadow), style, page._replace(host=Host(children, page, set())))
        return
    styles = [page.sheets.of(one, style.custom)[1] if one.is_element_node else {} for one in children]
    if len(children) > 1 and (any(styles) or values or style.to_the_left):
        style = style.doubted("covered") if any(map(covers, styles)) else style
        children = in_order_shown(children, styles, display, values, to_the_left=style.to_the_left)
    yield from ((child, style, True, page) for child in children)


def _hides_first_letter(node: LexborNode, style: Style, page: _Page) -> bool:
    _, values = page.sheets.of(node, style.custom, "first-letter")
    return bool(values) and computed(style, values).layer == HIDDEN


def _as_slotted(child: LexborNode, style: Style, page: _Page) -> Style:
    """The style that a child of a host inherits from its slot."""
    selectors = page.sheets.slotted if child.is_element_node else []
    return style.doubted(*filter(child.css_matches, selectors))


def _page_within(markup: str, style: Style, page: _Page) -> Iterator[Part]:
    """A page that stands in an element, with the style that it inherits."""
    if page.depth == DEEPEST:
        page.left_out.append(markup)
    elif (root := parsed(markup)) is not None:
        inside = page._replace(
            sheets=Sheets(root, style_sheets(root)), bodies=frozenset((root.mem_id,)), depth=page.depth + 1
        )
        yield from ("\n", (root, style, False, inside), "\n")


def _line_break(style: Style) -> Piece:
    """A break that is read where the box around it is."""
    return "" if not style.visible else Text("\n", HIDDEN) if style.boxed_in else "\n"


def _shown(text: str, style: Style, page: _Page) -> Text:
    page.characters[style.layer] += sum(map(len, text.split()))
    return Text(SPACES.sub(" ", text), style.layer, style.visible and style.size >= 1 and not style.boxed_in)


def _generated(node: LexborNode, parent: Style, page: _Page, *pseudos: str) -> Iterator[Text]:
    """The texts that style sheets put before or after the content of an element."""
    for pseudo in pseudos:
        attributes, values = page.sheets.of(node, parent.custom, pseudo)
        if "content" not in values:
            continue
        style, display = computed(parent, values), values.get("display", "inline")
        if not is_unseen(values, display, style.size):
            shown = _shown(text_of_content(values["content"], attributes), style, page)
            yield shown._replace(text=f"\n{shown.text}\n") if shown.text and is_block(display) else shown


def _asides(node: LexborNode, attributes: Attributes, style: Style, page: _Page) -> Iterator[Text]:
    """The texts that an element shows in some cases."""
    if text := marks(declarations(attributes.get("style") or "").items, attributes):
        yield _shown(f" {text} ", style.doubted("strings"), page)
    for text in texts_perhaps_shown(node, attributes):
        yield _shown(f"\n{text}\n", style.in_unseen_box(), page)
