"""Puts letters that are shown in the reverse of their order into the order in which they are read.

An override of direction (Unicode Annex 9; `bdo` in HTML) shows letters from the right to the left that are read from
the left to the right, or the other way round.  The rules of the annex are followed in lines with overrides, as far as
these decide.
"""

import re
import unicodedata
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

LEFT_TO_RIGHT, RIGHT_TO_LEFT = "\u202d", "\u202e"
OVERRIDES = LEFT_TO_RIGHT + RIGHT_TO_LEFT
ISOLATE, POP_EMBEDDING, POP_ISOLATE = "\u2068", "\u202c", "\u2069"
OPENING = {"\u202a": 0, "\u202b": 1, LEFT_TO_RIGHT: 0, RIGHT_TO_LEFT: 1, "\u2066": 0, "\u2067": 1, ISOLATE: 0}
EMBEDDING = frozenset(("\u202a", "\u202b", POP_EMBEDDING))
ISOLATING = frozenset(("\u2066", "\u2067", ISOLATE))
CONTROLS = re.compile("([\u202a-\u202e\u2066-\u2069])")
DEEPEST = 125  # level; what would be deeper changes nothing
OF_LEFT_TO_RIGHT = "L"
LETTERS = frozenset((OF_LEFT_TO_RIGHT, "R", "AL"))
DIRECTED = LETTERS | frozenset(("EN", "AN", "LRI", "RLI", "FSI", "PDI"))
JOINERS = "\u200c\u200d"


class _Run(NamedTuple):
    """Characters of one level, whether their direction is overridden, and that of the first that has one."""

    text: str
    level: int
    is_overridden: bool
    direction: str | None = None


class _Embedding(NamedTuple):
    """What stands around a character, down to the next that ends it; what `is_too_deep` changes nothing."""

    level: int
    is_override: bool
    is_isolate: bool
    is_too_deep: bool


def overrides_direction(utf8: bytes) -> bool:
    """Whether a text in UTF-8 has characters that override the direction."""
    return RIGHT_TO_LEFT.encode() in utf8 or LEFT_TO_RIGHT.encode() in utf8


def has_override(text: str) -> bool:
    """As `overrides_direction`."""
    return RIGHT_TO_LEFT in text or LEFT_TO_RIGHT in text


def count_overrides(text: str) -> int:
    """The number of characters that override the direction."""
    return text.count(RIGHT_TO_LEFT) + text.count(LEFT_TO_RIGHT)


def override(text: str, *, to_the_left: bool) -> str:
    """A text with the characters that override the direction of its lines."""
    control = RIGHT_TO_LEFT if to_the_left else LEFT_TO_RIGHT
    return "\n".join(f"{control}{line}{POP_EMBEDDING}" for line in text.split("\n"))


def isolate(text: str) -> str:
    """A text that no override around it changes, and whose own overrides end with it."""
    return f"{ISOLATE}{text}{POP_ISOLATE}"


def put_in_reading_order(text: str) -> str:
    """A text as it is read, where characters in it override the direction up to the end of a line."""
    if not has_override(text):
        return text
    lines = text.split("\n")
    return "\n".join(_order_runs(_split_runs(line)) if has_override(line) else line for line in lines)


def _split_runs(line: str) -> list[_Run]:
    """The runs of a line, by rules X1 to X8; the characters that override are in none."""
    runs, around = list[_Run](), [_Embedding(0, is_override=False, is_isolate=False, is_too_deep=False)]
    isolates, held = 0, ""
    for part in CONTROLS.split(line):
        outside = around[-1]
        if part in OPENING:
            around.append(_open_embedding(outside, part))
            isolates += around[-1].is_isolate
        elif part == POP_ISOLATE and isolates:
            while not around.pop().is_isolate:
                pass
            isolates -= 1
            outside = around[-1]
        elif part == POP_EMBEDDING and len(around) > 1 and not outside.is_isolate:
            around.pop()
            outside = around[-1]
        if part in EMBEDDING:  # and parts nothing
            held += part
        elif part and part not in OVERRIDES:
            runs.append(_Run(held + part, outside.level, outside.is_override))
            held = ""
    runs.append(_Run(held, 0, is_overridden=False))
    joined = [
        _Run(text := "".join(run.text for run in group), level, is_overridden, _find_direction(text))
        for (level, is_overridden), group in groupby(runs, key=itemgetter(1, 2))
    ]
    return _direct_neutrals(joined)


def _open_embedding(around: _Embedding, control: str) -> _Embedding:
    is_isolate = control in ISOLATING
    level = around.level + (1 if around.level % 2 != OPENING[control] else 2)
    if around.is_too_deep or level > DEEPEST:
        return around._replace(is_isolate=is_isolate, is_too_deep=True)
    return _Embedding(level, control in OVERRIDES, is_isolate, is_too_deep=False)


def _direct_neutrals(runs: list[_Run]) -> list[_Run]:
    """The runs, in which spaces and signs have the direction of what stands on both sides of them (rule N1)."""
    out = list(runs)
    for place, (before, run, after) in enumerate(zip(runs, runs[1:], runs[2:], strict=False), 1):
        least = min(before.level, after.level)
        is_between = not run.is_overridden and before.level % 2 == after.level % 2 and run.level < least
        if is_between and DIRECTED.isdisjoint(map(unicodedata.bidirectional, run.text)):
            out[place] = _Run(run.text, least, is_overridden=True)
    return out


def _order_runs(runs: list[_Run]) -> str:
    """The text of a line as it is read: what has a level of at least n is shown as one (rule L2)."""
    regions: list[tuple[int, list[_Run]]] = [(0, [])]
    for run in (*runs, _Run("", 0, is_overridden=False)):
        while regions[-1][0] > run.level:
            closed = _read_region(*regions.pop())
            if regions[-1][0] < run.level:
                regions.append((run.level, []))
            regions[-1][1].append(closed)
        if regions[-1][0] < run.level:
            regions.append((run.level, []))
        regions[-1][1].append(run)
    return _read_region(*regions[0]).text


def _read_region(level: int, parts: list[_Run]) -> _Run:
    direction = next((part.direction for part in parts if part.direction), None)
    if any(part.is_overridden for part in parts) and _is_reversed(direction, to_the_left=level % 2 == 1):
        texts = [_reverse(part.text) if part.is_overridden else part.text for part in reversed(parts)]
    else:
        texts = [part.text for part in parts]
    return _Run("".join(texts), level, is_overridden=False, direction=direction)


def order_lines(text: str, *, to_the_left: bool) -> str:
    """A text whose lines are shown in one direction -> its lines as they are read, each in its own direction."""
    return "\n".join(
        _reverse(line) if _is_reversed(_find_direction(line), to_the_left=to_the_left) else line
        for line in text.split("\n")
    )


def _find_direction(text: str) -> str | None:
    return next(filter(LETTERS.__contains__, map(unicodedata.bidirectional, text)), None)


def _is_reversed(direction: str | None, *, to_the_left: bool) -> bool:
    """Whether letters of a direction are shown in reverse."""
    return direction is not None and (direction == OF_LEFT_TO_RIGHT) == to_the_left


def _reverse(line: str) -> str:
    """The letters in reverse, each with the marks on it."""
    letters: list[str] = []
    for character in line:
        if letters and (unicodedata.category(character)[0] == "M" or character in JOINERS):
            letters[-1] += character
        else:
            letters.append(character)
    return "".join(reversed(letters))
