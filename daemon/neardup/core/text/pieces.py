"""A page's text in pieces: it is read once, and written for each choice of layers."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from neardup.core.text.edges import EDGE, InlineBlock, Override
from neardup.core.text.layers import HIDDEN, Layer
from neardup.core.text.reading_order import as_read


class Text(NamedTuple):
    """A text with single spaces, and its layer; if this is not read, the text may take room, so that it parts words."""

    text: str
    layer: Layer
    takes_room: bool = False


Piece = str | Text | InlineBlock | Override


def written(pieces: Iterable[Piece], layers: Collection[Layer] | None = None) -> str:
    """The text of a page, of these layers, or if None of all that are not hidden."""
    out: list[str] = []
    starts: list[int] = []
    for piece in pieces:
        if isinstance(piece, str):
            out.append(piece)
        elif isinstance(piece, Text):
            is_read = piece.layer != HIDDEN if layers is None else piece.layer in layers
            out.append(piece.text if is_read else " " if piece.takes_room and " " in piece.text else "")
        elif piece is InlineBlock.START or piece is Override.START:
            starts.append(len(out))
        elif piece is InlineBlock.END:
            start = starts.pop()
            out[start:] = ["".join(out[start:]).strip(" "), EDGE]
        else:
            start = starts.pop()
            out[start:] = [as_read("".join(out[start:]), to_the_left=piece is Override.RIGHT_TO_LEFT)]
    return "".join(out).replace(EDGE, "")
