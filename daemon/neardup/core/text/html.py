"""Extracts the visible story text of a page, and the name of the story.

The bytes are decoded and parsed with lexbor, and hidden parts dropped: by the native core where a browser shows the
story as it is written, by Python for rarer elements, and by rendering the page where its styles act on the story.

The name, for a listing without titles, is the page's title, else its first heading.  Finding it took 18 us a page, on
the sample pages of 4 KB, of which extracting the text took 47 us.
"""

import codecs
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from neardup.core.css.generated_text import marks_footnote
from neardup.core.css.native_rendering import render_natively
from neardup.core.css.page_styles import find_style_sheets
from neardup.core.css.pieces import count_visible
from neardup.core.css.rendering import render
from neardup.core.text.decoding import REPLACEMENT, NoStoryText, decode, find_utf16_label, is_plain, read_unparsed
from neardup.core.text.extraction import Extraction
from neardup.core.text.parsing import find_matching, insert_after, insert_before, parse, parse_with_kept_parser
from neardup.core.text.scripts import Characters
from neardup.core.text.story import (
    BREAKS,
    INVISIBLE,
    SUPERSCRIPT,
    Story,
    collect_story,
    find_reason_to_render,
    read_plain_story,
)
from neardup.records import Limit, Rendering, Skip

MARKUP = re.compile(r"<(!doctype|html|body|p|div|article)\b", re.IGNORECASE)
LEAST_SHOWN = 200  # characters; a page that shows less may show a text in a way of its own,
LEAST_PAGE = 600  # if it has so many bytes of UTF-8
MOST_TAGS = 100_000  # a page with more is not a story; each tag takes half a kilobyte of memory

TITLE_BYTES = 4096  # of the page: a title is in its head, and a heading stands before the story
MOST_TITLE_CHARACTERS = 300
OPENING_WORDS = 10
TITLES = "head > title", "h1", "h2", "h3"
HEAD_END = re.compile(rb"</head|<body", re.IGNORECASE)  # most titles stand before it, where parsing costs little
NAMED = re.compile(rb"<(title|h[123])\b", re.IGNORECASE)
# A head in which no parser is needed to find the title: only elements without content stand before it.
SPACE = r"[\t\n\f\r ]"
ATTRIBUTES = rf"""(?:{SPACE}+[a-z:_-]+(?:="[^"<>]*"|='[^'<>]*'|=[^\s"'<>=`]+)?)*{SPACE}*/?>{SPACE}*"""
PLAIN_TITLE = re.compile(
    rf"{SPACE}*(?:<!doctype html>{SPACE}*)?(?:<html{ATTRIBUTES})?(?:<head{ATTRIBUTES})?"
    rf"(?:<(?:meta|link){ATTRIBUTES})*<title>([^<&]*)</title>",
    re.IGNORECASE | re.ASCII,
)
# Control characters, and code points that are no characters, which terminals and file formats cannot show.
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")


class Extracted(NamedTuple):
    """The text of a story in UTF-8, a line for each block, and the limit because of which it is not all that is shown.

    `hidden` is the share of the story's characters that a browser does not show, and `rendered` why the story was
    rendered, and by what; None if that was not needed.  `counts` are those of the characters, if they are known; then
    none is a replacement character, and none overrides the direction.
    """

    utf8: bytes
    limit: Limit | None = None
    hidden: float = 0.0
    rendered: Rendering | None = None
    counts: Characters | None = None

    @property
    def text(self) -> str:
        return self.utf8.decode()


def extract_page_text(body: bytes, content_type: str | None, extraction: Extraction) -> str:
    """A page's bytes -> the text of its story.  Raises NoStoryText."""
    return extract_page(body, content_type, extraction).text


def extract_page(body: bytes, content_type: str | None, extraction: Extraction) -> Extracted:
    """A page's bytes -> its story.  Raises NoStoryText."""
    selectors = "".join((extraction.body, *extraction.strip))
    if is_plain(body) and selectors.isascii() and find_utf16_label(content_type) is None:
        found = extract_markup(body.removeprefix(codecs.BOM_UTF8), extraction)
        # Text without replacement characters was UTF-8, so there is no need to decode the markup as well.
        if (
            found.counts is not None
            or REPLACEMENT.encode() not in found.utf8
            or decode(body, content_type) == body.decode("utf-8", "replace")
        ):
            return found
    return _read_markup(decode(body, content_type), extraction)


def extract_file(body: bytes, extraction: Extraction) -> Extracted:
    """The bytes of a page or of a plain text -> its story.  Raises NoStoryText."""
    text = decode(body, None)
    return _read_markup(text, extraction) if MARKUP.search(text) else Extracted(text.encode())


def _read_markup(html: str, extraction: Extraction) -> Extracted:
    if html.count("<") > MOST_TAGS:
        return Extracted(read_unparsed(html).encode(), Limit.TAGS)
    return extract_markup(html, extraction)


def extract_visible_text(html: str | bytes, extraction: Extraction) -> str:
    """Markup (bytes are UTF-8) -> visible text of the story, with line breaks between blocks.  Raises NoStoryText."""
    return extract_markup(html, extraction).text


def extract_markup(html: str | bytes, extraction: Extraction) -> Extracted:
    """Markup (bytes are UTF-8) -> the story that a browser shows.  Raises NoStoryText."""
    page = html if isinstance(html, bytes) else html.encode(errors="replace")
    root = parse_with_kept_parser(page) or parse(page)
    if root is None:
        raise NoStoryText(Skip.EMPTY)
    if not _strip(root, extraction.strip):
        return Extracted(b"")
    bodies = _find_bodies(root, extraction.body)
    if (found := _read_plainly(root, bodies, page)) is not None:
        return found
    story = collect_story(bodies)
    if reason := find_reason_to_render(root, story, html):
        return _render(root, story, reason)
    text = _read_plain_text(story)
    if not _is_nearly_empty(text):
        return Extracted(text.encode())
    rendered = _render_nearly_empty(html, extraction)
    if rendered is None:
        return Extracted(text.encode())
    is_longer = len(rendered.text.split()) > len(text.split())
    return rendered if is_longer else Extracted(text.encode(), rendered=rendered.rendered)


def _read_plainly(root: LexborNode, bodies: Sequence[LexborNode], html: bytes) -> Extracted | None:
    """The story, if the native core can read it, and it is no page that shows next to nothing."""
    story = read_plain_story(root, bodies, html)
    if story is None:
        return None
    counts = Characters(*story.counts)
    if counts.length < 10 * LEAST_SHOWN and len(html) >= LEAST_PAGE and _is_nearly_empty(story.text.decode()):
        return None
    return Extracted(story.text, counts=counts)


def _read_plain_text(story: Story) -> str:
    """The text of a story that a browser shows as it is written.  It changes the elements.  Raises NoStoryText."""
    bodies = _find_seen_bodies(story)
    for node in story.breaks:
        insert_before(node, b"\n")
        insert_after(node, b"\n")
    annotations = [node for node in story.others if node.tag_id in SUPERSCRIPT and marks_footnote(node)]
    for node in reversed([*story.invisible, *annotations]):
        node.decompose()
    return "\n".join(body.text_lexbor() for body in bodies)


def _find_seen_bodies(story: Story) -> list[LexborNode]:
    """The outermost elements that stand in none that browsers do not show."""
    invisible = {node.mem_id for node in (*story.around.values(), *story.bodies) if node.tag_id in INVISIBLE}
    outside = set[int]()
    bodies = [
        node for node in story.bodies if node.mem_id not in invisible and not _is_inside(node, invisible, outside)
    ]
    if not bodies:
        raise NoStoryText(Skip.NO_BODY)
    return bodies


def _render_nearly_empty(html: str | bytes, extraction: Extraction) -> Extracted | None:
    """The story of a page that shows next to nothing, rendered; None if there is too little of it."""
    if _is_short(html) or (root := parse(html)) is None or not _strip(root, extraction.strip):
        return None
    story = collect_story(_find_bodies(root, extraction.body))
    if extraction.body and all(_is_short(body.html or "") for body in story.bodies):
        return None
    return _render(root, story, "little text")


def _is_short(html: str | bytes) -> bool:
    return len(html) < LEAST_PAGE and (isinstance(html, bytes) or len(html.encode(errors="replace")) < LEAST_PAGE)


def _is_nearly_empty(text: str) -> bool:
    if len(text) >= 10 * LEAST_SHOWN or count_visible(text[: 2 * LEAST_SHOWN]) >= LEAST_SHOWN:
        return False
    return count_visible(text) < LEAST_SHOWN


def _render(root: LexborNode, story: Story, reason: str) -> Extracted:
    if (found := render_natively(root, story.bodies, find_style_sheets(root))) is not None:
        return Extracted(found.utf8, None, found.hidden, Rendering(reason, "native"), Characters(*found.counts))
    text, is_whole, hidden = render(root, story)
    return Extracted(text.encode(), None if is_whole else Limit.NESTING, hidden, Rendering(reason, "python"))


def _strip(root: LexborNode, selectors: Iterable[str]) -> bool:
    """Remove what the selectors match, and leave line breaks for blocks; False if the whole page is among it."""
    for selector in selectors:
        # Each node once, though it may match twice; children first, because removing a parent frees them.
        for node in reversed({node.mem_id: node for node in find_matching(selector, root)}.values()):
            if node.mem_id == root.mem_id:
                return False
            if node.tag_id in BREAKS:
                insert_before(node, b"\n")
                insert_after(node, b"\n")
            node.decompose()
    return True


def _find_bodies(root: LexborNode, selector: str) -> list[LexborNode]:
    """The outermost nodes that match; the root if there is no selector.  Raises NoStoryText if none matches."""
    if not selector:
        return [root]
    matches = {node.mem_id: node for node in find_matching(selector, root)}  # each once, though it may match twice
    if not matches:
        raise NoStoryText(Skip.NO_BODY)
    ids, outside = set(matches), set[int]()
    return [node for node in matches.values() if not _is_inside(node, ids, outside)]


def _is_inside(node: LexborNode, ids: set[int], outside: set[int]) -> bool:
    """Whether a node of `ids` is an ancestor; `outside` caches nodes that are neither in `ids` nor inside one."""
    walked, parent = [], node.parent
    while parent is not None and parent.mem_id not in outside:
        if parent.mem_id in ids:
            return True
        walked.append(parent.mem_id)
        parent = parent.parent
    outside.update(walked)
    return False


def find_title(body: bytes, content_type: str | None) -> str | None:
    """The title of a page, or else its first heading, on one line; None if the start of the page has neither."""
    start, _, _ = body[:TITLE_BYTES].rpartition(b"<")  # so that no character is cut
    if b"\0" in start:  # UTF-16, in which the ends of tags are spelled otherwise
        return _find_first(TITLES, start, content_type)
    end = HEAD_END.search(start)
    head = _find_first(TITLES[:1], start[: end.start()], content_type) if end else None
    return head or (_find_first(TITLES, start, content_type) if NAMED.search(start) else None)


def _find_first(selectors: Sequence[str], markup: bytes, content_type: str | None) -> str | None:
    """The text of the first element of the first selector that matches an element with text."""
    try:
        html = decode(markup, content_type)
    except NoStoryText:
        return None
    if (plain := PLAIN_TITLE.match(html)) and (title := _join_lines(plain[1])):
        return title
    root = parse_with_kept_parser(html.encode(), scripting=False) or LexborHTMLParser(html).root
    if root is None:
        return None
    return next(filter(None, (_read_node_text(root.css_first(selector)) for selector in selectors)), None)


def cut_opening(text: str) -> str:
    """The first words of a story."""
    return _join_lines(" ".join(text.split(None, OPENING_WORDS)[:OPENING_WORDS]))


def _read_node_text(node: LexborNode | None) -> str | None:
    return None if node is None else _join_lines(node.text_lexbor()) or None


def _join_lines(text: str) -> str:
    return " ".join(UNPRINTABLE.sub(" ", text).split())[:MOST_TITLE_CHARACTERS].rstrip()
