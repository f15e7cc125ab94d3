"""Writes the text of a parsed page as a browser shows it, element by element, by the styles of the page.

Pages whose markup hides nothing do not need this; `core.text.html` decides.
"""

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from neardup.core.text.boxes import Values, is_out_of_flow, is_unseen
from neardup.core.text.cascade import Attributes, Sheets, Style, computed
from neardup.core.text.elements import BLOCKS, BREAKING, CONTROLS, NOT_SHOWN, NOT_TEXT, REPLACED
from neardup.core.text.reading_order import as_read

MARKER = re.compile(r"[\W\d_]*\w?[\W\d_]*")  # of a footnote: digits, signs or one letter
SPACES = re.compile(r"[ \t\n\r\f]+")
STRING = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|attr\(\s*([\w-]+)\s*\)")
ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))")
EDGE = "\0"  # of an inline block: it keeps the spaces before it from those at another edge, and is not shown
DEEPEST = 3  # pages within pages


class InlineBlock(Enum):
    """The edges of a block within a line, at which spaces are not shown."""

    START, END = range(2)


class Override(Enum):
    """The edges of an element that shows its letters in one direction, whatever their own is."""

    START, LEFT_TO_RIGHT, RIGHT_TO_LEFT = range(3)


class _Page(NamedTuple):
    """The page's style sheets, the `mem_id` of its story's elements, and how many pages it stands within.

    `left_out` are the pages that stand within too many, `hidden` the texts of the story that are not seen.
    """

    sheets: Sheets
    bodies: frozenset[int]
    depth: int
    left_out: list[str]
    hidden: list[str]


class Rendered(NamedTuple):
    """The text of a page, with line breaks between blocks, and how many characters are hidden.

    It `is_whole` unless pages that stand within more than DEEPEST others were left out.
    """

    text: str
    is_whole: bool
    hidden: int


Part = tuple[LexborNode, Style, bool] | str | InlineBlock | Override


def rendered(root: LexborNode, bodies: frozenset[int]) -> Rendered:
    """The text of a page within the elements whose `mem_id` is in `bodies`.

    White space does not count as hidden, nor does what no browser shows, such as scripts.
    """
    page = _Page(Sheets(root), bodies, 0, [], [])
    text = _rendered(root, page).replace(EDGE, "")
    return Rendered(text, not page.left_out, characters("".join(page.hidden)))


def characters(text: str) -> int:
    """The number of characters that are not white space."""
    return sum(map(len, text.split()))


def _rendered(root: LexborNode, page: _Page) -> str:
    out: list[str] = []
    starts: list[int] = []
    pending: list[Part] = [(root, Style(), False)]
    while pending:
        part = pending.pop()
        if isinstance(part, str):
            out.append(part)
        elif part is InlineBlock.START or part is Override.START:
            starts.append(len(out))
        elif part is InlineBlock.END:
            start = starts.pop()
            out[start:] = ["".join(out[start:]).strip(" "), EDGE]
        elif isinstance(part, Override):
            start = starts.pop()
            out[start:] = [as_read("".join(out[start:]), to_the_left=part is Override.RIGHT_TO_LEFT)]
        else:
            pending += reversed(list(_parts(*part, page)))
    return "".join(out)


def _parts(node: LexborNode, parent: Style, is_inside: bool, page: _Page) -> Iterator[Part]:
    """What a node shows, in order: texts, breaks, and the nodes in it."""
    if node.is_text_node:
        if is_inside:
            text = node.text_content or ""
            if not _is_seen(parent):
                page.hidden.append(text)
            yield _shown(text, parent)
    elif node.is_element_node and is_inside:
        yield from _element(node, parent, page)
    elif node.is_element_node and node.mem_id in page.bodies:
        yield from ("\n", *_element(node, parent, page), "\n")
    elif node.is_element_node:
        tag, attributes = node.tag or "", node.attributes
        values = page.sheets.values(node, attributes, parent.custom)
        style = computed(parent, values) if values else parent
        if is_unseen(values, _display(tag, attributes, values), style.size):
            page.hidden.extend(_texts(node, page, is_inside=False))
        elif tag not in REPLACED:
            yield from ((child, style, False) for child in node.iter(include_text=True))


def _texts(node: LexborNode, page: _Page, *, is_inside: bool) -> Iterator[str]:
    """The texts of the story in an element, in no order."""
    pending = [(node, is_inside)]
    while pending:
        one, is_inside = pending.pop()
        if one.is_text_node and is_inside:
            yield one.text_content or ""
        elif one.is_element_node and one.tag not in NOT_TEXT:
            is_inside = is_inside or one.mem_id in page.bodies
            pending += [(child, is_inside) for child in one.iter(include_text=True)]


def _element(node: LexborNode, parent: Style, page: _Page) -> Iterator[Part]:
    """What an element of the story shows."""
    tag, attributes = node.tag or "", node.attributes
    values = page.sheets.values(node, attributes, parent.custom)
    style = computed(parent, values) if values else parent
    display = _display(tag, attributes, values)
    if tag == "wbr":
        return
    if tag == "br":
        yield "\n" if style.visible and display not in ("none", "contents") else ""
    elif is_unseen(values, display, style.size):
        page.hidden.extend(_texts(node, page, is_inside=True))
        yield "\n" if style.visible and _is_block(display) and not is_out_of_flow(values) else ""
    else:
        start, end = _edges(display, breaks=style.visible and (tag in BLOCKS or not is_out_of_flow(values)))
        yield start
        overrides = values.get("unicode-bidi", "").endswith("override")
        yield Override.START if overrides else ""
        yield _generated(node, attributes, style, page.sheets, "before")
        yield from _children(node, attributes, style, page)
        yield _generated(node, attributes, style, page.sheets, "after")
        if overrides:
            yield Override.RIGHT_TO_LEFT if style.to_the_left else Override.LEFT_TO_RIGHT
        yield end


def _edges(display: str, *, breaks: bool) -> tuple[str | InlineBlock, str | InlineBlock]:
    """What stands before and after the content of an element."""
    if display.startswith("inline-"):
        return InlineBlock.START, InlineBlock.END
    return ("\n", "\n") if breaks and _is_block(display) else ("", "")


def _children(node: LexborNode, attributes: Attributes, style: Style, page: _Page) -> Iterator[Part]:
    if node.tag == "iframe" and "srcdoc" in attributes and style.visible:
        yield _page_within(attributes["srcdoc"] or "", page)
    tag = node.tag
    if tag in REPLACED or (tag == "sup" and MARKER.fullmatch(node.text_lexbor())):
        return
    for child in node.iter(include_text=True):
        if child.tag == "template" and "shadowrootmode" in child.attributes:
            markup = child.template_fragments()[0].inner_html or ""
            yield _page_within(markup, page)
            if "<slot" not in markup:
                return
        yield child, style, True


def _page_within(markup: str, page: _Page) -> str:
    if markup and page.depth == DEEPEST:
        page.left_out.append(markup)
        return ""
    root = LexborHTMLParser(markup).root if markup else None
    if root is None:
        return ""
    return _rendered(root, page._replace(sheets=Sheets(root), bodies=frozenset((root.mem_id,)), depth=page.depth + 1))


def _display(tag: str, attributes: Attributes, values: Values) -> str:
    display = values.get("display", "none" if "hidden" in attributes else "revert")
    if display == "revert":
        return _display_without_styles(tag, attributes)
    if tag == "html" and display != "none":
        return "block"
    return "inline-block" if display == "inline" and tag in CONTROLS else display


def _display_without_styles(tag: str, attributes: Attributes) -> str:
    if tag in NOT_SHOWN or "popover" in attributes or (tag == "dialog" and "open" not in attributes):
        return "none"
    return "block" if tag in BLOCKS else "inline-block" if tag in CONTROLS else "inline"


def _is_block(display: str) -> bool:
    words = display.split()
    return "inline" not in words and not BREAKING.isdisjoint(words)


def _is_seen(style: Style) -> bool:
    return style.visible and style.size >= 1 and style.readable


def _shown(text: str, style: Style) -> str:
    """What is seen of a text: all, nothing, or only the room that it takes."""
    if not style.visible or style.size < 1:
        return ""
    return SPACES.sub(" ", text) if style.readable else " " if SPACES.search(text) else ""


def _generated(node: LexborNode, attributes: Attributes, parent: Style, sheets: Sheets, pseudo: str) -> str:
    """The text that style sheets put before or after the content of an element."""
    values = sheets.values(node, attributes, parent.custom, pseudo)
    if "content" not in values:
        return ""
    style, display = computed(parent, values), values.get("display", "inline")
    if is_unseen(values, display, style.size):
        return ""
    pieces = STRING.findall(values["content"])
    texts = [
        attributes.get(name) or "" if name else ESCAPE.sub(_unescaped, one or other) for one, other, name in pieces
    ]
    text = _shown("".join(texts), style)
    return f"\n{text}\n" if text and _is_block(display) else text


def _unescaped(escape: re.Match[str]) -> str:
    code = int(escape[1], 16) if escape[1] else ord(escape[2])
    return chr(code) if code <= 0x10FFFF and not 0xD800 <= code < 0xE000 else "\ufffd"
