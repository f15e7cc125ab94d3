"""Extracts the visible story text of a page: decodes it, parses it with lexbor and drops hidden parts."""

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import webencodings
from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from neardup.errors import NeardupError
from neardup.records import Skip


def _tag_ids(names: str) -> frozenset[int]:
    """Tag names, separated by spaces -> the parser's ids of these tags, which are the same in every document."""
    document = LexborHTMLParser("")
    return frozenset(document.create_node(name).tag_id for name in names.split())


INVISIBLE = _tag_ids(
    "audio button canvas datalist head iframe noembed noframes noscript object rp script select style svg template"
    " textarea title video"
)
HIDDEN = (
    '[hidden], [style*="display:none" i], [style*="display: none" i],'
    ' [style*="visibility:hidden" i], [style*="visibility: hidden" i]'
)
BLOCKS = _tag_ids(
    "address article aside blockquote br caption center dd details dialog dir div dl dt fieldset figcaption figure"
    " footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li listing main menu nav ol optgroup option p plaintext"
    " pre search section summary table td th tr ul xmp"
)
# Choosing among the overloads of these methods takes longer than the insertion, so the overloads are called directly.
insert_before, insert_after = (vars(LexborNode)[name]["bytes"] for name in ("insert_before", "insert_after"))
META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([a-z0-9_:.\-]+)", re.IGNORECASE)
HEADER_CHARSET = re.compile(r"charset\s*=\s*[\"']?([a-z0-9_:.\-]+)", re.IGNORECASE)
BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
PRESCAN_BYTES = 4096
MAX_BROKEN_SHARE = 0.1
MARKUP = re.compile(r"<(!doctype|html|body|p|div|article)\b", re.IGNORECASE)
NOISE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufffd\ufffe\uffff]")
MAX_NOISE_SHARE = 0.02
QUIET = bytes(
    {*range(256)} - {*range(0x09), *range(0x0E, 0x20), 0x7F, 0xC2, 0xEF, *b"<"}
)  # no NOISE in UTF-8 begins with these bytes, nor does a tag
MANY_TAGS = 4096  # a page with more takes so long to parse that it must not be parsed twice
MOST_TAGS = 100_000  # a page with more is not a story; each tag takes half a kilobyte of memory
REPLACEMENT = "\ufffd"  # decoding replaces invalid bytes with it


class NoStoryText(NeardupError):
    """The page has no story text; `reason` says why."""

    def __init__(self, reason: Skip) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Extraction:
    """The part of a page that is the story: a CSS selector ("" for the whole body), and selectors to remove."""

    body: str = ""
    strip: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Raises ValueError for a selector that does not parse."""
        empty = LexborHTMLParser("<p>")
        for selector in filter(None, (self.body, *self.strip)):
            try:
                empty.css(selector)
            except SelectolaxError as error:
                raise ValueError(f"not a CSS selector: {selector!r}") from error


def page_text(body: bytes, content_type: str | None, extraction: Extraction) -> str:
    """A page's bytes -> the text of its story, one line per block.  Raises NoStoryText."""
    selectors = "".join((extraction.body, *extraction.strip))
    if _is_plain(body) and selectors.isascii():
        text = visible_text(body.removeprefix(codecs.BOM_UTF8), extraction)
        # Text without replacement characters was UTF-8, so there is no need to decode the markup as well.
        if REPLACEMENT not in text or decode(body, content_type) == body.decode("utf-8", "replace"):
            return text
    return _text_of(decode(body, content_type), extraction)


def file_text(body: bytes, extraction: Extraction) -> str:
    """The bytes of a page or of a plain text -> the text of its story.  Raises NoStoryText."""
    text = decode(body, None)
    return _text_of(text, extraction) if MARKUP.search(text) else text


def _text_of(html: str, extraction: Extraction) -> str:
    """Markup -> visible text.  Raises NoStoryText, also for a page with more than MOST_TAGS tags."""
    if html.count("<") > MOST_TAGS:
        raise NoStoryText(Skip.OVER_BUDGET)
    return visible_text(html, extraction)


def decode(body: bytes, content_type: str | None) -> str:
    """Bytes -> text, by BOM, detection of UTF-8 and UTF-16, header, then meta.  Raises NoStoryText."""
    if not body.strip():
        raise NoStoryText(Skip.EMPTY)
    text = _decoded(body, content_type)
    if len(NOISE.findall(text)) > MAX_NOISE_SHARE * len(text):
        raise NoStoryText(Skip.NOT_TEXT)
    return text


def _is_plain(body: bytes) -> bool:
    """Whether the bytes, if they are UTF-8, are certainly text with few tags; fast, and False in doubt."""
    if not body or body.isspace() or b"\0" in body:
        return False
    rest = body.translate(None, QUIET)
    tags = rest.count(b"<")
    return tags <= MANY_TAGS and len(rest) - tags <= MAX_NOISE_SHARE * len(body) / 4  # a character has at most 4 bytes


def _decoded(body: bytes, content_type: str | None) -> str:
    for mark, encoding in BOMS:
        if body.startswith(mark):
            return body.decode(encoding, "replace")
    utf16 = _utf16(body[:PRESCAN_BYTES])
    if utf16 is None:
        text = body.decode("utf-8", "replace")
        if _is_utf8(text):  # whatever the labels say: text in another encoding is hardly ever valid UTF-8
            return text
    for label in _labels(body, content_type):
        try:
            return str(label.codec_info.decode(body)[0])
        except UnicodeError:
            continue
    return body.decode(utf16 or "cp1252", "replace")


def _utf16(head: bytes) -> str | None:
    """The codec of UTF-16 without a BOM, in which spaces and markup have a NUL at every other byte; None for others."""
    even, odd = head[::2].count(0), head[1::2].count(0)
    if max(even, odd) * 20 < len(head) or min(even, odd) * 10 > max(even, odd):
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def _is_utf8(text: str) -> bool:
    """Whether the decoded bytes were UTF-8, apart from a few broken ones."""
    broken = text.count(REPLACEMENT)
    return not broken or broken <= MAX_BROKEN_SHARE * (len(text) - len(text.encode("ascii", "ignore")))


def _labels(body: bytes, content_type: str | None) -> Iterator[webencodings.Encoding]:
    """The encodings named in the header and in the meta tag, by the labels that browsers accept."""
    header = HEADER_CHARSET.search(content_type or "")
    meta = META_CHARSET.search(body[:PRESCAN_BYTES])
    for label in (header and header[1], meta and meta[1].decode()):
        encoding = webencodings.lookup(label or "")
        if encoding is not None:
            yield encoding


def visible_text(html: str | bytes, extraction: Extraction) -> str:
    """Markup (bytes are UTF-8) -> visible text of the story, with line breaks between blocks.  Raises NoStoryText."""
    root = LexborHTMLParser(html).root
    if root is None:
        raise NoStoryText(Skip.EMPTY)
    invisible = []
    for node in root.traverse():
        tag = node.tag_id
        if tag in BLOCKS:
            insert_before(node, b"\n")
            insert_after(node, b"\n")
        elif tag in INVISIBLE:
            invisible.append(node)
    for nodes in chain([invisible], map(root.css, (HIDDEN, *extraction.strip))):
        # Each node once, though it may match twice; children first, because removing a parent frees them.
        for node in reversed({node.mem_id: node for node in nodes}.values()):
            if node.mem_id == root.mem_id:
                return ""
            node.decompose()
    return "\n".join(node.text_lexbor() for node in _bodies(root, extraction.body))


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
