"""How many characters of a text are of which kind, by their blocks.

The blocks of India share one layout: vowel signs and the virama stand at the same sixteen places of each.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.core.native import in_c
from neardup.core.native.fingerprint import count_characters
from neardup.core.text.codepoints import Codes
from neardup.core.text.normalize import codes_of

LETTERS = ((0x41, 0x5B), (0x61, 0x7B), (0x620, 0x700), (0x900, 0xE00))  # the last two are whole blocks
USUAL = ((0x09, 0x0E), (0x20, 0x7F), (0xA0, 0xA1), (0x2010, 0x2028))  # beside the letters
INDIC = (0x900, 0xD80)
BLOCK, SIGNS = 0x80, (0x3E, 0x4E)
SAMPLE = 256  # characters


class Characters(NamedTuple):
    """Counts of a text's characters, and of an even sample of them.

    `length` is that of the text.  `letters` are those of ASCII, and all of the blocks of Arabic and of India; `unusual`
    are neither these nor USUAL.
    Of `sampled` characters, `visible` are not white space, and `signs` are vowel signs and viramas of India.
    `blocks` are the numbers of the blocks with letters, ascending, and how many each has: those of ASCII, and all
    characters beyond ASCII.
    """

    length: int
    letters: int
    unusual: int
    sampled: int
    visible: int
    signs: int
    blocks: tuple[tuple[int, int], ...]


def _native_characters(text: str | bytes) -> Characters:
    try:
        return Characters(*count_characters(text if isinstance(text, bytes) else text.encode()))
    except UnicodeEncodeError:  # half a surrogate pair
        return characters.reference(text)


@in_c(_native_characters)
def characters(text: str | bytes) -> Characters:
    """Count the characters of a text; bytes are UTF-8."""
    codes = codes_of(text if isinstance(text, str) else text.decode())
    letters, sample = _within(codes, LETTERS), codes[:: len(codes) // SAMPLE + 1]
    signs = _within(sample, (INDIC,)) & _within(sample % BLOCK, (SIGNS,))
    unusual = ~letters & ~_within(codes, USUAL)
    in_blocks = np.bincount(codes[_within(codes, LETTERS[:2]) | (codes >= BLOCK)] // BLOCK)
    blocks = ((block, int(in_blocks[block])) for block in np.flatnonzero(in_blocks).tolist())
    return Characters(
        length=len(codes),
        letters=int(np.count_nonzero(letters)),
        unusual=int(np.count_nonzero(unusual)),
        sampled=len(sample),
        visible=int(np.count_nonzero(sample > ord(" "))),
        signs=int(np.count_nonzero(signs)),
        blocks=tuple(blocks),
    )


def _within(codes: Codes, ranges: tuple[tuple[int, int], ...]) -> npt.NDArray[np.bool_]:
    """(n,) which code points are in one of the ranges."""
    within = np.zeros(len(codes), np.bool_)
    for first, end in ranges:
        within |= (codes >= first) & (codes < end)
    return within
