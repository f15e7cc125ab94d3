"""Pages to text: charset, markup, hidden parts.  Parsing is lexbor's, by selectolax."""

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass

import charset_normalizer
from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from daemon.records import Skip

INVISIBLE = (
    "head, script, style, template, noscript, iframe, object, svg, select, textarea, button, [hidden],"
    ' [style*="display:none" i], [style*="display: none" i],'
    ' [style*="visibility:hidden" i], [style*="visibility: hidden" i]'
)
BLOCKS = (
    "address, article, aside, blockquote, br, caption, center, dd, details, dialog, div, dl, dt, fieldset,"
    " figcaption, figure, footer, form, h1, h2, h3, h4, h5, h6, header, hr, legend, li, main, menu, nav, ol,"
    " option, p, pre, section, summary, table, td, th, tr, ul"
)
META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([a-z0-9_:.\-]+)", re.IGNORECASE)
HEADER_CHARSET = re.compile(r"charset\s*=\s*[\"']?([^\s\"';]+)", re.IGNORECASE)
BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
# Labels under which any bytes at all decode, so that they prove nothing against valid UTF-8.
SINGLE_BYTE_LABELS = {"iso8859-1": "cp1252", "ascii": "cp1252", "cp1252": "cp1252"}
PRESCAN_BYTES = 4096
DETECTION_BYTES = 65536
NOISE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufffd\ufffe\uffff]")
NOISE_SHARE = 0.02


class Unreadable(Exception):
    """The page holds no story text; `reason` says why."""

    def __init__(self, reason: Skip) -> None:
        super().__init__(reason.value)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Extraction:
    """What of a page is the story: a CSS selector ("" is the whole body), and selectors to strip."""

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
    """A page's bytes -> the text of its story, one line per block.  Raises Unreadable."""
    return visible_text(decode(body, content_type), extraction)


def decode(body: bytes, content_type: str | None) -> str:
    """Bytes -> text by BOM, header, meta, then detection.  Raises Unreadable."""
    if not body.strip():
        raise Unreadable(Skip.EMPTY)
    text = body.decode(_charset(body, content_type), errors="replace")
    if len(NOISE.findall(text)) > NOISE_SHARE * len(text):
        raise Unreadable(Skip.NOT_TEXT)
    return text


def _charset(body: bytes, content_type: str | None) -> str:
    for mark, encoding in BOMS:
        if body.startswith(mark):
            return encoding
    utf8 = _decodes(body, "utf-8") and b"\0" not in body
    header = HEADER_CHARSET.search(content_type or "")
    meta = META_CHARSET.search(body[:PRESCAN_BYTES])
    for label in (header and header[1], meta and meta[1].decode()):
        try:
            encoding = codecs.lookup(label or "").name
            if encoding in SINGLE_BYTE_LABELS and utf8:
                return "utf-8"
            encoding = SINGLE_BYTE_LABELS.get(encoding, encoding)
            if encoding.startswith("utf-16") and meta and label == meta[1].decode():
                continue  # a meta tag that could be read as ASCII does not stand in a UTF-16 page
            if _decodes(body, encoding):
                return encoding
        except LookupError:
            continue
    return "utf-8" if utf8 else _detected(body)


def _decodes(body: bytes, encoding: str) -> bool:
    try:
        body.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return False
    return True


def _detected(body: bytes) -> str:
    head = body[:PRESCAN_BYTES]
    if head.count(0) > len(head) // 4:  # ASCII markup in UTF-16 is half NULs
        return "utf-16-le" if head[1::2].count(0) > head[::2].count(0) else "utf-16-be"
    best = charset_normalizer.from_bytes(body[:DETECTION_BYTES]).best()
    return best.encoding if best else "utf-8"


def visible_text(html: str, extraction: Extraction) -> str:
    """Markup -> visible text of the story, with line breaks between blocks.  Raises Unreadable."""
    tree = LexborHTMLParser(html)
    root = tree.root
    if root is None:
        raise Unreadable(Skip.EMPTY)
    for selector in (INVISIBLE, *extraction.strip):
        for node in root.css(selector):
            node.decompose()
    for node in root.css(BLOCKS):
        node.insert_before("\n")
        node.insert_after("\n")
    return "\n".join(node.text(separator="") for node in _bodies(root, extraction.body))


def _bodies(root: LexborNode, selector: str) -> list[LexborNode]:
    """The outermost matches; everything where no selector is set."""
    if not selector:
        return [root]
    matches = root.css(selector)
    if not matches:
        raise Unreadable(Skip.NO_BODY)
    ids = {node.mem_id for node in matches}
    return [node for node in matches if not _inside(node, ids)]


def _inside(node: LexborNode, ids: set[int]) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.mem_id in ids:
            return True
        parent = parent.parent
    return False
