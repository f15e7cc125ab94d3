"""Extracts the visible story text of a page: decodes it, parses it with lexbor and drops hidden parts."""

import codecs
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from selectolax.lexbor import LexborCSSSelector, LexborHTMLParser, LexborNode

from neardup.core.text.cascade import HINTS, acting, hinted
from neardup.core.text.css import declarations
from neardup.core.text.decoding import REPLACEMENT, NoStoryText, decode, is_plain
from neardup.core.text.elements import BLOCKS
from neardup.core.text.extraction import Extraction
from neardup.core.text.own_texts import is_marker, shows_text
from neardup.core.text.parsing import parsed
from neardup.core.text.rendering import rendered
from neardup.core.text.unparsed import unparsed_text
from neardup.records import Limit, Skip


def _tag_ids(names: str) -> frozenset[int]:
    """Tag names, separated by spaces -> the parser's ids of these tags, which are the same in every document."""
    document = LexborHTMLParser("")
    return frozenset(document.create_node(name).tag_id for name in names.split())


INVISIBLE = _tag_ids(
    "audio canvas datalist head iframe meter noembed noframes noscript progress rp rt script select style template "
    "title video"
)
BREAKS = _tag_ids(" ".join((*(BLOCKS - {"html", "body", "dialog"}), "br")))
SUPERSCRIPT = _tag_ids("sup")
# What is shown in a way of its own, and what may be.
PECULIAR = _tag_ids("bdo button dialog marquee math svg textarea")
FRAMES = _tag_ids("iframe select template")
ANNOTATIONS = _tag_ids("img input rt sup")
STYLES = _tag_ids("style")
PAGES_WITHIN = frozenset(("srcdoc", "shadowrootmode"))  # attributes
PAGES_IN_ADDRESSES = ("data:text/", "data:,", "data:;", "data:image/svg")
HIDING = frozenset(("hidden", "popover"))
ATTRIBUTED = _tag_ids("embed font frame img input link object source")  # whose attributes decide
PECULIAR_ATTRIBUTES = "[style], [hidden], [popover], [bgcolor]"
# One for all pages: `node.css` makes one for each page, which takes 2 us.
SELECTOR = LexborCSSSelector()  # type: ignore[no-untyped-call]
OTHERS = SUPERSCRIPT | PECULIAR | ATTRIBUTED
# Choosing among the overloads of these methods takes longer than the insertion, so the overloads are called directly.
insert_before, insert_after = (vars(LexborNode)[name]["bytes"] for name in ("insert_before", "insert_after"))
MARKUP = re.compile(r"<(!doctype|html|body|p|div|article)\b", re.IGNORECASE)
LEAST_SHOWN = 200  # characters; a page that shows less may show a text in a way of its own,
LEAST_PAGE = 600  # if it has so many bytes of UTF-8
MOST_ANNOTATIONS = 100  # superscripts, ruby annotations, pictures or fields; with more, they may be the text
LONG_ATTRIBUTE, LONG_LIST = 40, 400  # characters; a shorter text of a picture, a field or a list is not looked at
MOST_TAGS = 100_000  # a page with more is not a story; each tag takes half a kilobyte of memory


@dataclass(frozen=True, slots=True)
class Extracted:
    """The text of a story, one line per block, and the limit because of which it is not all that a browser shows.

    `hidden` is the share of the story's characters that a browser does not show.
    """

    text: str
    limit: Limit | None = None
    hidden: float = 0.0


def page_text(body: bytes, content_type: str | None, extraction: Extraction) -> str:
    """A page's bytes -> the text of its story.  Raises NoStoryText."""
    return extracted(body, content_type, extraction).text


def extracted(body: bytes, content_type: str | None, extraction: Extraction) -> Extracted:
    """A page's bytes -> its story.  Raises NoStoryText."""
    selectors = "".join((extraction.body, *extraction.strip))
    if is_plain(body) and selectors.isascii():
        found = shown(body.removeprefix(codecs.BOM_UTF8), extraction)
        # Text without replacement characters was UTF-8, so there is no need to decode the markup as well.
        if REPLACEMENT not in found.text or decode(body, content_type) == body.decode("utf-8", "replace"):
            return found
    return _of_markup(decode(body, content_type), extraction)


def extracted_from_file(body: bytes, extraction: Extraction) -> Extracted:
    """The bytes of a page or of a plain text -> its story.  Raises NoStoryText."""
    text = decode(body, None)
    return _of_markup(text, extraction) if MARKUP.search(text) else Extracted(text)


def _of_markup(html: str, extraction: Extraction) -> Extracted:
    if html.count("<") > MOST_TAGS:
        return Extracted(unparsed_text(html), Limit.TAGS)
    return shown(html, extraction)


def visible_text(html: str | bytes, extraction: Extraction) -> str:
    """Markup (bytes are UTF-8) -> visible text of the story, with line breaks between blocks.  Raises NoStoryText."""
    return shown(html, extraction).text


def shown(html: str | bytes, extraction: Extraction) -> Extracted:
    """Markup (bytes are UTF-8) -> the story that a browser shows.  Raises NoStoryText."""
    root = parsed(html)
    if root is None:
        raise NoStoryText(Skip.EMPTY)
    breaks, invisible, others = _elements(root)
    if _needs_rendering(root, invisible, others):
        return _rendered(root, extraction)
    for node in breaks:
        insert_before(node, b"\n")
        insert_after(node, b"\n")
    annotations = [node for node in others if node.tag_id in SUPERSCRIPT and is_marker(node)]
    if not _stripped(root, chain([invisible + annotations], map(root.css, extraction.strip))):
        return Extracted("")
    text = "\n".join(node.text_lexbor() for node in _bodies(root, extraction.body))
    if _is_short(html) or not _is_nearly_empty(text) or not (whole := parsed(html)):
        return Extracted(text)
    found = _rendered(whole, extraction)
    return found if len(found.text.split()) > len(text.split()) else Extracted(text)


def _is_short(html: str | bytes) -> bool:
    return len(html) < LEAST_PAGE and (isinstance(html, bytes) or len(html.encode(errors="replace")) < LEAST_PAGE)


def _is_nearly_empty(text: str) -> bool:
    if len(text) >= 10 * LEAST_SHOWN or _visible(text[: 2 * LEAST_SHOWN]) >= LEAST_SHOWN:
        return False
    return _visible(text) < LEAST_SHOWN


def _visible(text: str) -> int:
    """How many characters are not white space."""
    return sum(map(len, text.split()))


def _rendered(root: LexborNode, extraction: Extraction) -> Extracted:
    if not _stripped(root, map(root.css, extraction.strip)):
        return Extracted("")
    text, is_whole, hidden = rendered(root, frozenset(node.mem_id for node in _bodies(root, extraction.body)))
    return Extracted(text, None if is_whole else Limit.NESTING, hidden)


def _elements(root: LexborNode) -> tuple[list[LexborNode], list[LexborNode], list[LexborNode]]:
    """The elements that break a line, those that browsers do not show, and others that must be looked at."""
    breaks, invisible, others = [], [], []
    for node in root.traverse():
        tag = node.tag_id
        if tag in BREAKS:
            breaks.append(node)
        elif tag in INVISIBLE:
            invisible.append(node)
        elif tag in OTHERS:
            others.append(node)
    return breaks, invisible, others


def _needs_rendering(root: LexborNode, invisible: Sequence[LexborNode], others: Sequence[LexborNode]) -> bool:
    """Whether the page may hide a text by its markup, or show it in a way of its own."""
    return (
        any(node.tag_id in PECULIAR or (node.tag_id in ATTRIBUTED and _may_hide(node.attributes)) for node in others)
        or sum(node.tag_id in ANNOTATIONS for node in (*others, *invisible)) > MOST_ANNOTATIONS
        or any(_holds_page(node) for node in invisible if node.tag_id in FRAMES)
        or acting(node for node in invisible if node.tag_id in STYLES)
        or any(_may_hide(node.attributes) for node in SELECTOR.find(PECULIAR_ATTRIBUTES, root))
    )


def _holds_page(node: LexborNode) -> bool:
    attributes = node.attributes
    if node.tag == "select":
        return len(node.text_lexbor()) > LONG_LIST
    return not PAGES_WITHIN.isdisjoint(attributes) or _may_hide(attributes)


def _may_hide(attributes: Mapping[str, str | None]) -> bool:
    for name, value in attributes.items():
        if name == "style":
            hides = declarations(value or "").acts or shows_text(value or "")
        elif name in ("href", "src", "srcset", "data"):
            hides = (value or "").lstrip()[:15].lower().startswith("data:" if name == "data" else PAGES_IN_ADDRESSES)
        elif name in ("alt", "value", "placeholder"):
            hides = len(value or "") > LONG_ATTRIBUTE
        elif name in HINTS:
            hides = declarations(f"{HINTS[name]}: {hinted(value or '')}").acts
        else:
            hides = name in HIDING
        if hides:
            return True
    return False


def _stripped(root: LexborNode, matched: Iterable[Sequence[LexborNode]]) -> bool:
    """Remove the nodes; False if the whole page is among them."""
    for nodes in matched:
        # Each node once, though it may match twice; children first, because removing a parent frees them.
        for node in reversed({node.mem_id: node for node in nodes}.values()):
            if node.mem_id == root.mem_id:
                return False
            node.decompose()
    return True


def _bodies(root: LexborNode, selector: str) -> list[LexborNode]:
    """The outermost nodes that match; the root if there is no selector.  Raises NoStoryText if none matches."""
    if not selector:
        return [root]
    matches = root.css(selector)
    if not matches:
        raise NoStoryText(Skip.NO_BODY)
    ids, outside = {node.mem_id for node in matches}, set[int]()
    return [node for node in matches if not _inside(node, ids, outside)]


def _inside(node: LexborNode, ids: set[int], outside: set[int]) -> bool:
    """Whether a node of `ids` is an ancestor; `outside` caches nodes that are neither in `ids` nor inside one."""
    walked, parent = [], node.parent
    while parent is not None and parent.mem_id not in outside:
        if parent.mem_id in ids:
            return True
        walked.append(parent.mem_id)
        parent = parent.parent
    outside.update(walked)
    return False
