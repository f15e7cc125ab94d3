"""Bytes of a page -> its text, in whatever encoding it is; also whether it is text at all.

Where a parser takes too long, `read_unparsed` reads a page without one, in time linear in its length.  No selector
applies then, and hidden text counts as shown.  A comment, script or style that does not end is read as text, so that it
cannot hide the story.  Texts in like elements form a layer (see `core.css.computed_style`): some of them may be hidden.
"""

import codecs
import html
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

import webencodings

from neardup.core.css.computed_style import BLOCKS, Layer, choose_layers_apart
from neardup.core.css.pieces import Piece, Text, count_visible, write_text
from neardup.core.native import in_c
from neardup.core.native.page import is_plain_page
from neardup.errors import NeardupError
from neardup.records import Skip

META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([a-z0-9_:.\-]+)", re.IGNORECASE)
HEADER_CHARSET = re.compile(r"charset\s*=\s*[\"']?([a-z0-9_:.\-]+)", re.IGNORECASE)
TAG = re.compile(rb"<(?:[a-z]{3}|[!/][a-z])", re.IGNORECASE)
BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
ESCAPE = b"\x1b("
PRESCAN_BYTES = 4096
MAX_BROKEN_SHARE = 0.1
NOISE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufffd\ufffe\uffff]")
MAX_NOISE_SHARE = 0.02
MAX_CONTROL_SHARE = 0.8
QUIET = bytes(
    {*range(256)} - {*range(0x09), *range(0x0E, 0x20), 0x7F, 0xC2, 0xEF, *b"<"}
)  # no NOISE in UTF-8 begins with these bytes, nor does a tag
MANY_TAGS = 4096  # a page with more takes so long to parse that it must not be parsed twice
REPLACEMENT = "\ufffd"  # decoding replaces invalid bytes with it

MOST_CHARACTERS = 1_000_000  # of text: its fingerprint is within every budget
MOST_LAYERED = 150_000  # tags; each takes 5 microseconds
MOST_OPEN = 50  # open elements that are known
LONGEST_TAG = 200  # characters of a tag by which it is like another one
JUNK = (("<!--", "-->"), (r"<script\b", r"</script\b[^>]*>?"), (r"<style\b", r"</style\b[^>]*>?"))
REST = r"(?:[^>\"']|\"[^\"]*\"|'[^']*')*+>?"  # of a tag
BREAKS = re.compile(rf"</?(?:br|{'|'.join(sorted(BLOCKS, key=len, reverse=True))})\b{REST}", re.IGNORECASE)
TAGS = re.compile(rf"</?[a-z]{REST}|<!--|<[!?][^>]*>?", re.IGNORECASE)
TAG_NAME = re.compile(r"</?([a-z][^\s/>]*)", re.IGNORECASE)
EMPTY = frozenset(
    ("br", "hr", "img", "input", "wbr", "meta", "link", "area", "base", "col", "embed", "param", "source")
)


class NoStoryText(NeardupError):
    """The page has no story text; `reason` says why."""

    def __init__(self, reason: Skip) -> None:
        super().__init__(reason)
        self.reason = reason


def decode(body: bytes, content_type: str | None) -> str:
    """Bytes -> text, by BOM, a header of UTF-16, detection of UTF-8 and UTF-16, another header, then meta.

    Raises NoStoryText.
    """
    if not body.strip():
        raise NoStoryText(Skip.EMPTY)
    text = _decode(body, content_type)
    most = MAX_NOISE_SHARE if REPLACEMENT in text else MAX_CONTROL_SHARE  # binary data is hardly ever valid UTF-8
    if len(NOISE.findall(text)) > most * len(text):
        raise NoStoryText(Skip.NOT_TEXT)
    return text


def _native_is_plain(body: bytes) -> bool:
    return is_plain_page(body, MANY_TAGS)


@in_c(_native_is_plain)
def is_plain(body: bytes) -> bool:
    """Whether the bytes, if they are UTF-8, are certainly text with few tags; fast, and False in doubt."""
    if not body or body.isspace() or b"\0" in body:
        return False
    rest = body.translate(None, QUIET)
    tags = rest.count(b"<")
    return tags <= MANY_TAGS and len(rest) - tags <= MAX_NOISE_SHARE * len(body) / 4  # a character has at most 4 bytes


def _decode(body: bytes, content_type: str | None) -> str:
    if (text := _decode_as_named(body, content_type)) is not None:
        return text
    utf16 = _detect_utf16(body[:PRESCAN_BYTES])
    if utf16 is None:
        text = body.decode("utf-8", "replace")
        if _is_utf8(body, text):  # whatever the labels say: text in another encoding is hardly ever valid UTF-8
            return text
    for label in _find_labels(body, content_type):
        try:
            return str(label.codec_info.decode(body)[0])
        except UnicodeError:
            continue
    return body.decode(utf16 or "cp1252", "replace")


def _decode_as_named(body: bytes, content_type: str | None) -> str | None:
    """The text in an encoding that is named, and whose bytes may be valid UTF-8; None if there is none."""
    for mark, encoding in BOMS:
        if body.startswith(mark):
            return body.decode(encoding, "replace")
    if ESCAPE in body:
        for label in _find_labels(body, content_type):
            if label.name == "iso-2022-jp":  # whose bytes are valid UTF-8, with signs that are not shown
                return str(label.codec_info.decode(body, "replace")[0])
    if (wide := find_utf16_label(content_type)) is not None:
        text = str(wide.codec_info.decode(body, "replace")[0])
        if "<" in text or not TAG.search(body[:PRESCAN_BYTES]):
            return text
    return None


def _detect_utf16(head: bytes) -> str | None:
    """The codec of UTF-16 without a BOM, in which spaces and markup have a NUL at every other byte; None for others."""
    if TAG.search(head):  # in UTF-16 the letters of a tag are not adjacent
        return None
    even, odd = head[::2].count(0), head[1::2].count(0)
    if max(even, odd) * 20 < len(head) or min(even, odd) * 10 > max(even, odd):
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def _is_utf8(body: bytes, text: str) -> bool:
    """Whether the bytes, decoded to this text, were UTF-8, apart from a few broken ones."""
    broken = text.count(REPLACEMENT) - body.count(REPLACEMENT.encode())
    return not broken or broken <= MAX_BROKEN_SHARE * (len(text) - len(text.encode("ascii", "ignore")))


@lru_cache(64)
def find_utf16_label(content_type: str | None) -> webencodings.Encoding | None:
    """The encoding of UTF-16 that the header names, if it does: such text may be valid ASCII, or UTF-8."""
    label = next(_find_labels(b"", content_type), None)
    return label if label is not None and label.name.startswith("utf-16") else None


def _find_labels(body: bytes, content_type: str | None) -> Iterator[webencodings.Encoding]:
    """The encodings named in the header and in the meta tag, by the labels that browsers accept."""
    header = HEADER_CHARSET.search(content_type or "")
    metas = META_CHARSET.findall(body[:PRESCAN_BYTES])
    for label in (header and header[1], *(meta.decode() for meta in metas)):
        encoding = webencodings.lookup(label or "")
        if encoding is not None:
            yield encoding


def read_unparsed(markup: str) -> str:
    """Markup -> its text outside tags, with line breaks between blocks, up to MOST_CHARACTERS."""
    for begin, end in JUNK:
        # a search for an end that is not there would be repeated at each beginning
        after = max((found.end() for found in re.finditer(end, markup, re.IGNORECASE)), default=0)
        markup = re.sub(f"{begin}.*?{end}", "", markup[:after], flags=re.IGNORECASE | re.DOTALL) + markup[after:]
    if markup.count("<") > MOST_LAYERED:
        return html.unescape(TAGS.sub("", BREAKS.sub("\n", markup)))[:MOST_CHARACTERS]
    pieces, characters = _read_elements(markup)
    texts = [write_text(pieces), *(write_text(pieces, layers) for layers in choose_layers_apart(characters))]
    return "\n".join(texts)[:MOST_CHARACTERS]


def _read_elements(markup: str) -> tuple[list[Piece], Counter[Layer]]:
    """The texts of a page, each in the layer of the innermost element around it, and the characters of the layers."""
    pieces: list[Piece] = []
    characters: Counter[Layer] = Counter()
    around: list[tuple[str, Layer]] = [("", frozenset([""]))]  # the names of the open elements, and their layers
    start = 0
    for tag in (*TAGS.finditer(markup), None):
        if text := html.unescape(markup[start : tag.start() if tag else len(markup)]):
            layer = around[-1][1]
            pieces.append(Text(text, layer, takes_room=True))
            characters[layer] += count_visible(text)
        if tag:
            start = tag.end()
            pieces.append("\n" if BREAKS.match(tag[0]) else "")
            _open_or_close(tag[0], around)
    return pieces, characters


def _open_or_close(tag: str, around: list[tuple[str, Layer]]) -> None:
    found = TAG_NAME.match(tag)
    name = found[1].lower() if found else ""
    if tag.startswith("</"):
        place = next((n for n in reversed(range(len(around))) if around[n][0] == name), 0)
        del around[place or len(around) :]
    elif name and name not in EMPTY:
        around.append((name, frozenset([tag[:LONGEST_TAG]])))
        del around[1 : len(around) - MOST_OPEN]
