"""The text that an element shows beside that within it: generated content, form fields, alternative texts, pages."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain

from selectolax.lexbor import LexborNode

from neardup.core.css.computed_style import LISTS, PERHAPS_SHOWN, Attributes, Values
from neardup.core.css.declarations import MARKERS, Declaration, parse_declarations
from neardup.core.css.sheets import decode_data_url

FOOTNOTE_SIGN = re.compile(r"[\W\d_]*[a-zA-Z]?[\W\d_]*")  # digits, signs or one letter
# What the value of `content` shows; behind ` / ` stands the alternative text, which is not shown.
SHOWN = re.compile(r"(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|(?! / )[^\"'])*")
# A string, or an attribute, whatever type it is said to have.
CONTENT = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|attr\(\s*([\w-]+)[^)]*\)")
ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))")
STRING = re.compile(r"\"[^\"]{20,}\"|'[^']{20,}'")
WITHOUT_TEXT = frozenset(
    ("hidden", "password", "checkbox", "radio", "color", "range", "file", "image")
)  # types of input
ADDRESSES = {
    **dict.fromkeys(("iframe", "frame", "embed"), ("src",)), "object": ("data",), "img": ("src", "srcset"),
    "source": ("srcset",), "image": ("href", "xlink:href"),
}  # fmt: skip
ANY_STRING = re.compile(r"\"[^\"]*\"|'[^']*'")
PICTURE = re.compile(r"url\(\s*[\"']?(data:image/svg[^\"')]*)")
NAMES_OF_SYMBOLS = "symbols", "prefix", "suffix"  # of which most style sheets have none: the pattern takes much longer
SYMBOLS = re.compile(r"(?:symbols|prefix|suffix)\s*:((?:\"[^\"]*\"|'[^']*'|[^;}\"'])*)", re.IGNORECASE)
PAGES = ("text/", "image/svg", "application/xhtml", "application/xml")


def read_content(value: str, attributes: Attributes) -> str:
    """The value of the property `content` -> its text."""
    return "".join(_read_strings(SHOWN.match(value)[0], attributes))  # type: ignore[index]


def _read_strings(value: str, attributes: Attributes) -> Iterator[str]:
    for double_quoted, single_quoted, name in CONTENT.findall(value):
        yield attributes.get(name) or "" if name else ESCAPE.sub(_unescape, double_quoted or single_quoted)


def _unescape(escape: re.Match[str]) -> str:
    code = int(escape[1], 16) if escape[1] else ord(escape[2])
    return chr(code) if code <= 0x10FFFF and not 0xD800 <= code < 0xE000 else "\ufffd"


def read_field(node: LexborNode, attributes: Attributes) -> str:
    """The text that a form field shows by its attributes."""
    if node.tag == "textarea":
        return "" if node.text_lexbor().strip() else attributes.get("placeholder") or ""
    if node.tag != "input" or (attributes.get("type") or "").lower() in WITHOUT_TEXT:
        return ""
    return attributes.get("value") or attributes.get("placeholder") or ""


def read_doubtful_texts(node: LexborNode, attributes: Attributes) -> Iterator[str]:
    """The texts that a browser shows in some cases: of a picture that is missing, of a list that opens, by a style."""
    for name in ("alt", "label"):
        if value := attributes.get(name):
            yield value
    style = (node.text_lexbor() if node.tag == "style" else attributes.get("style")) or ""
    for string in STRING.findall(style):
        yield read_content(string, attributes)


@lru_cache(4096)
def shows_text(style: str) -> bool:
    """Whether the value of a `style` attribute has a text that may be shown."""
    return (
        any(declaration.name in MARKERS for declaration in parse_declarations(style).items) or "data:image/svg" in style
    )


def read_markers(declared: Iterable[Declaration], attributes: Attributes) -> str:
    """The markers of lists and the quotation marks that declarations set, which may be words."""
    values = (declaration.value for declaration in declared if declaration.name in MARKERS)
    return " ".join(chain.from_iterable(_read_strings(value, attributes) for value in values))


def read_counter_signs(sheet: str) -> str:
    """The strings by which the counter styles of a style sheet count, which may be words."""
    small = sheet.lower()
    if not any(map(small.__contains__, NAMES_OF_SYMBOLS)):
        return ""
    return " ".join(
        read_content(string, {}) for symbols in SYMBOLS.findall(sheet) for string in ANY_STRING.findall(symbols)
    )


def read_page_within(node: LexborNode, attributes: Attributes) -> str:
    """The markup of the page or picture that stands in an attribute of the element; empty if there is none."""
    if node.tag == "iframe" and "srcdoc" in attributes:
        return attributes["srcdoc"] or ""
    if picture := PICTURE.search(attributes.get("style") or ""):
        found = decode_data_url(picture[1])
        return "" if found is None else found.text
    for name in ADDRESSES.get(node.tag or "", ()):
        address = attributes.get(name) or ""
        found = decode_data_url(address.split()[0] if name == "srcset" and address.strip() else address)
        if found is not None and found.kind.startswith(PAGES):
            return found.text
    return ""


def marks_footnote(superscript: LexborNode) -> bool:
    """Whether a `sup` marks a footnote, so that it is not part of a word."""
    after = superscript.next
    if after is not None and after.is_text_node and (after.text_content or " ")[0].isalpha():
        return False
    text = superscript.text_lexbor()
    return FOOTNOTE_SIGN.fullmatch(text) is not None and not any(
        unicodedata.category(character)[0] == "M" for character in text
    )


def is_aside(node: LexborNode, attributes: Attributes, values: Values) -> bool:
    """Whether what is within an element is usually not part of the text, or not shown."""
    tag = node.tag or ""
    if tag in LISTS:
        return "multiple" not in attributes and "size" not in attributes
    if tag == "sup":
        return marks_footnote(node)
    if tag == "rt" and values.get("display", "none") != "none":
        return "ruby" in values["display"]
    return tag in PERHAPS_SHOWN or _shows_data(node, attributes, values)


def _shows_data(node: LexborNode, attributes: Attributes, values: Values) -> bool:
    """Whether an element shows the document that it names, instead of its own text."""
    if node.tag == "object":
        return (attributes.get("data") or "").lstrip().lower().startswith("data:image/")
    return values.get("content", "").startswith("url(")
