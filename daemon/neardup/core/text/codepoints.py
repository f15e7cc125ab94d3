"""The table that maps each code point to its normal form, with flags for the code points that need more.

Nearly all of normalisation maps one code point to at most one other, so one table, built from `unicodedata`,
does it; `normalize` keeps it in a file.  The flags mark the exceptions: code points that compose with the next one, and
those BEYOND_TABLE, whose words must go through `unicodedata.normalize` and `str.casefold`.  These take
longer than all the rest of the work, and most texts need neither, because they are in NFC already.

BEYOND_TABLE are about 3,700 code points: letters that look like others (see `look_alikes`); combining marks other
than viramas and nuktas (Arabic harakat such as fatha, Devanagari stress signs, Telugu length marks, Latin
combining accents); letters that casefold to several code points (ß, İ, և); Hangul vowels and finals written as
jamo; and code points that NFC replaces (Tibetan compounds, Greek letters with oxia, compatibility ideographs). The
words with one of them take the slow path; see `neardup.core.fingerprint.compute` for the cost.  The native
core reads the look-alike letters itself, and the marks that stand alone on a letter.
"""

import unicodedata
from functools import cache

import numpy as np
import numpy.typing as npt

from neardup.core.text.look_alikes import (
    ALIKE,
    ALL_ALIKE,
    DIGITS,
    KIND,
    SIGNS,
    Readings,
    build_readings,
    list_disguises,
    map_foreign_letters,
    map_forms,
)

LETTERS_END = 0x40000  # planes 0 to 3 hold every letter
# Within them, ideographs, Hangul syllables and private use: they have no case and no combining class, and `unicodedata`
# lists no decomposition of them.
UNCASED = (range(0x3400, 0xA000), range(0xAC00, 0xF900), range(0x20000, 0x2F800), range(0x2FA20, LETTERS_END))
TABLE_END = 0xE1001  # after tags and variation selectors; the last entry serves all code points above
SEPARATOR = 0x20
DROPPED = 0
EXPANDS = 1  # reads as several code points (ß, ﬁ): its word is read by `undisguise` and str.casefold first

CODE = (1 << 21) - 1  # the bits of an entry with the code point's normal form; the flags are above them
COMBINING = 1 << 26  # a mark, which canonical ordering may exchange for one beside it
LONE_MARK = 1 << 27  # BEYOND_TABLE, but not for the native core, where no other COMBINING stands beside it
LOOK_ALIKE = 1 << 28  # its word decides whether it is another letter; BEYOND_TABLE, but not for the native core
FIRST = 1 << 29  # composes with a SECOND after it, if `list_compositions()` lists the two
SECOND = 1 << 30
BEYOND_TABLE = 1 << 31  # the table alone does not normalise a text with this code point

ZWJ = 0x200D
CHILLU = {"ണ": "ൺ", "ന": "ൻ", "ര": "ർ", "ല": "ൽ", "ള": "ൾ", "ക": "ൿ"}

BA, NUKTA, RA = 0x09AC, 0x09BC, 0x09B0  # of Bengali: ba with a nukta looks the same as ra

NUKTAS = "\u093c\u09bc\u0a3c\u0abc\u0b3c\u0c3c\u0cbc"

# Default_Ignorable_Code_Point of DerivedCoreProperties.txt, Unicode 14.
IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u3164\ufeff\uffa0",
    ("\u180b", "\u180f"),
    ("\u200b", "\u200f"),
    ("\u202a", "\u202e"),
    ("\u2060", "\u206f"),
    ("\ufe00", "\ufe0f"),
    ("\ufff0", "\ufffc"),
    # Control characters that are no white space, and noncharacters: a browser shows nothing for them.
    ("\x00", "\x08"),
    ("\x0e", "\x1f"),
    ("\x7f", "\x84"),
    ("\x86", "\x9f"),
    ("\ufdd0", "\ufdef"),
    "\ufffe\uffff\U0001fffe\U0001ffff\U0002fffe\U0002ffff\U0003fffe\U0003ffff",
    ("\U0001bca0", "\U0001bca3"),
    ("\U0001d173", "\U0001d17a"),
    ("\U000e0000", "\U000e0fff"),
)

# Two signs that look like one independent vowel, and that vowel.
TWO_SIGNS = {
    "\u0905\u093e": "\u0906", "\u0905\u0949": "\u0911", "\u0905\u094b": "\u0913", "\u0905\u094c": "\u0914",
    "\u0906\u0945": "\u0911", "\u0906\u0947": "\u0913", "\u0906\u0948": "\u0914", "\u090f\u0945": "\u090d",
    "\u090f\u0947": "\u0910", "\u0985\u09be": "\u0986", "\u0a05\u0a3e": "\u0a06", "\u0a05\u0a48": "\u0a10",
    "\u0a05\u0a4c": "\u0a14", "\u0a72\u0a3f": "\u0a07", "\u0a72\u0a40": "\u0a08", "\u0a72\u0a47": "\u0a0f",
    "\u0a73\u0a41": "\u0a09", "\u0a73\u0a42": "\u0a0a", "\u0a85\u0abe": "\u0a86", "\u0a85\u0ac5": "\u0a8d",
    "\u0a85\u0ac7": "\u0a8f", "\u0a85\u0ac8": "\u0a90", "\u0a85\u0acb": "\u0a93", "\u0a85\u0acc": "\u0a94",
    "\u0a86\u0ac5": "\u0a91", "\u0a86\u0ac7": "\u0a93", "\u0a86\u0ac8": "\u0a94", "\u0b05\u0b3e": "\u0b06",
    "\u0d07\u0d57": "\u0d08", "\u0d09\u0d57": "\u0d0a", "\u0d0e\u0d46": "\u0d10", "\u0d12\u0d3e": "\u0d13",
    "\u0d12\u0d57": "\u0d14",
}  # fmt: skip

# Digits that look like a letter or a sign of their script; numbers are read as these too.
LIKE_LETTERS = {
    "\u0be7": "\u0b95", "\u0be8": "\u0b89", "\u0bea": "\u0b9a", "\u0bed": "\u0b8e", "\u0bee": "\u0b85",
    "\u0bf0": "\u0baf", "\u0ae8": "\u0ab0", "\u0b66": "\u0b20", "\u0d66": "\u0d20", "\u0c66": "\u0c02",
    "\u0ce6": "\u0c82",
}  # fmt: skip

INDIC = range(0x0900, 0x0B80)
JAMO = (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))  # Hangul vowels and finals, which compose by arithmetic
VIRAMA_CLASS = 9

Codes = npt.NDArray[np.uint32]
# What normalises a text: a table of normal forms with flags, `list_compositions()`, and `look_alikes.build_readings()`.
Tables = tuple[Codes, Codes, Readings]


@cache
def build_table() -> Codes:
    """(TABLE_END,) uint32: the normal form of each code point, or SEPARATOR, DROPPED or EXPANDS."""
    categories = "".join(map(unicodedata.category, map(chr, range(LETTERS_END)))).encode()
    word = np.isin(np.frombuffer(categories, "S1")[::2], [b"L", b"M", b"N"])
    out = np.full(TABLE_END, SEPARATOR, np.uint32)
    out[:LETTERS_END][word] = np.flatnonzero(word)
    for code in _list_cased_codes():
        folded = chr(code).casefold()
        if word[code] and folded != chr(code):
            out[code] = ord(folded) if len(folded) == 1 else EXPANDS
    for code in _list_composed_with_nukta():
        out[code] = ord(_remove_nukta(chr(code)))
    for code, plain in map_forms().items():
        out[code] = out[ord(plain)] if len(plain) == 1 else EXPANDS
    for digit, letter in LIKE_LETTERS.items():
        out[ord(digit)] = out[ord(letter)]
    for nukta in NUKTAS:
        out[ord(nukta)] = DROPPED
    for entry in IGNORABLE:
        codes = map(ord, entry) if isinstance(entry, str) else range(ord(entry[0]), ord(entry[1]) + 1)
        out[list(codes)] = DROPPED
    return out


@cache
def build_flagged_table() -> Codes:
    """(TABLE_END,) uint32: `build_table()` with the flags LOOK_ALIKE, FIRST, SECOND and BEYOND_TABLE.

    The table alone normalises a text, chillu sequences apart, if the text has no code point BEYOND_TABLE
    and, without its DROPPED code points, no FIRST directly before a SECOND and no LOOK_ALIKE before a letter from
    a to z.  NFC would change such a text only at nukta signs, which are dropped.
    """
    normal_forms = build_table()
    flags = np.zeros(TABLE_END, np.uint32)
    classes = np.zeros(LETTERS_END, np.uint8)
    classes[_list_cased_codes()] = np.fromiter(map(unicodedata.combining, map(chr, _list_cased_codes())), np.uint8)
    flags[:LETTERS_END][classes != 0] = COMBINING
    flags[:LETTERS_END][(classes != 0) & (classes != VIRAMA_CLASS)] |= BEYOND_TABLE | LONE_MARK
    flags[list(JAMO)] = BEYOND_TABLE
    dropped = {*map(ord, NUKTAS), *list_disguises()}
    for parts, code in _list_decompositions():
        if not unicodedata.is_normalized("NFC", chr(code)):
            flags[code] = BEYOND_TABLE
        elif parts[1] not in dropped:
            flags[list(parts)] |= np.array([FIRST, SECOND], np.uint32)
    for signs in TWO_SIGNS:
        flags[[*map(ord, signs)]] |= np.array([FIRST, SECOND], np.uint32)
    flags[list(list_disguises())] = BEYOND_TABLE
    flags |= flags[normal_forms]
    flags[normal_forms == EXPANDS] = BEYOND_TABLE
    alike = np.flatnonzero((build_readings()[KIND] == ALIKE) | (build_readings()[ALL_ALIKE] != 0))
    flags[alike[flags[alike] & BEYOND_TABLE == 0]] |= LOOK_ALIKE
    flags[[*alike.tolist(), *map_foreign_letters()]] |= BEYOND_TABLE
    flags[np.isin(normal_forms, [*map(ord, DIGITS)])] |= LOOK_ALIKE
    flags[[*map(ord, SIGNS)]] |= LOOK_ALIKE
    flags[[*map(ord, NUKTAS), *_list_composed_with_nukta()]] = 0
    flags[[BA, NUKTA]] = FIRST, SECOND
    return normal_forms | flags


@cache
def list_compositions() -> Codes:
    """(n, 3) uint32: two code points, and the one they compose to.

    Either a FIRST and a SECOND that NFC composes, or that look the same as one; or a letter and the ZWJ of a chillu
    sequence, which has a virama between the two.
    """
    chillus = [(ord(letter), ZWJ, ord(chillu)) for letter, chillu in CHILLU.items()]
    signs = [(*parts, code) for parts, code in _list_decompositions() if _is_second(parts[-1])]
    vowels = [(*map(ord, signs), ord(vowel)) for signs, vowel in TWO_SIGNS.items()]
    return np.array([*chillus, *signs, *vowels, (BA, DROPPED, RA)], np.uint32)


def _is_second(code: int) -> bool:
    return bool(build_flagged_table()[code] & SECOND) and code != NUKTA


@cache
def _list_decompositions() -> list[tuple[tuple[int, ...], int]]:
    """Canonical decompositions: one or two code points, and the code point equivalent to them; without Hangul."""
    decompositions = [(unicodedata.decomposition(chr(code)), code) for code in _list_cased_codes()]
    return [
        (tuple(int(part, 16) for part in parts.split()), code)
        for parts, code in decompositions
        if parts and parts[0] != "<"
    ]


def _list_cased_codes() -> list[int]:
    """The code points that are not UNCASED."""
    cased = np.ones(LETTERS_END, np.bool_)
    for uncased in UNCASED:
        cased[uncased.start : uncased.stop] = False
    return np.flatnonzero(cased).tolist()


def _list_composed_with_nukta() -> list[int]:
    """The code points of the Indic blocks that decompose to a letter and a nukta (क़, ড়, ਖ਼, ...)."""
    return [
        code
        for code in INDIC
        if chr(code) not in NUKTAS and any(n in unicodedata.normalize("NFD", chr(code)) for n in NUKTAS)
    ]


def _remove_nukta(text: str) -> str:
    without = "".join(c for c in unicodedata.normalize("NFD", text) if c not in NUKTAS)
    return unicodedata.normalize("NFC", without)
