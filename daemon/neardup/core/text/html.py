"""Pages to text: charset, markup, hidden parts.  Parsing is lexbor's, by selectolax."""

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
    """The parser's numbers of the tags it knows, which are the same in every document."""
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
# Called by its name, a method of several overloads takes longer to choose one than to insert.
insert_before, insert_after = (vars(LexborNode)[name]["bytes"] for name in ("insert_before", "insert_after"))
META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([a-z0-9_:.\-]+)", re.IGNORECASE)
HEADER_CHARSET = re.compile(r"charset\s*=\s*[\"']?([a-z0-9_:.\-]+)", re.IGNORECASE)
BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
PRESCAN_BYTES = 4096
BROKEN_SHARE = 0.1
MARKUP = re.compile(r"<(!doctype|html|body|p|div|article)\b", re.IGNORECASE)
NOISE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufffd\ufffe\uffff]")
NOISE_SHARE = 0.02
QUIET = bytes({*range(256)} - {*range(0x09), *range(0x0E, 0x20), 0x7F, 0xC2, 0xEF, *b"<"})  # begin no noise in UTF-8
MANY_TAGS = 4096  # a page of more takes long to parse: never twice
MOST_TAGS = 100_000  # a page of more is no story: each takes half a kilobyte of memory
BROKEN = "\ufffd"


class NoStoryText(NeardupError):
    """The page holds no story text; `reason` says why."""

    def __init__(self, reason: Skip) -> None:
        super().__init__(reason)
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
    """A page's bytes -> the text of its story, one line per block.  Raises NoStoryText."""
    selectors = "".join((extraction.body, *extraction.strip))
    if _is_plain(body) and selectors.isascii():
        text = visible_text(body.removeprefix(codecs.BOM_UTF8), extraction)
        # Where nothing is broken, it was UTF-8: decoding the markup as well would tell nothing more.
        if BROKEN not in text or decode(body, content_type) == body.decode("utf-8", "replace"):
            return text
    return _text_of(decode(body, content_type), extraction)


def file_text(body: bytes, extraction: Extraction) -> str:
    """The bytes of a page or of a plain text -> the text of its story.  Raises NoStoryText."""
    text = decode(body, None)
    return _text_of(text, extraction) if MARKUP.search(text) else text


def _text_of(html: str, extraction: Extraction) -> str:
    """The text of a page that may have any number of tags."""
    if html.count("<") > MOST_TAGS:
        raise NoStoryText(Skip.OVER_BUDGET)
    return visible_text(html, extraction)


def decode(body: bytes, content_type: str | None) -> str:
    """Bytes -> text by BOM, header, meta, then detection.  Raises NoStoryText."""
    if not body.strip():
        raise NoStoryText(Skip.EMPTY)
    text = _decoded(body, content_type)
    if len(NOISE.findall(text)) > NOISE_SHARE * len(text):
        raise NoStoryText(Skip.NOT_TEXT)
    return text


def _is_plain(body: bytes) -> bool:
    """Whether the bytes, should they be UTF-8, are sure to hold text; quick, and False where in doubt."""
    if not body or body.isspace() or b"\0" in body:
        return False
    rest = body.translate(None, QUIET)
    tags = rest.count(b"<")
    return tags <= MANY_TAGS and len(rest) - tags <= NOISE_SHARE * len(body) / 4  # a character has 4 bytes at most


def _decoded(body: bytes, content_type: str | None) -> str:
    for mark, encoding in BOMS:
        if body.startswith(mark):
            return body.decode(encoding, "replace")
    utf16 = _utf16(body[:PRESCAN_BYTES])
    if utf16 is None:
        text = body.decode("utf-8", "replace")
        if _is_utf8(text):  # whatever the labels say: text in another encoding hardly ever looks like it
            return text
    for label in _labels(body, content_type):
        try:
            return str(label.codec_info.decode(body)[0])
        except UnicodeError:
            continue
    return body.decode(utf16 or "cp1252", "replace")


def _utf16(head: bytes) -> str | None:
    """The byte order of UTF-16 without a mark: its spaces and markup are NULs at every other byte."""
    even, odd = head[::2].count(0), head[1::2].count(0)
    if max(even, odd) * 20 < len(head) or min(even, odd) * 10 > max(even, odd):
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def _is_utf8(text: str) -> bool:
    """Whether text decoded from UTF-8 was that, but for a few broken bytes."""
    broken = text.count(BROKEN)
    return not broken or broken <= BROKEN_SHARE * (len(text) - len(text.encode("ascii", "ignore")))


def _labels(body: bytes, content_type: str | None) -> Iterator[webencodings.Encoding]:
    """The encodings that header and meta name, by the names that browsers know."""
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
        # Each once, though it may match twice; children first, for a parent takes them along.
        for node in reversed({node.mem_id: node for node in nodes}.values()):
            if node.mem_id == root.mem_id:
                return ""
            node.decompose()
    return "\n".join(node.text_lexbor() for node in _bodies(root, extraction.body))


def _bodies(root: LexborNode, selector: str) -> list[LexborNode]:
    """The outermost matches; everything where no selector is set."""
    if not selector:
        return [root]
    matches = root.css(selector)
    if not matches:
        raise NoStoryText(Skip.NO_BODY)
    ids, outside = {node.mem_id for node in matches}, set[int]()
    return [node for node in matches if not _inside(node, ids, outside)]


def _inside(node: LexborNode, ids: set[int], outside: set[int]) -> bool:
    """Whether a node of `ids` holds it; `outside` remembers nodes that none holds, nor are of `ids`."""
    walked, parent = [], node.parent
    while parent is not None and parent.mem_id not in outside:
        if parent.mem_id in ids:
            return True
        walked.append(parent.mem_id)
        parent = parent.parent
    outside.update(walked)
    return False
