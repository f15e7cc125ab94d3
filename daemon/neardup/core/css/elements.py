"""How a browser displays an element, by its tag and its value of `display`: as a block, in a line, or not at all."""

from neardup.core.css.cascade import Attributes
from neardup.core.css.computed_style import Values

BLOCKS = frozenset((
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "dir",
    "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6",
    "header", "hgroup", "hr", "html", "legend", "li", "listing", "main", "menu", "nav", "ol", "optgroup",
    "option", "p", "plaintext", "pre", "search", "section", "summary", "table", "td", "th", "tr", "ul", "xmp",
))  # fmt: skip
# Not shown, unless their style displays them.
NOT_SHOWN = frozenset((
    "area", "base", "datalist", "head", "link", "meta", "noembed", "noframes", "param", "rp", "script", "style",
    "title", "defs", "desc", "metadata", "symbol", "clippath", "annotation", "annotation-xml",
))  # fmt: skip
NEVER_SHOWN = frozenset(("audio", "canvas", "meter", "noscript", "progress", "template", "video"))  # by any style
DRAWINGS = frozenset(("svg", "math"))  # they show only the text of DRAWN_TEXTS
DRAWN_TEXTS = frozenset(("text", "foreignobject", "mtext", "mi", "mn", "mo", "ms"))
PERHAPS_SHOWN = frozenset(("rt", "defs", "symbol"))  # beside a text, in small letters, or in another place
LISTS = frozenset(("select",))
CONTROLS = frozenset(("button", "textarea", "input"))
# A shadow tree may stand in these and in custom elements, whose names have a hyphen; NOT_HOSTS are none (DOM 4.8).
HOSTS = frozenset((
    "article", "aside", "blockquote", "body", "div", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "main",
    "nav", "p", "section", "span",
))  # fmt: skip
NOT_HOSTS = frozenset((
    "annotation-xml", "color-profile", "font-face", "font-face-src", "font-face-uri", "font-face-format",
    "font-face-name", "missing-glyph",
))  # fmt: skip
# The values of `display` that break the line.
BREAKING = frozenset((
    "block", "flex", "grid", "table", "table-row", "table-cell", "table-caption", "list-item", "flow-root",
    "-webkit-box",
))  # fmt: skip


def find_display(tag: str, attributes: Attributes, values: Values) -> str:
    """The value of `display` that an element has, by its cascaded values or by its tag."""
    display = values.get("display", "none" if "hidden" in attributes else "revert")
    if display == "revert":
        return _find_display_without_styles(tag, attributes)
    if tag == "html" and display != "none":
        return "block"
    return "inline-block" if display == "inline" and tag in CONTROLS else display


def _find_display_without_styles(tag: str, attributes: Attributes) -> str:
    if tag in NOT_SHOWN or "popover" in attributes or (tag == "dialog" and "open" not in attributes):
        return "none"
    return "block" if tag in BLOCKS else "inline-block" if tag in CONTROLS else "inline"


def may_be_host(tag: str) -> bool:
    """Whether a shadow tree may stand in the markup of an element."""
    return tag in HOSTS or ("-" in tag and tag not in NOT_HOSTS)


def is_block(display: str) -> bool:
    """Whether it breaks the line that it stands in."""
    words = display.split()
    return "inline" not in words and not BREAKING.isdisjoint(words)
