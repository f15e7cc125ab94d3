"""Parses a page as a browser does, and finds its elements by selectors."""

from selectolax.lexbor import LexborCSSSelector, LexborHTMLParser, LexborNode

# One for all pages: `node.css` makes one for each page, which takes 2 us.
SELECTOR = LexborCSSSelector()  # type: ignore[no-untyped-call]
# Choosing among the overloads of these methods takes longer than the insertion, so the overloads are called directly.
insert_before, insert_after = (vars(LexborNode)[name]["bytes"] for name in ("insert_before", "insert_after"))


def parsed(html: str | bytes) -> LexborNode | None:
    """Markup (bytes are UTF-8) -> its root, if it has one.

    What stands in `noscript` is one text, as in a browser that runs scripts; otherwise an unclosed element in it would
    hold all that comes after it.
    """
    return LexborHTMLParser(html, scripting=True).root


def matching(selector: str, within: LexborNode) -> list[LexborNode]:
    """The elements that a selector matches among an element and those within it; one may be there twice.

    What the selector says of other elements is looked for in the whole page.  Raises SelectolaxError for what is no
    selector, and UnicodeEncodeError for one with half a character, which an escape may stand for.
    """
    return SELECTOR.find(selector, within)
