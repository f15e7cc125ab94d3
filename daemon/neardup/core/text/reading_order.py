"""Puts letters that are shown in the reverse of their order into the order in which they are read.

An override of direction (Unicode Annex 9; `bdo` in HTML) shows letters from the right to the left that are read from
the left to the right, or the other way round.
"""

import re
import unicodedata

LEFT_TO_RIGHT, RIGHT_TO_LEFT, POP = "\u202d", "\u202e", "\u202c"
OVERRIDDEN = re.compile(f"([{LEFT_TO_RIGHT}{RIGHT_TO_LEFT}])([^{LEFT_TO_RIGHT}{RIGHT_TO_LEFT}{POP}\n]*)")
OF_LEFT_TO_RIGHT, OF_RIGHT_TO_LEFT = "L", ("R", "AL")
JOINERS = "\u200c\u200d"


def overrides_direction(utf8: bytes) -> bool:
    """Whether a text in UTF-8 has characters that override the direction."""
    return RIGHT_TO_LEFT.encode() in utf8 or LEFT_TO_RIGHT.encode() in utf8


def put_in_reading_order(text: str) -> str:
    """A text as it is read, where characters in it override the direction up to the end of a line."""
    if RIGHT_TO_LEFT not in text and LEFT_TO_RIGHT not in text:
        return text
    return OVERRIDDEN.sub(lambda run: order_lines(run[2], to_the_left=run[1] == RIGHT_TO_LEFT), text)


def order_lines(text: str, *, to_the_left: bool) -> str:
    """A text whose lines are shown in one direction -> its lines as they are read, each in its own direction."""
    return "\n".join(_reverse(line) if _is_shown_reversed(line, to_the_left) else line for line in text.split("\n"))


def _is_shown_reversed(line: str, to_the_left: bool) -> bool:
    directions = map(unicodedata.bidirectional, line)
    first = next((direction for direction in directions if direction in (OF_LEFT_TO_RIGHT, *OF_RIGHT_TO_LEFT)), None)
    return first is not None and (first == OF_LEFT_TO_RIGHT) == to_the_left


def _reverse(line: str) -> str:
    """The letters in reverse, each with the marks on it."""
    letters: list[str] = []
    for character in line:
        if letters and (unicodedata.category(character)[0] == "M" or character in JOINERS):
            letters[-1] += character
        else:
            letters.append(character)
    return "".join(reversed(letters))
