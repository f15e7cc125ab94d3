"""Writes the text of a parsed page as a browser shows it, element by element, by the styles of the page.

Pages whose markup hides nothing do not need this; `core.text.html` decides.  `rendering.c` does the same for most
others, and this is its reference.  Shadow trees that stand in the markup are rendered where their hosts stand, with the
children of a host in its slots (DOM 4.2.2), and so are pages within pages.
"""

import re
from collections import Counter
from collections.abc import Container, Hashable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Generic, NamedTuple, TypeVar

from selectolax.lexbor import LexborNode

from neardup.core.css.cascade import NONE, Known, MatchedRules
from neardup.core.css.computed_style import (
    BLOCKS,
    DRAWINGS,
    DRAWN_TEXTS,
    HIDDEN,
    LISTS,
    NEVER_SHOWN,
    NOT_SHOWN,
    PERHAPS_SHOWN,
    Attributes,
    Layer,
    Looks,
    Style,
    Values,
    choose_layers_apart,
    compute_style,
    covers,
    find_display,
    is_block,
    is_out_of_flow,
    is_unseen,
    may_be_host,
)
from neardup.core.css.declarations import Declaration, parse_declarations
from neardup.core.css.generated_text import (
    is_aside,
    read_content,
    read_counter_signs,
    read_doubtful_texts,
    read_field,
    read_markers,
    read_page_within,
)
from neardup.core.css.order import LEAST_PLACED, is_reversed, order_children
from neardup.core.css.page_styles import find_style_sheets
from neardup.core.css.pieces import (
    BREAK,
    Box,
    Isolate,
    Low,
    Override,
    Piece,
    Text,
    collapse_spaces,
    count_visible,
    find_edges,
    read_spaced_text,
    write_text,
)
from neardup.core.text.parsing import find_matching, insert_after, insert_before, parse
from neardup.core.text.reading_order import has_override
from neardup.core.text.story import BREAKS, TEMPLATES, Parts, Story, collect_parts, collect_story

Page = TypeVar("Page")

START = Style()
FIRST_LETTER = re.compile(r"^(\s*)[^\w\s]*\w[^\w\s]*")  # with the marks and signs beside it
DEEPEST = 8  # pages within pages
PECULIAR = ("details", "iframe", "slot")  # do not always show their own text
SHOWN_IN_OTHER_WAYS = NEVER_SHOWN | NOT_SHOWN | PERHAPS_SHOWN | LISTS | frozenset((
    *PECULIAR, "wbr", "br", "textarea", "input", "object", "sup", "embed", "frame", "img", "source", "image",
))  # fmt: skip
PERHAPS_ASIDE = LISTS | {"sup", "object"}  # by more than their style
BLANKS = frozenset((" ", "\n"))  # the most frequent texts
WITH_TEXTS = frozenset(("alt", "label", "style"))  # attributes
MOST_FRAMES = 2_000  # of those in FRAMES, which are kept


class Host(NamedTuple, Generic[Page]):
    """The children of an element with a shadow tree, their page, and the names of the slots that they stand in."""

    children: list[LexborNode]
    page: Page
    filled: set[str]

    def fill_slot(self, name: str) -> list[LexborNode]:
        """The children that fill the first slot of this name; none for a later one."""
        if name in self.filled:
            return []
        self.filled.add(name)
        return [child for child in self.children if _get_slot(child) == name]


def _get_slot(child: LexborNode) -> str:
    return child.attributes.get("slot") or "" if child.is_element_node else ""


def find_shadow(node: LexborNode, children: Iterable[LexborNode]) -> LexborNode | None:
    """The template that is the shadow tree of an element with these children; None if there is none."""
    return next(filter(_is_shadow, children), None) if may_be_host(node.tag or "") else None


def _is_shadow(child: LexborNode) -> bool:
    if child.tag != "template" or (child.attributes.get("shadowrootmode") or "").lower() not in ("open", "closed"):
        return False
    return bool(child.template_fragments())  # an element of SVG with this name has none


class _Page(NamedTuple):
    """A page to render, which stands within `depth` pages.

    `rules` are those of its style sheets, `bodies` the outermost elements of its story, by `mem_id`.  `around` are the
    elements that contain these, and `parts` those of which more is read than the text; None if that may hold for all.
    Children of `hosts` may be shadow trees, and `host` is the element whose shadow tree the page is.  `left_out` are
    the pages that stand within too many, `characters` counts those of each layer.
    """

    rules: MatchedRules
    bodies: frozenset[int]
    around: Container[int]
    parts: Parts | None
    hosts: AbstractSet[int]
    depth: int
    left_out: list[str]
    characters: Counter[Layer]
    host: "Host[_Page] | None" = None


class Rendered(NamedTuple):
    """The text of a page, whether no page that stands too deep was left out, and the share that is hidden."""

    text: str
    is_whole: bool
    hidden: float


# A node that is still to be read, with the style around it, whether it is in the story, and its page; or what was read.
Part = tuple[LexborNode, Style, bool, _Page] | Piece | Low


def render(root: LexborNode, story: Story) -> Rendered:
    """The text of a story of a page, whose elements it changes.

    White space does not count as hidden, nor does what no browser shows, such as scripts.  Doubtful texts are read
    among the others, and if they are many once more, apart from these.  A page that hides much more than it shows may
    show it by a script, or in a way that is not known here, so the hidden texts follow those that are shown.
    """
    page = _prepare_page(root, story)
    if any(has_override(body.text_lexbor()) for body in story.bodies):
        rendered = _render_page(root, page)
        if has_override(rendered.text):  # any element may end an override, so all are read
            return rendered
    return _render_page(root, _reduce_to_parts(page, story))


def _render_page(root: LexborNode, page: _Page) -> Rendered:
    signs = read_signs(root, page.rules.markers)
    pieces = [_show(signs, START.doubt("signs"), page), *_collect_pieces(root, page)]
    characters = page.characters
    texts = [write_text(pieces), *(write_text(pieces, layers) for layers in choose_layers_apart(characters))]
    return Rendered("\n".join(texts), not page.left_out, characters[HIDDEN] / max(1, characters.total()))


def read_signs(root: LexborNode, markers: Iterable[Declaration]) -> str:
    """The texts by which style sheets mark lists and quotes."""
    signs = [read_counter_signs(sheet.text_lexbor()) for sheet in find_matching("style", root)]
    return " ".join((*signs, read_markers(markers, {}))).strip()


def _prepare_page(root: LexborNode, story: Story) -> _Page:
    rules = MatchedRules(root, find_style_sheets(root))
    bodies = frozenset(body.mem_id for body in story.bodies)
    templates = [node for node in story.invisible if node.tag_id in TEMPLATES]
    hosts = {host.mem_id for node in templates if (host := node.parent) is not None}
    return _Page(rules, bodies, story.around, None, hosts, 0, [], Counter())


def _reduce_to_parts(page: _Page, story: Story) -> _Page:
    """A page of which only parts are looked at, if its rules are whole; other invisible elements leave its tree."""
    if not page.rules.is_whole:
        return page._replace(characters=Counter(), left_out=[])
    found = collect_parts(story, page.rules.acting.values(), page.rules.moved.values())
    parts = found._replace(read=found.read | page.bodies)
    for node in story.breaks:
        if (parent := node.parent) is not None and parent.mem_id not in parts.read:
            insert_before(node, BREAK.encode())
            insert_after(node, BREAK.encode())
    for node in reversed(story.invisible):
        if node.mem_id not in parts.read:
            node.decompose()
    return page._replace(parts=parts, characters=Counter(), left_out=[])


def _collect_pieces(root: LexborNode, page: _Page) -> list[Piece]:
    """What a page shows, in order.  Parts wait on a stack, since elements may stand in each other without end."""
    out: list[Piece] = []
    low: list[bool] = []  # for each box clipped to a line, whether a text was read in it
    pending: list[Part] = [(root, START, False, page)]
    while pending:
        part = pending.pop()
        if isinstance(part, Low):
            low[:] = [*low, False] if part is Low.START else low[:-1]
        elif isinstance(part, Text) or not isinstance(part, tuple):
            out.append(part)
        else:
            node, style, is_inside, inside = part
            if is_inside and node.is_text_node:
                out.append(_read_text(node, style, inside, low))
            elif is_inside and not low and _is_read_as_one(node, style, inside):
                out += _read_as_one(node, style, inside)
            else:
                within = _open_frame(node, style, inside) if is_inside else None
                pending += reversed(list(_list_parts(node, style, is_inside, inside))) if within is None else within
    return out


def _read_text(node: LexborNode, style: Style, page: _Page, low: list[bool]) -> Text:
    """What a text shows; of the texts in a box clipped to a line, only the first is certain to be seen."""
    text = node.text_content or ""
    if low and text.strip():
        style = style.doubt("clipped") if any(low) else style
        low[:] = [True] * len(low)
    return _show(text, style, page)


def _is_read_as_one(node: LexborNode, style: Style, page: _Page) -> bool:
    """Whether an element is read with all that is in it, as one text."""
    if page.parts is None or node.mem_id in page.parts.read or not node.is_element_node or style.lays_out:
        return False
    return style.is_plain or style.boxed_in or (style.in_drawing and node.first_child is None)


def _read_as_one(node: LexborNode, style: Style, page: _Page) -> Sequence[Piece]:
    is_block = node.tag_id in BREAKS
    if node.first_child is None and not is_block:
        return ()
    written_text, visible = read_spaced_text(node)
    page.characters[style.layer] += visible
    text = Text(written_text, style.layer, style.takes_room)
    return (make_line_break(style), text, make_line_break(style)) if is_block else (text,)


class Frame(NamedTuple):
    """What stands before and after that which is in an element, and the style of this.

    Unless `is_arranged`, children that nothing moves are shown in the order of the page.
    """

    style: Style
    start: tuple[Piece | Low, ...]
    end: tuple[Piece | Low, ...]
    is_arranged: bool


# By what is known of the page's style sheets, the style around an element, and what it has in common with others; the
# first two are kept, so that their ids stay.  An entry may be dropped at any time.
FRAMES: dict[tuple[int, int, Hashable], tuple[Frame, Known, Style]] = {}


def _open_frame(node: LexborNode, parent: Style, page: _Page) -> list[Part] | None:
    """The parts of an element that shows only what is in it, the last one first; None for another one."""
    place = node.mem_id
    if place in page.hosts or place in page.rules.pseudos or node.tag in SHOWN_IN_OTHER_WAYS:
        return None
    attributes = node.attributes
    if (not WITH_TEXTS.isdisjoint(attributes) and may_show_text(attributes)) or not node.is_element_node:
        return None
    frame = _get_frame(node, attributes, parent, page)
    style, children = frame.style, list(node.iter(include_text=True))
    if len(children) > 1 and (frame.is_arranged or _are_moved(node, len(children), style, page)):
        style, children = _arrange(node, children, style, parent, page)
    blank = Text(" ", style.layer, style.takes_room)
    page.characters[blank.layer] += 0  # the layer is one of the page, even if it has blanks only
    parts: list[Part] = [
        blank if child.is_text_node and child.text_content in BLANKS else (child, style, True, page)
        for child in reversed(children)
    ]
    return [*reversed(frame.end), *parts, *reversed(frame.start)]


def _get_frame(node: LexborNode, attributes: Attributes, parent: Style, page: _Page) -> Frame:
    rules = page.rules
    style_key = rules.make_style_key(node, attributes)
    key = id(rules.known), id(parent), style_key
    if style_key is None or not rules.is_whole or node.tag in PERHAPS_ASIDE:
        return _compute_frame(node, parent, page)
    if (found := FRAMES.get(key)) is None:
        if len(FRAMES) == MOST_FRAMES:
            FRAMES.clear()
        found = FRAMES[key] = _compute_frame(node, parent, page), rules.known, parent
    return found[0]


def _are_moved(node: LexborNode, children: int, style: Style, page: _Page) -> bool:
    """Whether some of so many children of an element may be shown in another order, or over the others."""
    if page.parts is None:
        return True
    if (moved := page.parts.moved.get(node.mem_id)) is None:
        return False
    if len(moved) >= min(LEAST_PLACED, children):
        return True
    declared = [page.rules.read_element(child, style.custom)[1] for child in moved]
    return any("order" in values or covers(values) for values in declared)


def _arrange(
    node: LexborNode, children: list[LexborNode], style: Style, parent: Style, page: _Page
) -> tuple[Style, list[LexborNode]]:
    """The style within an element in `parent`, and its children in the order in which they are shown."""
    attributes, values = page.rules.read_element(node, parent.custom)
    display = find_display(node.tag or "", attributes, values)
    every = not style.is_plain or display.endswith("grid")
    styles = [_find_order_values(child, style, page, every=every) for child in children]
    if any(styles) or style.to_the_left or turns_order(values):
        style = style.doubt("covered") if any(map(covers, styles)) else style
        children = order_children(children, styles, display, values, to_the_left=style.to_the_left)
    return style, children


def may_show_text(attributes: Attributes) -> bool:
    """Whether attributes may show a text."""
    style = attributes.get("style") or ""
    return bool(attributes.get("alt") or attributes.get("label")) or any(map(style.__contains__, ("'", '"', "url(")))


def turns_order(values: Values) -> bool:
    """Whether an element shows children in another order that declare nothing themselves."""
    return is_reversed(values) or "column" in values.get("grid-auto-flow", "")


def _find_order_values(child: LexborNode, style: Style, page: _Page, *, every: bool) -> Values:
    """The values by which a child may be shown in another order; without `every`, none where nothing acts on it."""
    if not child.is_element_node or not (every or page.parts is None or child.mem_id in page.parts.read):
        return NONE
    return page.rules.read_element(child, style.custom)[1]


def _list_parts(node: LexborNode, parent: Style, is_inside: bool, page: _Page) -> Iterator[Part]:
    """What a node shows, in order: texts, breaks, and the nodes in it."""
    if not node.is_element_node:
        return
    if is_inside:
        yield from _render_element(node, parent, page)
    elif node.mem_id in page.bodies:
        yield from ("\n", (node, parent, True, page), "\n")
    elif node.mem_id in page.around:
        tag = node.tag or ""
        attributes, values = page.rules.read_element(node, parent.custom)
        style, is_box_unseen, _ = page.rules.looks.find_look(parent, values, find_display(tag, attributes, values))
        if is_box_unseen or is_aside(node, attributes, values):
            style = style.enter_unseen_box()
        if tag not in NEVER_SHOWN:
            yield from ((child, style, False, page) for child in node.iter())


def _render_element(node: LexborNode, parent: Style, page: _Page) -> Iterator[Part]:
    """What an element of the story shows."""
    tag = node.tag or ""
    attributes, values = page.rules.read_element(node, parent.custom)
    display = find_display(tag, attributes, values)
    if tag == "wbr" or tag in NEVER_SHOWN or (tag in NOT_SHOWN and display == "none" and tag not in PERHAPS_SHOWN):
        if tag == "style":
            yield from _show_doubtful_texts(
                node, attributes, page.rules.looks.find_look(parent, values, display).style, page
            )
        return
    if tag == "br":
        style = page.rules.looks.find_look(parent, values, display).style
        yield make_line_break(style) if display not in ("none", "contents") else ""
        return
    frame = _get_frame(node, attributes, parent, page)
    yield from chain(frame.start, _render_content(node, frame.style, display, page), frame.end)


def _compute_frame(node: LexborNode, parent: Style, page: _Page) -> Frame:
    attributes, values = page.rules.read_element(node, parent.custom)
    return make_frame(
        node.tag or "", attributes, values, parent, page.rules.looks, is_aside=is_aside(node, attributes, values)
    )


def make_frame(
    tag: str, attributes: Attributes, values: Values, parent: Style, looks: Looks, *, is_aside: bool
) -> Frame:
    """The frame of an element by its values, in the style around it; if it `is_aside`, what is in it is hidden."""
    display = find_display(tag, attributes, values)
    is_out = is_out_of_flow(values)
    is_block_by_itself = tag in BLOCKS and is_block(display)
    is_apart = (is_out or parent.lays_out) and display not in ("none", "contents") and not is_block_by_itself
    if is_apart and display == "inline":
        display = "block"
    style, is_box_unseen, is_box_low = looks.find_look(parent, values, display)
    before = (make_line_break(style),) if is_box_unseen and is_block(display) and not is_out else ()
    start: Sequence[Piece | Low]
    end: Sequence[Piece | Low]
    start, end = (
        ((), ()) if is_box_unseen and is_out else ((Box.START,), (Box.END,)) if is_apart else find_edges(display)
    )
    if is_box_unseen or is_aside:
        style = style.enter_unseen_box()
    if is_block(display) and start and not is_apart:
        start = end = (make_line_break(style),)
    style = style.lay_out_children(lays_out=display.endswith(("flex", "grid")))
    if tag in DRAWINGS or tag in DRAWN_TEXTS:
        style = style.set_in_drawing(in_drawing=tag in DRAWINGS)
    if is_box_low:
        start, end = (*start, Low.START), (Low.END, *end)
    bidi = values.get("unicode-bidi", "")
    if bidi not in ("", "normal"):
        start, end = (*start, Isolate.START), (Isolate.END, *end)
    if bidi.endswith("override"):
        direction = Override.RIGHT_TO_LEFT if style.to_the_left else Override.LEFT_TO_RIGHT
        start, end = (*start, Override.START), (direction, *end)
    is_arranged = display.endswith("grid") or style.to_the_left or turns_order(values)
    return Frame(style, (*before, *start), tuple(end), is_arranged)


def _render_content(node: LexborNode, style: Style, display: str, page: _Page) -> Iterator[Part]:
    """What stands within the box of an element."""
    attributes, _ = page.rules.read_element(node, style.custom)
    parts: Iterator[Part] = _render_children(node, style, display, page)
    if attributes:
        parts = chain(_show_doubtful_texts(node, attributes, style, page), parts)
    if node.mem_id in page.rules.pseudos:
        before, after = (_generate_texts(node, style, page, *names) for names in (("marker", "before"), ("after",)))
        parts = chain(before, parts, after)
    yield from parts


def _render_children(node: LexborNode, style: Style, display: str, page: _Page) -> Iterator[Part]:
    attributes, values = page.rules.read_element(node, style.custom)
    children = list(node.iter(include_text=True))
    if children and children[0].is_text_node and _hides_first_letter(node, style, page):
        yield _show(FIRST_LETTER.sub(r"\1", children.pop(0).text_content or ""), style, page)
    if not attributes and len(children) == 1 and children[0].is_text_node and node.tag not in PECULIAR:
        yield children[0], style, True, page
        return
    if field := read_field(node, attributes):
        yield from (" ", _show(field, style, page), " ")
    if markup := read_page_within(node, attributes):
        framed = Style(boxed_in=style.boxed_in or not style.visible, doubts=style.doubts)
        yield from _render_page_within(markup, framed, page._replace(host=None))
    if node.tag == "iframe":
        return
    if node.tag == "details" and "open" not in attributes:
        style = style.doubt("closed")
    if node.tag == "slot" and page.host is not None and (slotted := page.host.fill_slot(attributes.get("name") or "")):
        yield from ((child, _compute_slotted_style(child, style, page), True, page.host.page) for child in slotted)
        return
    if (shadow := find_shadow(node, children)) is not None:
        markup = shadow.template_fragments()[0].inner_html or ""
        yield from _render_page_within(markup, style, page._replace(host=Host(children, page, set())))
        return
    styles = [page.rules.read_element(child, style.custom)[1] if child.is_element_node else {} for child in children]
    if len(children) > 1 and (any(styles) or values or style.to_the_left):
        style = style.doubt("covered") if any(map(covers, styles)) else style
        children = order_children(children, styles, display, values, to_the_left=style.to_the_left)
    yield from ((child, style, True, page) for child in children)


def _hides_first_letter(node: LexborNode, style: Style, page: _Page) -> bool:
    _, values = page.rules.read_element(node, style.custom, "first-letter")
    return bool(values) and compute_style(style, values).layer == HIDDEN


def _compute_slotted_style(child: LexborNode, style: Style, page: _Page) -> Style:
    """The style that a child of a host inherits from its slot."""
    selectors = page.rules.slotted if child.is_element_node else []
    return style.doubt(*filter(child.css_matches, selectors))


def _render_page_within(markup: str, style: Style, page: _Page) -> Iterator[Part]:
    """A page that stands in an element, with the style that it inherits."""
    if page.depth == DEEPEST:
        page.left_out.append(markup)
    elif (root := parse(markup)) is not None:
        inside = _prepare_page(root, story := collect_story([root]))
        if not has_override(root.text_lexbor()):
            inside = _reduce_to_parts(inside, story)
        inside = inside._replace(
            depth=page.depth + 1, left_out=page.left_out, characters=page.characters, host=page.host
        )
        yield from ("\n", (root, style, False, inside), "\n")


def make_line_break(style: Style) -> Piece:
    """A break that is read where the box around it is."""
    return "" if not style.visible else Text("\n", HIDDEN) if style.boxed_in else "\n"


def _show(text: str, style: Style, page: _Page) -> Text:
    layer = style.layer
    page.characters[layer] += count_visible(text)
    return Text(collapse_spaces(text), layer, style.takes_room)


def _generate_texts(node: LexborNode, parent: Style, page: _Page, *pseudos: str) -> Iterator[Text]:
    """The texts that style sheets put before or after the content of an element."""
    for pseudo in pseudos:
        attributes, values = page.rules.read_element(node, parent.custom, pseudo)
        if (text := generate_text(values, attributes, parent)) is not None:
            page.characters[text.layer] += count_visible(text.text)
            yield text


def generate_text(values: Values, attributes: Attributes, parent: Style) -> Text | None:
    """The text of a pseudo-element with these values in an element of the style `parent`, if it has one."""
    if "content" not in values:
        return None
    style, display = compute_style(parent, values), values.get("display", "inline")
    if is_unseen(values, display, style.size, is_laid_out=parent.lays_out):
        return None
    text = collapse_spaces(read_content(values["content"], attributes))
    return Text(f"\n{text}\n" if text and is_block(display) else text, style.layer, style.takes_room)


def _show_doubtful_texts(node: LexborNode, attributes: Attributes, style: Style, page: _Page) -> Iterator[Text]:
    """The texts that an element shows in some cases."""
    if text := read_markers(parse_declarations(attributes.get("style") or "").items, attributes):
        yield _show(f" {text} ", style.doubt("strings"), page)
    for text in read_doubtful_texts(node, attributes):
        yield _show(f"\n{text}\n", style.enter_unseen_box(), page)
