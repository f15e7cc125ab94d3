"""Normalisation and tokens, safe for Indic scripts.

Two pages tell the same story whatever their Unicode form, joiners, nukta signs or case, so a
fingerprint is taken of the normalised text: NFC; Malayalam chillu sequences to their atomic
letters; default-ignorable code points (ZWJ, ZWNJ, BOM, soft hyphen, ...) removed; nukta signs
dropped; casefolded; NFC again.  A token is a maximal run of letters, marks and numbers (Unicode
L*, M*, N*).  `re`'s `\\w` will not do: it leaves the combining marks out, and tears every Indic
word apart.

Nearly all of that is a map from one code point to at most one other, so it is one table look-up
over the code points of the whole text.  The table is built once, from `unicodedata`.
"""

import re
import unicodedata
from functools import cache

import numpy as np
import numpy.typing as npt

LETTERS_END = 0x40000  # planes 0 to 3 hold every letter
TABLE_END = 0xE1001  # then come tags and variation selectors; the last entry stands for the rest
SEPARATOR = 0x20
DROPPED = 0
EXPANDS = 1  # casefolds to several code points (ß): the whole text takes str.casefold first

CHILLU = {"ണ": "ൺ", "ന": "ൻ", "ര": "ർ", "ല": "ൽ", "ള": "ൾ", "ക": "ൿ"}
CHILLU_SEQUENCE = re.compile("([ണനരലളക])\u0d4d\u200d")  # letter, virama, ZWJ

NUKTAS = "\u093c\u09bc\u0a3c\u0abc\u0b3c\u0c3c"

# Default_Ignorable_Code_Point of DerivedCoreProperties.txt, Unicode 14.
IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u3164\ufeff\uffa0",
    ("\u180b", "\u180f"),
    ("\u200b", "\u200f"),
    ("\u202a", "\u202e"),
    ("\u2060", "\u206f"),
    ("\ufe00", "\ufe0f"),
    ("\ufff0", "\ufff8"),
    ("\U0001bca0", "\U0001bca3"),
    ("\U0001d173", "\U0001d17a"),
    ("\U000e0000", "\U000e0fff"),
)


def tokens(text: str) -> list[bytes]:
    """Text -> its words, normalised, as UTF-8, in reading order."""
    text = unicodedata.normalize("NFC", text)
    if "\u200d" in text:
        text = CHILLU_SEQUENCE.sub(lambda found: CHILLU[found[1]], text)
    codes = _mapped(text)
    if (codes == EXPANDS).any():
        codes = _mapped(text.casefold())
    kept = codes[codes != DROPPED]
    folded = unicodedata.normalize("NFC", kept.tobytes().decode("utf-32-le"))
    return folded.encode().split()


def _mapped(text: str) -> npt.NDArray[np.uint32]:
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    return table().take(codes, mode="clip")


@cache
def table() -> npt.NDArray[np.uint32]:
    """(TABLE_END,) uint32: what each code point becomes, or SEPARATOR, DROPPED or EXPANDS."""
    characters = list(map(chr, range(LETTERS_END)))
    categories = map(unicodedata.category, characters)
    word = np.fromiter((c[0] in "LMN" for c in categories), bool, LETTERS_END)
    out = np.full(TABLE_END, SEPARATOR, np.uint32)
    out[:LETTERS_END][word] = np.flatnonzero(word)
    for code in np.flatnonzero(word).tolist():
        folded = characters[code].casefold()
        if folded != characters[code]:
            out[code] = ord(folded) if len(folded) == 1 else EXPANDS
    for code in _composed_with_nukta():
        out[code] = ord(_without_nukta(characters[code]))
    for nukta in NUKTAS:
        out[ord(nukta)] = DROPPED
    for entry in IGNORABLE:
        codes = map(ord, entry) if isinstance(entry, str) else range(ord(entry[0]), ord(entry[1]) + 1)
        out[list(codes)] = DROPPED
    return out


def _composed_with_nukta() -> list[int]:
    """The code points of the Indic blocks that decompose to a letter and a nukta (क़, ড়, ਖ਼, ...)."""
    return [
        code
        for code in range(0x0900, 0x0B80)
        if chr(code) not in NUKTAS and any(n in unicodedata.normalize("NFD", chr(code)) for n in NUKTAS)
    ]


def _without_nukta(text: str) -> str:
    bare = "".join(c for c in unicodedata.normalize("NFD", text) if c not in NUKTAS)
    return unicodedata.normalize("NFC", bare)
