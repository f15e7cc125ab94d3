"""A page's text in pieces: it is read once, and written for each choice of layers.

The pieces are texts with single spaces, each in its layer, and the edges of what stands within a line, which say what
is done with the text between them once it is written.
"""

from collections.abc import Callable, Collection, Iterable
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from neardup.core.css.computed_style import HIDDEN, Layer, is_block
from neardup.core.native.page import WHY_UNUSABLE
from neardup.core.native.page import read_spaced_text as native_spaced_text
from neardup.core.text.consonants import BLOCKS
from neardup.core.text.reading_order import has_override, isolate, order_lines, override

EDGE = "\0"  # of an inline block: it keeps the spaces before it from those at another edge, and is not shown

BREAK = "\v"  # of a line, in the text of an element; no break in markup, and white space
JOINER = "\u200d"
MARK_OFFSETS = (*range(0x04), 0x3C, *range(0x3E, 0x50), *range(0x51, 0x58), 0x62, 0x63)  # in a block of an Indic script
VIRAMAS = frozenset(chr(block + 0x4D) for block in BLOCKS)
MARKS = frozenset(chr(block + offset) for block in BLOCKS for offset in MARK_OFFSETS) | frozenset(
    map(chr, (*range(0x300, 0x370), 0x200C, 0x200D))
)
SPACES = "\t\n\r\f"  # that are shown as single ones, and may stand in a run


class InlineBlock(Enum):
    """The edges of a block within a line, at which spaces are not shown."""

    START, END = range(2)


class Box(Enum):
    """The edges of a box apart from the text beside it, which stands in lines of its own if it is more than a letter.

    Writers put each letter of a word in a box, too, and a reader sees the word.
    """

    START, END = range(2)


class Override(Enum):
    """The edges of an element that shows its letters in one direction, whatever their own is."""

    START, LEFT_TO_RIGHT, RIGHT_TO_LEFT = range(3)


class Isolate(Enum):
    """The edges of what no override of the direction crosses."""

    START, END = range(2)


class Low(Enum):
    """The edges of a box that is clipped to a line: of the texts in it, only the first is certain to be seen."""

    START, END = range(2)


def find_edges(display: str) -> tuple[tuple[str | InlineBlock, ...], tuple[str | InlineBlock, ...]]:
    """What stands before and after the content of an element."""
    if display.startswith("inline-"):
        return (InlineBlock.START,), (InlineBlock.END,)
    return (("\n",), ("\n",)) if is_block(display) else ((), ())


class Text(NamedTuple):
    """A text with single spaces, and its layer; if this is not read, the text may take room, so that it parts words."""

    text: str
    layer: Layer
    takes_room: bool = False


Piece = str | Text | InlineBlock | Box | Override | Isolate
STARTS = frozenset((InlineBlock.START, Box.START, Override.START, Isolate.START))


def write_text(pieces: Iterable[Piece], layers: Collection[Layer] | None = None) -> str:
    """The text of a page, of these layers, or if None of all that are not hidden."""
    pieces = tuple(pieces)
    text = _write_text(pieces, layers, str, order_lines)
    return _write_text(pieces, layers, isolate, override) if has_override(text) else text


def _write_text(
    pieces: Iterable[Piece],
    layers: Collection[Layer] | None,
    isolate_box: Callable[[str], str],
    order_box: Callable[..., str],
) -> str:
    out: list[str] = []
    starts: list[int] = []
    for piece in pieces:
        if isinstance(piece, str):
            out.append(piece)
        elif isinstance(piece, Text):
            is_read = piece.layer != HIDDEN if layers is None else piece.layer in layers
            out.append(piece.text if is_read else " " if piece.takes_room and " " in piece.text else "")
        elif piece in STARTS:
            starts.append(len(out))
        elif piece is InlineBlock.END:
            start = starts.pop()
            out[start:] = [isolate_box("".join(out[start:]).strip(" ")), EDGE]
        elif piece is Isolate.END:
            start = starts.pop()
            out[start:] = [isolate_box("".join(out[start:]))]
        elif piece is Box.END:
            start = starts.pop()
            text = "".join(out[start:])
            out[start:] = [f"\n{text}\n" if count_letters(text) > 1 else isolate_box(text)]
        else:
            start = starts.pop()
            out[start:] = [order_box("".join(out[start:]), to_the_left=piece is Override.RIGHT_TO_LEFT)]
    return "".join(out).replace(EDGE, "")


def count_letters(text: str) -> int:
    """How many characters a text has, without white space and edges, marks on letters, and letters that these join."""
    letters = 0
    for before, character in pairwise("\0" + text):
        is_joined = before in VIRAMAS or before == JOINER
        letters += character > " " and not is_joined and character not in MARKS
    return letters


def collapse_spaces(text: str) -> str:
    """A text with single spaces in place of runs of white space, as HTML has it."""
    for space in SPACES:
        text = text.replace(space, " ")
    while "  " in text:
        text = text.replace("  ", " ")
    return text


def count_visible(text: str) -> int:
    """How many characters of a text are not white space."""
    return sum(map(len, text.split()))


def read_spaced_text(element: LexborNode) -> tuple[str, int]:
    """The text of an element, spaced and with a line feed for each BREAK, and its visible length."""
    found = native_spaced_text(element) if WHY_UNUSABLE is None else None
    return read_spaced_text_in_python(element) if found is None else found


def read_spaced_text_in_python(element: LexborNode) -> tuple[str, int]:
    """The reference of `read_spaced_text`."""
    text = element.text_lexbor()
    return collapse_spaces(text).replace(BREAK, "\n"), count_visible(text)
