"""Reads the text of a page without parsing it, in time linear in its length, where a parser takes too long.

No selector applies, and hidden text counts as shown.  A comment, script or style that does not end is read as text, so
that it cannot hide the story.  Texts in like elements form a layer, see `layers`: some of them may be hidden.
"""

import html
import re
from collections import Counter

from neardup.core.text.elements import BLOCKS
from neardup.core.text.layers import Layer, apart
from neardup.core.text.pieces import Piece, Text, written
from neardup.core.text.spaces import visible_length

MOST_CHARACTERS = 1_000_000  # of text: its fingerprint is within every budget
MOST_LAYERED = 150_000  # tags; each takes 5 microseconds
DEEPEST = 50  # open elements that are known
LONGEST = 200  # characters of a tag by which it is like another one
JUNK = (("<!--", "-->"), (r"<script\b", r"</script\b[^>]*>?"), (r"<style\b", r"</style\b[^>]*>?"))
REST = r"(?:[^>\"']|\"[^\"]*\"|'[^']*')*+>?"  # of a tag
BREAKS = re.compile(rf"</?(?:br|{'|'.join(sorted(BLOCKS, key=len, reverse=True))})\b{REST}", re.IGNORECASE)
TAGS = re.compile(rf"</?[a-z]{REST}|<!--|<[!?][^>]*>?", re.IGNORECASE)
NAME = re.compile(r"</?([a-z][^\s/>]*)", re.IGNORECASE)
EMPTY = frozenset(
    ("br", "hr", "img", "input", "wbr", "meta", "link", "area", "base", "col", "embed", "param", "source")
)


def unparsed_text(markup: str) -> str:
    """Markup -> its text outside tags, with line breaks between blocks, up to MOST_CHARACTERS."""
    for begin, end in JUNK:
        # a search for an end that is not there would be repeated at each beginning
        after = max((found.end() for found in re.finditer(end, markup, re.IGNORECASE)), default=0)
        markup = re.sub(f"{begin}.*?{end}", "", markup[:after], flags=re.IGNORECASE | re.DOTALL) + markup[after:]
    if markup.count("<") > MOST_LAYERED:
        return html.unescape(TAGS.sub("", BREAKS.sub("\n", markup)))[:MOST_CHARACTERS]
    pieces, characters = _in_elements(markup)
    return "\n".join([written(pieces), *(written(pieces, one) for one in apart(characters))])[:MOST_CHARACTERS]


def _in_elements(markup: str) -> tuple[list[Piece], Counter[Layer]]:
    """The texts of a page, each in the layer of the innermost element around it, and the characters of the layers."""
    pieces: list[Piece] = []
    characters: Counter[Layer] = Counter()
    around: list[tuple[str, Layer]] = [("", frozenset([""]))]  # the names of the open elements, and their layers
    start = 0
    for tag in (*TAGS.finditer(markup), None):
        if text := html.unescape(markup[start : tag.start() if tag else len(markup)]):
            layer = around[-1][1]
            pieces.append(Text(text, layer, takes_room=True))
            characters[layer] += visible_length(text)
        if tag:
            start = tag.end()
            pieces.append("\n" if BREAKS.match(tag[0]) else "")
            _open_or_close(tag[0], around)
    return pieces, characters


def _open_or_close(tag: str, around: list[tuple[str, Layer]]) -> None:
    found = NAME.match(tag)
    name = found[1].lower() if found else ""
    if tag.startswith("</"):
        place = next((n for n in reversed(range(len(around))) if around[n][0] == name), 0)
        del around[place or len(around) :]
    elif name and name not in EMPTY:
        around.append((name, frozenset([tag[:LONGEST]])))
        del around[1 : len(around) - DEEPEST]
