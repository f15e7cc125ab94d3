"""Parses a page as a browser does."""

from selectolax.lexbor import LexborHTMLParser, LexborNode


def parsed(html: str | bytes) -> LexborNode | None:
    """Markup (bytes are UTF-8) -> its root, if it has one.

    What stands in `noscript` is one text, as in a browser that runs scripts; otherwise an unclosed element in it would
    hold all that comes after it.
    """
    return LexborHTMLParser(html, scripting=True).root
