"""The script of most letters of a text.

A block of 128 code points belongs to one script.  Marks and digits count as letters of the script of their block, ASCII
without letters and the blocks of punctuation and symbols count as nothing.
"""

import unicodedata
from collections import Counter
from functools import cache, lru_cache

from neardup.core.text.characters import BLOCK, Characters, characters

CACHED_LETTERS = 4_096
SYMBOLS = range(0x2000 // BLOCK, 0x2C00 // BLOCK)


def script_of_most(text: str) -> str | None:
    """The script of more than half of a text's letters, as their Unicode names begin: LATIN; None if there is none."""
    return script_of(characters(text))


def script_of(counts: Characters) -> str | None:
    """As `script_of_most`, of the text with these counts."""
    by_script = dict[str, int]()
    for block, letters in counts.blocks:
        if script := script_of_block(block):
            by_script[script] = by_script.get(script, 0) + letters
    script = max(by_script, key=by_script.__getitem__, default=None)
    return script if script is not None and 2 * by_script[script] > sum(by_script.values()) else None


@cache
def script_of_block(block: int) -> str | None:
    """The script of the letters in the block of this number; None for one without letters."""
    characters = map(chr, range(block * BLOCK, (block + 1) * BLOCK))
    counts = Counter(filter(None, map(script_of_letter, characters)))
    return None if block in SYMBOLS else max(counts, key=lambda script: counts[script], default=None)


@lru_cache(CACHED_LETTERS)
def script_of_letter(character: str) -> str | None:
    """The script of a letter, as its Unicode name begins; None for another character."""
    return unicodedata.name(character, "UNNAMED").partition(" ")[0] if character.isalpha() else None
