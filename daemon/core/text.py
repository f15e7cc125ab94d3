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
from dataclasses import dataclass
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

# Beside marks, the code points that grapheme clusters (Unicode Annex 29) join to what stands
# before: joiners, vowels of Thai and Lao, halfwidth voicing marks, regional indicators, skin tones,
# tags; those joined to what follows; and where the pictures are found that a ZWJ joins.
HANGING = (
    *map(ord, "\u200c\u200d\u0e33\u0eb3\uff9e\uff9f"),
    *range(0x1F1E6, 0x1F200),
    *range(0x1F3FB, 0x1F400),
    *range(0xE0020, 0xE0080),
)
LEADING = (
    *map(ord, "\r\u06dd\u070f\u0890\u0891\u08e2\u0d4e"),
    *range(0x0600, 0x0606),
    *(0x110BD, 0x110CD, 0x111C2, 0x111C3, 0x113D1, 0x1193F, 0x11941, 0x11D46),
    *range(0x11A84, 0x11A8A),
)
ZWJ = 0x200D
PICTURES = (0xA9, 0xAE)
PICTURES_BEGIN = 0x203C
MARKS = {"Mn", "Mc", "Me", "Cn"}  # a code point not assigned yet may be a mark of a later Unicode

Codes = npt.NDArray[np.uint32]
Offsets = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Located:
    """Where the words of a text stand in it.

    `text` is the text in NFC; its word n is `text[starts[n]:ends[n]]`.  `cuts` are offsets, ascending,
    0 and the text's length among them, where it can be parted: never within a word, nor within what a
    reader sees as one character.
    """

    text: str
    starts: Offsets
    ends: Offsets
    cuts: Offsets

    def span(self, first: int, end: int) -> tuple[int, int]:
        """Words [first, end) -> the offsets where they begin and end, moved outward to cuts."""
        start = self.cuts[np.searchsorted(self.cuts, self.starts[first], "right") - 1]
        stop = self.cuts[np.searchsorted(self.cuts, self.ends[end - 1])]
        return int(start), int(stop)


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


def located(text: str) -> Located:
    """Text -> the places of `tokens(text)`, in order: the tokens of each word's stretch are that token alone."""
    text = unicodedata.normalize("NFC", text)
    codes = _codes(text)
    mapped = table().take(codes, mode="clip")
    parts = mapped == SEPARATOR
    edges = np.flatnonzero(np.diff(parts, prepend=True, append=True)).reshape(-1, 2)
    kept = np.concatenate(([0], np.cumsum(~parts & (mapped != DROPPED))))
    starts, ends = edges[kept[edges[:, 1]] > kept[edges[:, 0]]].T  # a run of ignorables is no word
    marks = [ord(c) for c in set(text) if unicodedata.category(c) in MARKS]
    gaps = np.flatnonzero(parts[:-1] | parts[1:])
    before, after = codes[gaps], codes[gaps + 1]
    picture = (after >= PICTURES_BEGIN) | np.isin(after, PICTURES)
    joined = np.isin(before, LEADING) | np.isin(after, [*HANGING, *marks]) | (before == ZWJ) & picture
    return Located(text, starts, ends, np.concatenate(([0], gaps[~joined] + 1, [len(text)])))


def _mapped(text: str) -> Codes:
    return table().take(_codes(text), mode="clip")


def _codes(text: str) -> Codes:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


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
