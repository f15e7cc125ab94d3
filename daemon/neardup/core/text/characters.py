"""How many characters of a text are of which kind, by their blocks.

The blocks of India share one layout: vowel signs and the virama stand at the same sixteen places of each.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.core.jit import can_compile
from neardup.core.text.characters_kernel import count_characters
from neardup.core.text.codepoints import Codes

LETTERS = ((0x41, 0x5B), (0x61, 0x7B), (0x620, 0x700), (0x900, 0xE00))  # the last two are whole blocks
USUAL = ((0x09, 0x0E), (0x20, 0x7F), (0xA0, 0xA1), (0x2010, 0x2028))  # beside the letters
INDIC = (0x900, 0xD80)
BLOCK, SIGNS = 0x80, (0x3E, 0x4E)
SAMPLE = 256  # characters


class Characters(NamedTuple):
    """Counts of a text's characters, and of an even sample of them.

    `letters` are those of ASCII, and all of the blocks of Arabic and of India; `unusual` are neither these nor USUAL.
    Of `sampled` characters, `visible` are not white space, and `signs` are vowel signs and viramas of India.
    """

    letters: int
    unusual: int
    sampled: int
    visible: int
    signs: int


def characters(codes: Codes) -> Characters:
    """Count the characters of a text with these code points."""
    step = len(codes) // SAMPLE + 1
    return Characters(*map(int, count_characters(codes, step))) if can_compile() else _plain_count(codes, step)


def _plain_count(codes: Codes, step: int) -> Characters:
    letters, sample = _within(codes, LETTERS), codes[::step]
    signs = _within(sample, (INDIC,)) & _within(sample % BLOCK, (SIGNS,))
    kinds = (letters, ~letters & ~_within(codes, USUAL), np.ones(len(sample)), sample > ord(" "), signs)
    return Characters(*map(int, map(np.count_nonzero, kinds)))


def _within(codes: Codes, ranges: tuple[tuple[int, int], ...]) -> npt.NDArray[np.bool_]:
    """(n,) which code points are in one of the ranges."""
    within = np.zeros(len(codes), np.bool_)
    for first, end in ranges:
        within |= (codes >= first) & (codes < end)
    return within
