"""The elements of a page's story, and why they must be rendered, if their text is not what a browser shows.

Only these elements and those that contain them are looked at.  What stands elsewhere in a page does not change what is
shown of its story, apart from its style sheets, see `core.css.page_styles`.  Where a browser shows the story as it is
written, the native core reads it (`read_plain_story`).
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import numpy as np
from selectolax.lexbor import LexborHTMLParser, LexborNode

from neardup.core.css.cascade import HINTS, read_hint
from neardup.core.css.computed_style import BLOCKS
from neardup.core.css.declarations import parse_declarations
from neardup.core.css.generated_text import shows_text
from neardup.core.css.order import DRAWN
from neardup.core.css.page_styles import act_nowhere, act_on, find_style_sheets
from neardup.core.native.page import SHEETS, STYLE_AROUND, WHY_UNUSABLE, StoryRead, TagClass, TagRules, read_story
from neardup.core.text.parsing import find_matching
from neardup.core.text.reading_order import count_overrides


def _find_tag_ids(names: str) -> frozenset[int]:
    """Tag names, separated by spaces -> the parser's ids of these tags, which are the same in every document."""
    document = LexborHTMLParser("")
    return frozenset(document.create_node(name).tag_id for name in names.split())


INVISIBLE = _find_tag_ids(
    "audio canvas datalist head iframe meter noembed noframes noscript progress rp rt script select style template "
    "title video"
)
BREAKS = _find_tag_ids(" ".join((*(BLOCKS - {"html", "body", "dialog"}), "br")))
SUPERSCRIPT = _find_tag_ids("sup")
# What is shown in a way of its own, and what may be.
PECULIAR = _find_tag_ids("bdo button dialog marquee math svg textarea")
FRAMES = _find_tag_ids("iframe select template")
TEMPLATES = _find_tag_ids("template")
LISTS, LINKS, STYLES, FIELDS = (_find_tag_ids(names) for names in ("select", "link", "style", "input textarea"))
ANNOTATIONS = _find_tag_ids("img input rt sup")
PAGES_WITHIN = frozenset(("srcdoc", "shadowrootmode"))  # attributes
PAGES_IN_ADDRESSES = ("data:text/", "data:,", "data:;", "data:image/svg")
HIDING = frozenset(("hidden", "popover"))
ATTRIBUTED = _find_tag_ids("embed font frame img input link object source")  # whose attributes decide
OTHERS = SUPERSCRIPT | PECULIAR | ATTRIBUTED
PECULIAR_ATTRIBUTES = frozenset(("style", "hidden", "popover", "bgcolor"))
WITH_PECULIAR_ATTRIBUTES = ", ".join(f"[{name}]" for name in sorted(PECULIAR_ATTRIBUTES))
# What a browser shows in its own way, or may read beside the text.
PARTED = ("details", "slot", "image")
READ_IN_PARTS = ", ".join((WITH_PECULIAR_ATTRIBUTES, "[alt]", "[label]", "[dir=rtl i]", *PARTED))
ALWAYS_IN_PARTS = SUPERSCRIPT | PECULIAR | _find_tag_ids("input style select rt")
CLASSES = {
    TagClass.BREAK: BREAKS, TagClass.INVISIBLE: INVISIBLE, TagClass.PECULIAR: PECULIAR, TagClass.ATTRIBUTED: ATTRIBUTED,
    TagClass.ANNOTATION: ANNOTATIONS, TagClass.FRAME: FRAMES - LISTS, TagClass.LIST: LISTS, TagClass.STYLE: STYLES,
    TagClass.SUPERSCRIPT: SUPERSCRIPT, TagClass.LINK: LINKS, TagClass.IN_PARTS: ALWAYS_IN_PARTS | FRAMES,
    TagClass.PARTED: _find_tag_ids(" ".join(PARTED)), TagClass.HOST: TEMPLATES, TagClass.FIELD: FIELDS,
}  # fmt: skip
MOST_ANNOTATIONS = 100  # superscripts, ruby annotations, pictures or fields; with more, they may be the text
LONG_ATTRIBUTE, LONG_LIST = 40, 400  # characters; a shorter text of a picture, a field or a list is not looked at
MOST_VERDICTS, LONGEST_STYLE = 4096, 1000  # that are kept, and characters of a style
STYLE_SHEET, OVERRIDE = "style sheet", "override"

# Whether the value of a `style` attribute acts on the text in an element.  An entry may be dropped at any time.
STYLE_VERDICTS: dict[str, bool] = {}


class Story(NamedTuple):
    """The elements of a story, in the order of the page.

    `bodies` are the outermost ones, and `around` those that contain them, by their `mem_id`.  Of the bodies and the
    elements in them, `breaks` break a line, browsers do not show `invisible`, and `others` must be looked at.
    """

    bodies: Sequence[LexborNode]
    around: Mapping[int, LexborNode]
    breaks: Sequence[LexborNode]
    invisible: Sequence[LexborNode]
    others: Sequence[LexborNode]


def collect_story(bodies: Sequence[LexborNode]) -> Story:
    """The elements of a story, by the outermost ones."""
    breaks, invisible, others = [], [], []
    for body in bodies:
        for node in body.traverse():
            tag = node.tag_id
            if tag in BREAKS:
                breaks.append(node)
            elif tag in INVISIBLE:
                invisible.append(node)
            elif tag in OTHERS:
                others.append(node)
    return Story(bodies, find_ancestors(bodies), breaks, invisible, others)


def find_ancestors(bodies: Sequence[LexborNode]) -> dict[int, LexborNode]:
    """The elements that contain those of a story, by their `mem_id`."""
    found: dict[int, LexborNode] = {}
    for body in bodies:
        node = body.parent
        while node is not None and node.mem_id not in found:
            found[node.mem_id] = node
            node = node.parent
    return found


def find_reason_to_render(root: LexborNode, story: Story, html: str | bytes) -> str | None:
    """Why the text of a story of the page `html` may not be what a browser shows; None if it is."""
    reason = _find_reason_in_elements(story) or _find_reason_in_attributes(story) or _find_reason_in_ancestors(story)
    if reason is None and act_on(find_style_sheets(root), root, story.bodies, story.around, html):
        return STYLE_SHEET
    if reason is None and _reads_override(story):
        return OVERRIDE
    return reason


def _reads_override(story: Story) -> bool:
    """Whether a text of a story overrides its direction; those in invisible elements are not read."""
    count = sum(count_overrides(body.text_lexbor()) for body in story.bodies)
    if not count:
        return False
    nodes = {node.mem_id: node for node in story.invisible}
    outermost = (node for node in nodes.values() if not _stands_in(node, nodes))
    return count > sum(count_overrides(node.text_lexbor()) for node in outermost)


def _stands_in(node: LexborNode, elements: Container[int]) -> bool:
    parent = node.parent
    while parent is not None and parent.mem_id not in elements:
        parent = parent.parent
    return parent is not None


def _find_reason_in_elements(story: Story) -> str | None:
    for node in story.others:
        if node.tag_id in PECULIAR or (node.tag_id in ATTRIBUTED and find_acting_attribute(node.attributes)):
            return f"element {node.tag}"
    for node in story.invisible:
        if node.tag_id in FRAMES and _holds_page(node):
            return f"element {node.tag}"
    annotations = sum(node.tag_id in ANNOTATIONS for node in (*story.others, *story.invisible))
    return "annotations" if annotations > MOST_ANNOTATIONS else None


def _find_reason_in_attributes(story: Story) -> str | None:
    for body in story.bodies:
        for node in find_matching(WITH_PECULIAR_ATTRIBUTES, body):
            if name := find_acting_attribute(node.attributes):
                return f"attribute {name}"
    return None


def _find_reason_in_ancestors(story: Story) -> str | None:
    for node in story.around.values():
        tag, attributes = node.tag_id, node.attributes
        if tag in PECULIAR or tag in SUPERSCRIPT or (tag in FRAMES and _holds_page(node)):
            return f"element {node.tag}"
        if attributes and (tag in ATTRIBUTED or not PECULIAR_ATTRIBUTES.isdisjoint(attributes)):
            style = attributes.get("style")
            others = {name: value for name, value in attributes.items() if name != "style"}
            if name := "style" if style and parse_declarations(style).acts_around else find_acting_attribute(others):
                return f"attribute {name}"
    return None


class Parts(NamedTuple):
    """The elements of a story of which more is read than their text, by their `mem_id`.

    A browser may show those of `read` in their own way, or they stand around such elements.  `moved` has for each
    element the children that a browser may show elsewhere than their place among the others says.
    """

    read: AbstractSet[int]
    moved: Mapping[int, Sequence[LexborNode]]


def collect_parts(story: Story, acting: Iterable[LexborNode], moved: Iterable[LexborNode]) -> Parts:
    """The parts of a story, by the elements of the page on which style sheets act, and those that they may move."""
    parted = [*acting]
    parted += [node for node in story.invisible if node.tag_id in ALWAYS_IN_PARTS or node.tag_id in FRAMES]
    parted += [
        node for node in story.others if node.tag_id in ALWAYS_IN_PARTS or find_acting_attribute(node.attributes)
    ]
    peculiar = [node for body in story.bodies for node in find_matching(READ_IN_PARTS, body) if _has_parts(node)]
    drawings = [node for body in story.bodies for node in find_matching(", ".join(DRAWN), body)]
    moved_in: dict[int, list[LexborNode]] = {}
    for node in {node.mem_id: node for node in (*moved, *drawings, *filter(_moves, peculiar))}.values():
        if (parent := node.parent) is not None:
            moved_in.setdefault(parent.mem_id, []).append(node)
    ends = {body.mem_id for body in story.bodies}
    ids = set[int]()
    for node in (*parted, *peculiar):
        parent = node
        while parent is not None and (place := parent.mem_id) not in ids:
            ids.add(place)
            parent = parent.parent if place not in ends else None
    return Parts(ids, moved_in)


def _has_parts(node: LexborNode) -> bool:
    attributes = node.attributes
    if node.tag in PARTED or attributes.get("alt") or attributes.get("label") or "dir" in attributes:
        return True
    return find_acting_attribute(attributes) is not None


def _moves(node: LexborNode) -> bool:
    return parse_declarations(node.attributes.get("style") or "").moves


def _holds_page(node: LexborNode) -> bool:
    attributes = node.attributes
    if node.tag == "select":
        return len(node.text_lexbor()) > LONG_LIST
    return not PAGES_WITHIN.isdisjoint(attributes) or find_acting_attribute(attributes) is not None


def find_acting_attribute(attributes: Mapping[str, str | None]) -> str | None:
    """The first attribute that may hide the text in its element, or show another one; None if there is none."""
    return next((name for name, value in attributes.items() if _acts(name, value or "")), None)


def _acts(name: str, value: str) -> bool:
    if name == "style":
        return _does_style_act(value)
    if name in ("href", "src", "srcset", "data"):
        return value.lstrip()[:15].lower().startswith("data:" if name == "data" else PAGES_IN_ADDRESSES)
    if name in ("alt", "value", "placeholder"):
        return len(value) > LONG_ATTRIBUTE
    if name in HINTS:
        return parse_declarations(f"{HINTS[name]}: {read_hint(value)}").acts
    return name in HIDING


def _does_style_act(style: str) -> bool:
    if (acts := STYLE_VERDICTS.get(style)) is None:
        acts = parse_declarations(style).acts or shows_text(style)
        if len(STYLE_VERDICTS) == MOST_VERDICTS:
            STYLE_VERDICTS.clear()
        if len(style) <= LONGEST_STYLE:
            STYLE_VERDICTS[style] = acts
    return acts


def _build_rules() -> TagRules:
    tags = np.zeros(max(map(max, CLASSES.values())) + 1, np.uint16)
    for tag_class, ids in CLASSES.items():
        tags[list(ids)] |= np.uint16(tag_class)
    return TagRules(tags, MOST_ANNOTATIONS, LONG_ATTRIBUTE, LONG_LIST)


RULES = _build_rules()


def read_plain_story(root: LexborNode, bodies: Sequence[LexborNode], html: bytes) -> StoryRead | None:
    """The story in the elements `bodies` of the page `html`; None for one that Python must read, or perhaps render."""
    if WHY_UNUSABLE is not None:
        return None

    def may_hide(kind: str, value: bytes) -> bool:
        if kind == SHEETS:
            return not act_nowhere(find_style_sheets(root))
        if kind == STYLE_AROUND:
            return parse_declarations(value.decode()).acts_around
        return find_acting_attribute({kind: value.decode()}) is not None

    story = read_story(root, bodies, len(html), RULES, may_hide)
    if not isinstance(story, StoryRead):
        return None
    if story.has_acting_sheets and act_on(find_style_sheets(root), root, bodies, find_ancestors(bodies), html):
        return None
    return story
