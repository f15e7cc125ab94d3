"""Transliteration between the scripts whose blocks of Unicode share one layout."""

from neardup.core.languages import SHIPPED
from neardup.core.text.consonants import BLOCKS
from neardup.insights import edits
from neardup.records import Language


def transliterated(text: str, source: Language, target: Language) -> str:
    """A text with each letter and vowel sign of one script replaced by the one at its place in another."""
    return edits.transliterate_block(text, _block_of(source), _block_of(target))


def _block_of(language: Language) -> int:
    return next(start for letter in SHIPPED[language].golden if (start := ord(letter) & ~0x7F) in BLOCKS)
