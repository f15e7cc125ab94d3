"""The edges of what stands within a line: what is done with the text between them, once it is read."""

from enum import Enum

from neardup.core.text.display import is_block

EDGE = "\0"  # of an inline block: it keeps the spaces before it from those at another edge, and is not shown


class InlineBlock(Enum):
    """The edges of a block within a line, at which spaces are not shown."""

    START, END = range(2)


class Override(Enum):
    """The edges of an element that shows its letters in one direction, whatever their own is."""

    START, LEFT_TO_RIGHT, RIGHT_TO_LEFT = range(3)


class Low(Enum):
    """The edges of a box that is clipped to a line: of the texts in it, only the first is certain to be seen."""

    START, END = range(2)


def edges(display: str) -> tuple[tuple[str | InlineBlock, ...], tuple[str | InlineBlock, ...]]:
    """What stands before and after the content of an element."""
    if display.startswith("inline-"):
        return (InlineBlock.START,), (InlineBlock.END,)
    return (("\n",), ("\n",)) if is_block(display) else ((), ())
