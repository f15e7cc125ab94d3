"""Parses a page as a browser does, and finds its elements by selectors."""

import re
import threading

from selectolax.lexbor import LexborCSSSelector, LexborHTMLParser, LexborNode

from neardup.core.native.page import WHY_UNUSABLE, KeptParser

# One for all pages: `node.css` makes one for each page, which takes 2 us.
SELECTOR = LexborCSSSelector()  # type: ignore[no-untyped-call]
# Choosing among the overloads of these methods takes longer than the insertion, so the overloads are called directly.
insert_before, insert_after = (vars(LexborNode)[name]["bytes"] for name in ("insert_before", "insert_after"))
USUAL, NO_DOCTYPE = "<!doctype html>", ""
# What a page begins with, after white space: the usual doctype, or markup that may be another doctype or precede one.
OPENING = re.compile(rb"[\t\n\f\r ]*(?:(<!doctype html>)|(<[!?/]))?", re.IGNORECASE)
MOST_KEPT = 1 << 18  # bytes of a page; a larger one would leave a parser with much memory


class _Parsers(threading.local):
    """The parsers of a thread, by their doctype and whether scripts run."""

    def __init__(self) -> None:
        self.kept = {
            (doctype, scripting): KeptParser(doctype, scripting=scripting)
            for doctype in (USUAL, NO_DOCTYPE)
            for scripting in (True, False)
        }


_parsers = _Parsers() if WHY_UNUSABLE is None else None


def parse(html: str | bytes) -> LexborNode | None:
    """Markup (bytes are UTF-8) -> its root, if it has one.

    What stands in `noscript` is one text, as in a browser that runs scripts; otherwise an unclosed element in it would
    hold all that comes after it.
    """
    return LexborHTMLParser(html, scripting=True).root


def find_matching(selector: str, within: LexborNode) -> list[LexborNode]:
    """The elements that a selector matches among an element and those within it; one may be there twice.

    What the selector says of other elements is looked for in the whole page.  Raises SelectolaxError for what is no
    selector, and UnicodeEncodeError for one in which an escape stands for a lone surrogate.
    """
    return SELECTOR.find(selector, within)


def parse_with_kept_parser(html: bytes, *, scripting: bool = True) -> LexborNode | None:
    """As `parse`, in half the time, by a parser that the thread reuses: its next use frees this tree.

    None if the page is too large or has an unusual opening, or there is no such parser.  Unless `scripting`, what
    stands in `noscript` is parsed, too.
    """
    opening = OPENING.match(html)
    if _parsers is None or len(html) > MOST_KEPT or opening is None or opening[2]:
        return None
    return _parsers.kept[USUAL if opening[1] else NO_DOCTYPE, scripting].parse(html)
