"""Normalisation and tokens, safe for Indic scripts.

Two pages tell the same story whatever their Unicode form, joiners, nukta signs or case, so a
fingerprint is taken of the normalised text: NFC; Malayalam chillu sequences to their atomic
letters; default-ignorable code points (ZWJ, ZWNJ, BOM, soft hyphen, ...) removed; nukta signs
dropped; casefolded; NFC again.  A token is a maximal run of letters, marks and numbers (Unicode
L*, M*, N*).  `re`'s `\\w` will not do: it leaves the combining marks out, and tears every Indic
word apart.

What each code point becomes is in `letters`.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from neardup.core.text.codepoints import (
    CHILLU,
    CODE,
    DOUBTFUL,
    DROPPED,
    EXPANDS,
    FIRST,
    SECOND,
    SEPARATOR,
    TABLE_END,
    ZWJ,
    Codes,
    entries,
    table,
)

CHILLU_SEQUENCE = re.compile("([ണനരലളക])\u0d4d\u200d")  # letter, virama, ZWJ

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
PICTURES = (0xA9, 0xAE)
PICTURES_BEGIN = 0x203C
MARKS = {"Mn", "Mc", "Me", "Cn"}  # a code point not assigned yet may be a mark of a later Unicode

LONG = 10_000  # characters, of which marks alone are put in order within a tenth of a second
TOWER = 100  # so many marks on one letter are not writing

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
    settled = _settled(text)
    if not settled:
        text = nfc(text)
    if chr(ZWJ) in text:
        text = CHILLU_SEQUENCE.sub(lambda found: CHILLU[found[1]], text)
    codes = _mapped(text)
    if (codes == EXPANDS).any():
        codes = _mapped(text.casefold())
    folded: str = codes[codes != DROPPED].tobytes().decode("utf-32-le")
    if not settled:
        folded = nfc(folded)
    return folded.encode().split()


def located(text: str) -> Located:
    """Text -> the places of `tokens(text)`, in order: the tokens of each word's stretch are that token alone."""
    text = nfc(text)
    codes = codes_of(text)
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


def nfc(text: str) -> str:
    """A text in NFC, in time that grows with its length: the library's grows with the square of a run of marks."""
    if len(text) > LONG:
        text = _towers().sub(lambda tower: _ordered(tower[0]), text)
    return unicodedata.normalize("NFC", text)


@cache
def _towers() -> re.Pattern[str]:
    """Many code points on end that are, or begin with, marks that have an order."""
    marks = (chr(code) for code in range(TABLE_END) if unicodedata.category(chr(code))[0] == "M")
    ordered = "".join(c for c in marks if unicodedata.combining(unicodedata.normalize("NFD", c)[0]))
    return re.compile(f"[{ordered}]{{{TOWER},}}")


def _ordered(tower: str) -> str:
    """Marks in the canonical order (Unicode, D109)."""
    marks = "".join(unicodedata.normalize("NFD", mark) for mark in tower)
    return "".join(sorted(marks, key=unicodedata.combining))


def _settled(text: str) -> bool:
    """Whether NFC changes nothing here, before and after the table, but what the table drops."""
    found = entries().take(codes_of(text), mode="clip")
    if found.max(initial=0) < FIRST:
        return True
    kept = found[found & CODE != DROPPED]
    return not ((found & DOUBTFUL).any() or (kept[:-1] << 1 & kept[1:] & SECOND).any())  # a FIRST is half a SECOND


def _mapped(text: str) -> Codes:
    return table().take(codes_of(text), mode="clip")


def codes_of(text: str) -> Codes:
    """(len(text),) uint32: the code points, lone surrogates among them."""
    return np.array([text]).view(np.uint32)[: len(text)]  # a quarter of the time that encoding it takes
