"""The consonant class of each letter, the same for a sound in every script that the languages of India are written in.

A text in one script and its transliteration into another share little but their consonants.  The classes fold what
scripts and habits of spelling write differently: vowels, the letters y and h, voice and aspiration, nasals, the places
of t and d, and s with j, z and c.  Tamil does not write voice, and has one letter for c and s; its zh is a letter that
other scripts write as l or z.  Bengali writes b for v, Odia has a y that is spoken j, Latin writes aspiration as h, and
the Arabic script writes v and y as vowels.

Devanagari, Bengali, Gurmukhi, Gujarati, Odia, Tamil, Telugu, Kannada and Malayalam share one layout of 128 code points.
"""

import unicodedata
from functools import cache

import numpy as np
import numpy.typing as npt

K, C, T, P, N, R, L = range(7)
CLASS_BITS = 3
NO_CONSONANT = 255  # in place of a class: a vowel, a digit, a sign, or a letter of another script

BLOCKS = range(0x0900, 0x0D80, 0x80)
LAYOUT = {  # offsets in a block
    K: (*range(0x15, 0x19),),
    C: (*range(0x1A, 0x1E), *range(0x36, 0x39), 0x34),
    T: (*range(0x1F, 0x23), *range(0x24, 0x28)),
    P: (*range(0x2A, 0x2E), 0x35),
    N: (0x01, 0x02, 0x19, 0x1E, 0x23, 0x28, 0x29, 0x2E),  # with candrabindu and anusvara
    R: (0x30, 0x31, 0x0B, 0x43, 0x44),  # with the vocalic r
    L: (0x32, 0x33),
}
# Those outside the layout, chillus among them, and the y that Odia speaks as j.
INDIC_LETTERS = {K: "ൿ", C: "ଯ", T: "ৎੜ", P: "ৱଵୱ", N: "ੰൺൻ", R: "ৰർ", L: "ൽൾ"}
LATIN_LETTERS = {K: "kgqx", C: "cjzs", T: "td", P: "pbfvw", N: "nm", R: "r", L: "l"}
ARABIC_LETTERS = {K: "کكقخگغڳ", C: "چجزذضظژسشصث", T: "تطٹدڈڑٿ", P: "بپفڤ", N: "نںمڻݨ", R: "رڔ", L: "لݪ"}

Classes = npt.NDArray[np.uint8]


@cache
def classify_consonants() -> Classes:
    """(n,) uint8: the class of each code point; NO_CONSONANT for what is none, also for those beyond n."""
    table = np.full(0x2000, NO_CONSONANT, np.uint8)
    for class_, offsets in LAYOUT.items():
        table[[block + offset for block in BLOCKS for offset in offsets]] = class_
    for letters in (INDIC_LETTERS, LATIN_LETTERS, ARABIC_LETTERS):
        for class_, characters in letters.items():
            table[list(map(ord, characters))] = class_
    for code in (*range(0x00C0, 0x0250), *range(0x1E00, 0x1F00)):  # Latin letters with diacritics
        table[code] = table[ord(unicodedata.normalize("NFD", chr(code))[0])]
    table[-1] = NO_CONSONANT
    return table
