"""Normalisation as a compiled function; the results are those of `normalize.tokens`.

It returns UNSUPPORTED for a text with a code point BEYOND_TABLE that is neither a look-alike letter nor a mark that
stands alone, see `codepoints`; and for one with a nukta of Bengali behind another mark.

A text of 1,000 words takes 9 to 15 microseconds.  Look-alike letters add less than 1 if a few words have some, and 40
if all have.
"""

import numpy as np
import numpy.typing as npt

from neardup.core.jit import compiled
from neardup.core.text.codepoints import (
    BEYOND_TABLE,
    CODE,
    COMBINING,
    DROPPED,
    LONE_MARK,
    LOOK_ALIKE,
    NUKTA,
    SECOND,
    SEPARATOR,
    VIRAMA,
    ZWJ,
    Codes,
    Tables,
)
from neardup.core.text.leetspeak import LEADING, LETTERS
from neardup.core.text.look_alikes import (
    ALIKE,
    ALL_ALIKE,
    AS_IT_IS,
    BESIDE_LATIN,
    KIND,
    LATIN_LETTER,
    OTHER_LETTER,
    OUTSIDE,
    Readings,
)

UNSUPPORTED = -1  # returned instead of a number of words
A, Z = ord("a"), ord("z")
ZERO, NINE = ord("0"), ord("9")
UNUSUAL = np.uint32(BEYOND_TABLE | LOOK_ALIKE)  # the flags of code points that few texts have

U64 = np.uint64
Bytes = npt.NDArray[np.uint8]


@compiled
def normalise(  # noqa: C901, PLR0912 - calls in this loop would take longer than all the rest
    codes: Codes, tables: Tables, text: Bytes, ends: npt.NDArray[np.uint64]
) -> int:
    """Write the words in UTF-8, separated by spaces, and the offset where each ends; return how many, or UNSUPPORTED.

    `codes` (n,) are the text's code points.  The results are written to `text` (at least 4 n bytes) and `ends` (at
    least n // 2 + 1).
    """
    table, compositions, readings = tables
    words, size, before = 0, U64(0), table[SEPARATOR]
    row, end, has_look_alikes = AS_IT_IS, 0, False
    for place in range(len(codes)):
        entry = table[min(codes[place], len(table) - 1)]
        if entry & UNUSUAL:
            if entry & LOOK_ALIKE:
                if place >= end:
                    row, end = _reading(codes, table, readings, place)
                has_look_alikes = True
                if readings[row, codes[place]] and not ZERO <= codes[place] <= NINE:  # digits wait for the word's end
                    entry = table[readings[row, codes[place]]]
            elif not (entry & LONE_MARK and _is_alone(codes, table, place)):
                return UNSUPPORTED
        code = entry & CODE
        if entry & before << 1 & SECOND:  # one test, seldom true: SECOND is FIRST << 1
            first = before & CODE
            composed = _composition(compositions, first, code)
            if composed:
                size -= U64(2) if first < 0x800 else U64(3) if first < 0x10000 else U64(4)
                code, entry = composed, table[composed]
        if code > SEPARATOR:
            size = _put(text, size, code)
            before = entry
        elif code == SEPARATOR:
            before = entry
            if size and text[size - U64(1)] != SEPARATOR:
                ends[words] = size
                words += 1
                if has_look_alikes:
                    _read_digits(text, ends, words, readings)
                    has_look_alikes = False
                size = _put(text, size, code)
        elif codes[place] == NUKTA and before & COMBINING:
            return UNSUPPORTED  # NFC would put the nukta first
        else:
            chillu = _chillu(compositions, codes, place)
            if chillu:
                size = _put(text, size - U64(6), chillu)
                before = table[chillu]
    if size and text[size - U64(1)] != SEPARATOR:
        ends[words] = size
        words += 1
        if has_look_alikes:
            _read_digits(text, ends, words, readings)
    return words


@compiled
def _is_alone(codes: Codes, table: Codes, place: int) -> bool:
    """Whether no other combining mark stands beside the one at this place, whatever is dropped between them."""
    for step in (-1, 1):
        at = place + step
        while 0 <= at < len(codes) and table[min(codes[at], len(table) - 1)] & CODE == DROPPED:
            at += step
        if 0 <= at < len(codes) and table[min(codes[at], len(table) - 1)] & COMBINING:
            return False
    return True


@compiled
def _reading(codes: Codes, table: Codes, readings: Readings, place: int) -> tuple[int, int]:
    """The row of `readings` by which a LOOK_ALIKE and those after it are read, and the place where these end."""
    entry = table[codes[place]]
    if entry & BEYOND_TABLE:
        return _reading_of_word(codes, readings, place)
    if entry & CODE == SEPARATOR:
        return _reading_of_signs(codes, table, place)
    return AS_IT_IS, place + 1  # digits are read where their word ends


@compiled
def _reading_of_word(codes: Codes, readings: Readings, place: int) -> tuple[int, int]:
    begin, end, most = place, place + 1, readings.shape[1]
    while begin and codes[begin - 1] < most and readings[KIND, codes[begin - 1]] != OUTSIDE:
        begin -= 1
    while end < len(codes) and codes[end] < most and readings[KIND, codes[end]] != OUTSIDE:
        end += 1
    has_alike, is_other = False, False
    for at in range(begin, end):
        kind = readings[KIND, codes[at]]
        if kind == LATIN_LETTER:
            return BESIDE_LATIN, end
        has_alike |= kind == ALIKE
        is_other |= kind >= OTHER_LETTER and not readings[ALL_ALIKE, codes[at]]
    return ALL_ALIKE if has_alike and not is_other else AS_IT_IS, end


@compiled
def _reading_of_signs(codes: Codes, table: Codes, place: int) -> tuple[int, int]:
    begin, end = place - 1, place + 1
    while begin >= 0 and table[min(codes[begin], len(table) - 1)] & CODE == DROPPED:
        begin -= 1
    while end < len(codes) and _is_sign_or_dropped(table[min(codes[end], len(table) - 1)]):
        end += 1
    is_between = begin >= 0 and end < len(codes) and _is_letter(table, codes[begin]) and _is_letter(table, codes[end])
    return BESIDE_LATIN if is_between else AS_IT_IS, end


@compiled
def _is_sign_or_dropped(entry: np.uint32) -> bool:
    return bool(entry & CODE == DROPPED or (entry & LOOK_ALIKE and entry & CODE == SEPARATOR))


@compiled
def _is_letter(table: Codes, code: int) -> bool:
    return bool(A <= table[min(code, len(table) - 1)] & CODE <= Z)


@compiled
def _read_digits(text: Bytes, ends: npt.NDArray[np.uint64], words: int, readings: Readings) -> None:
    """Read the digits of the last of so many words as letters if they stand for them, see `leetspeak`."""
    start = ends[words - 2] + U64(1) if words > 1 else U64(0)
    leading, since_digit, is_disguised, has_letter = 0, 0, False, False
    for place in range(start, ends[words - 1]):
        code = text[place]
        if A <= code <= Z:
            is_disguised |= has_letter and since_digit == 0
            has_letter = True
            since_digit += 1
            is_disguised |= 0 < leading <= LEADING and since_digit == LETTERS
        elif ZERO <= code <= NINE and readings[BESIDE_LATIN, code]:
            leading = leading + 1 if not has_letter else 0
            since_digit = 0
        else:
            return
    if is_disguised:
        for place in range(start, ends[words - 1]):
            if text[place] <= NINE:
                text[place] = readings[BESIDE_LATIN, text[place]]


@compiled
def _chillu(compositions: Codes, codes: Codes, place: int) -> np.uint32:
    """The chillu whose letter, virama and ZWJ end at this place; DROPPED if there is none."""
    if codes[place] == ZWJ and place >= 2 and codes[place - 1] == VIRAMA:
        return _composition(compositions, codes[place - 2], ZWJ)
    return np.uint32(DROPPED)


@compiled
def _composition(compositions: Codes, first: int, second: int) -> np.uint32:
    """The code point to which two others compose; DROPPED if they do not."""
    for row in range(len(compositions)):
        if compositions[row, 0] == first and compositions[row, 1] == second:
            return np.uint32(compositions[row, 2])
    return np.uint32(DROPPED)


@compiled
def _put(text: Bytes, size: np.uint64, code: np.uint32) -> np.uint64:
    """Append a code point in UTF-8 after `size` bytes; return the new size."""
    if code < 0x80:
        text[size] = code
        return size + U64(1)
    if code < 0x800:
        text[size] = 0xC0 | code >> 6
        text[size + U64(1)] = 0x80 | code & 0x3F
        return size + U64(2)
    if code < 0x10000:
        text[size] = 0xE0 | code >> 12
        text[size + U64(1)] = 0x80 | code >> 6 & 0x3F
        text[size + U64(2)] = 0x80 | code & 0x3F
        return size + U64(3)
    text[size] = 0xF0 | code >> 18
    text[size + U64(1)] = 0x80 | code >> 12 & 0x3F
    text[size + U64(2)] = 0x80 | code >> 6 & 0x3F
    text[size + U64(3)] = 0x80 | code & 0x3F
    return size + U64(4)
