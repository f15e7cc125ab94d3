"""What each code point becomes in a normalised text, and which of them normalisation can leave alone.

Nearly all of a text's normalisation is a map from one code point to at most one other, so it is one
table, built once from `unicodedata`.  Flags in the same table say where that map is not all: most
texts are in NFC already, but for a vowel sign that might join the sign before it only
`unicodedata.normalize` says so, and takes longer than all the rest.  With the flags it is asked
about few texts.
"""

import unicodedata
from functools import cache

import numpy as np
import numpy.typing as npt

LETTERS_END = 0x40000  # planes 0 to 3 hold every letter
TABLE_END = 0xE1001  # then come tags and variation selectors; the last entry stands for the rest
SEPARATOR = 0x20
DROPPED = 0
EXPANDS = 1  # casefolds to several code points (ß): the whole text takes str.casefold first

CODE = (1 << 21) - 1  # the bits of an entry that say what the code point becomes; above them stand the flags
FIRST = 1 << 29  # joins a SECOND behind it, where `JOINING` has the two
SECOND = 1 << 30
DOUBTFUL = 1 << 31  # the normal form is more than a look-up

VIRAMA = 0x0D4D
ZWJ = 0x200D
CHILLU = {"ണ": "ൺ", "ന": "ൻ", "ര": "ർ", "ല": "ൽ", "ള": "ൾ", "ക": "ൿ"}

NUKTAS = "\u093c\u09bc\u0a3c\u0abc\u0b3c\u0c3c\u0cbc"

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

INDIC = range(0x0900, 0x0B80)
CONJOINING = (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))  # Hangul, which joins by arithmetic
VIRAMA_CLASS = 9

Codes = npt.NDArray[np.uint32]


@cache
def table() -> Codes:
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


@cache
def entries() -> Codes:
    """(TABLE_END,) uint32: `table()` with the flags FIRST, SECOND and DOUBTFUL.

    A text without a DOUBTFUL code point, and with no FIRST before a SECOND once what is DROPPED is
    gone, has as its normal form what the table makes of its code points, chillu sequences apart.
    NFC would change such a text only at nukta signs, which are dropped.
    """
    becomes = table()
    flags = np.zeros(TABLE_END, np.uint32)
    classes = np.fromiter(map(unicodedata.combining, map(chr, range(LETTERS_END))), np.uint8, LETTERS_END)
    flags[:LETTERS_END][(classes != 0) & (classes != VIRAMA_CLASS)] = DOUBTFUL
    flags[list(CONJOINING)] = DOUBTFUL
    for parts, code in _decompositions():
        if not unicodedata.is_normalized("NFC", chr(code)):
            flags[code] = DOUBTFUL
        elif classes[parts[1]]:
            flags[parts[1]] = DOUBTFUL
        else:
            flags[list(parts)] |= np.array([FIRST, SECOND], np.uint32)
    flags |= flags[becomes]
    flags[becomes == EXPANDS] = DOUBTFUL
    flags[[*map(ord, NUKTAS), *_composed_with_nukta()]] = 0
    return becomes | flags


@cache
def joining() -> Codes:
    """(n, 3) uint32: first, second, and what the two become.

    A FIRST and a SECOND that NFC composes; and a letter and the ZWJ that, with a virama between the
    two, are a chillu.
    """
    chillus = [(ord(letter), ZWJ, ord(chillu)) for letter, chillu in CHILLU.items()]
    signs = [(*parts, code) for parts, code in _decompositions() if entries()[parts[-1]] & SECOND]
    return np.array(chillus + signs, np.uint32)


@cache
def _decompositions() -> list[tuple[tuple[int, ...], int]]:
    """One or two code points, and the one that is canonically equivalent to them; Hangul apart."""
    told = [(unicodedata.decomposition(chr(code)), code) for code in range(LETTERS_END)]
    return [(tuple(int(part, 16) for part in parts.split()), code) for parts, code in told if parts and parts[0] != "<"]


def _composed_with_nukta() -> list[int]:
    """The code points of the Indic blocks that decompose to a letter and a nukta (क़, ড়, ਖ਼, ...)."""
    return [
        code
        for code in INDIC
        if chr(code) not in NUKTAS and any(n in unicodedata.normalize("NFD", chr(code)) for n in NUKTAS)
    ]


def _without_nukta(text: str) -> str:
    bare = "".join(c for c in unicodedata.normalize("NFD", text) if c not in NUKTAS)
    return unicodedata.normalize("NFC", bare)
