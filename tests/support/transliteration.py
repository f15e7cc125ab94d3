"""Transliteration between the scripts whose blocks of Unicode share one layout."""

import unicodedata

from neardup.core.text.consonants import BLOCKS
from neardup.languages import SHIPPED
from neardup.records import Language

SIGNS = range(0x01, 0x4E)  # letters, vowel signs and the virama, by their places in a block
INSTEAD = {
    0x29: 0x28,
    0x31: 0x30,
    0x34: 0x33,
    0x0E: 0x0F,
    0x12: 0x13,
    0x46: 0x47,
    0x4A: 0x4B,
}  # where a script has none


def transliterated(text: str, source: Language, target: Language) -> str:
    """A text with each letter and vowel sign of one script replaced by the one at its place in another."""
    start, to = _block_of(source), _block_of(target)
    return "".join(
        _assigned(to, ord(character) - start) if ord(character) - start in SIGNS else character for character in text
    )


def _block_of(language: Language) -> int:
    return next(start for letter in SHIPPED[language].golden if (start := ord(letter) & ~0x7F) in BLOCKS)


def _assigned(block: int, place: int) -> str:
    sign = chr(block + place)
    return sign if unicodedata.category(sign) != "Cn" else chr(block + INSTEAD.get(place, place))
