"""The name of a page's story, for a listing without titles: the page's title, else its first heading."""

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

from neardup.core.text.html import NoStoryText, decode

READ_BYTES = 8192  # of the page: a title is in its head, and a heading stands before the story
MOST_CHARACTERS = 300
OPENING_WORDS = 10
TITLES = "head > title", "h1", "h2", "h3"
# Control characters, and code points that are no characters, which terminals and file formats cannot show.
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")


def page_title(body: bytes, content_type: str | None) -> str | None:
    """The title of a page, or else its first heading, on one line; None if the start of the page has neither."""
    start, _, _ = body[:READ_BYTES].rpartition(b"<")  # so that no character is cut
    if not start:
        return None
    try:
        root = LexborHTMLParser(decode(start, content_type)).root
    except NoStoryText:
        return None
    return next(filter(None, (_text(root.css_first(one)) for one in TITLES)), None) if root is not None else None


def opening(text: str) -> str:
    """The first words of a story."""
    return _one_line(" ".join(text.split(None, OPENING_WORDS)[:OPENING_WORDS]))


def _text(node: LexborNode | None) -> str | None:
    return None if node is None else _one_line(node.text_lexbor()) or None


def _one_line(text: str) -> str:
    return " ".join(UNPRINTABLE.sub(" ", text).split())[:MOST_CHARACTERS].rstrip()
