"""The script of most letters of a text.

A block of 128 code points belongs to one script.  Marks and digits count as letters of the script of their block, ASCII
without letters and the blocks of punctuation and symbols count as nothing.
"""

import unicodedata
from collections import Counter
from functools import cache

import numpy as np

from neardup.core.jit import can_compile
from neardup.core.text.codepoints import Codes
from neardup.core.text.normalize import codes_of
from neardup.core.text.script_kernel import count_within

BLOCK = 128
SAMPLE = 32  # characters by which the script is guessed
SYMBOLS = range(0x2000 // BLOCK, 0x2C00 // BLOCK)


def script_of_most(text: str) -> str | None:
    """The script of more than half of a text's letters, as their Unicode names begin: LATIN; None if there is none."""
    return script_of_codes(codes_of(text))


def script_of_codes(codes: Codes) -> str | None:
    """As `script_of_most`, of the text with these code points."""
    if not len(codes):
        return None
    sample = sorted(codes[:: len(codes) // SAMPLE + 1].tolist())
    guess = script_of_block(sample[len(sample) // 2] // BLOCK)
    return guess if guess is not None and _is_certain(codes, guess) else _majority(codes)


def _majority(codes: Codes) -> str | None:
    letters = codes[(((codes | 0x20) - ord("a")) < 26) | (codes >= BLOCK)]
    in_blocks = np.bincount(letters // BLOCK)
    counts: Counter[str] = Counter()
    for block in np.flatnonzero(in_blocks).tolist():
        if script := script_of_block(block):
            counts[script] += int(in_blocks[block])
    return next((script for script, n in counts.items() if 2 * n > counts.total()), None)


def _is_certain(codes: Codes, script: str) -> bool:
    """Whether more than half of a text's characters that may be letters belong to the main blocks of a script."""
    if not can_compile():
        return False
    within, letters = count_within(codes, *_main_range(script))
    return bool(2 * within > letters)


@cache
def script_of_block(block: int) -> str | None:
    """The script of the letters in the block of this number; None for one without letters."""
    characters = map(chr, range(block * BLOCK, (block + 1) * BLOCK))
    counts = Counter(filter(None, map(script_of_letter, characters)))
    return None if block in SYMBOLS else max(counts, key=lambda script: counts[script], default=None)


def script_of_letter(character: str) -> str | None:
    """The script of a letter, as its Unicode name begins; None for another character."""
    return unicodedata.name(character, "UNNAMED").partition(" ")[0] if character.isalpha() else None


@cache
def _main_range(script: str) -> tuple[np.uint32, np.uint32]:
    """The first code point and the length of the first blocks of a script that follow each other."""
    first = next(block for block in range(0x110000 // BLOCK) if script_of_block(block) == script)
    end = next(block for block in range(first, 0x110000 // BLOCK) if script_of_block(block) != script)
    return np.uint32(first * BLOCK), np.uint32((end - first) * BLOCK)
