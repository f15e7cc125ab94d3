"""White space as HTML has it: texts with single spaces, and what they show beside these."""

from selectolax.lexbor import LexborNode

from neardup.core.native.page import WHY_UNREAD
from neardup.core.native.page import spaced_text as native_spaced_text

BREAK = "\v"  # of a line, in the text of an element; no break in markup, and white space
SPACES = "\t\n\r\f"  # that are shown as single ones, and may stand in a run


def spaced(text: str) -> str:
    """A text with single spaces in place of runs of white space, as HTML has it."""
    for space in SPACES:
        text = text.replace(space, " ")
    while "  " in text:
        text = text.replace("  ", " ")
    return text


def visible_length(text: str) -> int:
    """How many characters of a text are not white space."""
    return sum(map(len, text.split()))


def spaced_text(element: LexborNode) -> tuple[str, int]:
    """The text of an element, spaced and with a line feed for each BREAK, and its visible length."""
    found = native_spaced_text(element) if WHY_UNREAD is None else None
    return spaced_text_in_python(element) if found is None else found


def spaced_text_in_python(element: LexborNode) -> tuple[str, int]:
    """The reference of `spaced_text`."""
    text = element.text_lexbor()
    return spaced(text).replace(BREAK, "\n"), visible_length(text)
