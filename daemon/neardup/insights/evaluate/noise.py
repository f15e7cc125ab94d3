"""Edits of code points: Unicode form, joiners, nukta, chillu, letter case, digits, scripts, and look-alike letters."""

import random
import re
import unicodedata

from neardup.core.text.codepoints import BA, CHILLU, NUKTAS
from neardup.core.text.normalize import tokens
from neardup.insights.evaluate.other_stories import OtherStories
from neardup.records import Language

BLOCKS = {  # the first code point of the Unicode block of the language's script
    Language("HINDI"): 0x0900,
    Language("MARATHI"): 0x0900,
    Language("BENGALI"): 0x0980,
    Language("PUNJABI"): 0x0A00,
    Language("GUJARATI"): 0x0A80,
    Language("ODIA"): 0x0B00,
    Language("TAMIL"): 0x0B80,
    Language("TELUGU"): 0x0C00,
    Language("MALAYALAM"): 0x0D00,
}
DIGITS_AT, VIRAMA_AT = 0x66, 0x4D  # within each block
DEVANAGARI, BENGALI = 0x0900, 0x0980
LETTERS = range(0x01, 0x4E)  # letters, vowel signs and the virama, by their places in a block
INSTEAD = {  # the sign at another place, for the places where a script may have none
    0x29: 0x28,
    0x31: 0x30,
    0x34: 0x33,
    0x0E: 0x0F,
    0x12: 0x13,
    0x46: 0x47,
    0x4A: 0x4B,
}
ZWNJ, ZWJ, SOFT_HYPHEN = "\u200c", "\u200d", "\u00ad"
MALAYALAM_VIRAMA = "\u0d4d"
VIRAMAS = "".join(chr(start + VIRAMA_AT) for start in sorted(set(BLOCKS.values())))
BEFORE_JOINERS = re.compile(f"[{VIRAMAS}](?![{ZWNJ}{ZWJ}])")
JOINERS = re.compile(f"{ZWNJ}|(?<![{''.join(CHILLU)}]{MALAYALAM_VIRAMA}){ZWJ}")  # not the ZWJ that is part of a chillu
BETWEEN_LETTERS = re.compile(r"(?<=[^\W\d_])(?=[^\W\d_])")
SHARE_HYPHENATED = 0.2
SHARE_LOOK_ALIKE = 0.1
COMPOSED = {  # a letter and a nukta, as two code points -> the same as one code point
    unicodedata.normalize("NFD", chr(code)): chr(code)
    for code in range(0x0900, 0x0B80)
    if unicodedata.decomposition(chr(code)).endswith(tuple(f"{ord(sign):04X}" for sign in NUKTAS))
}
NUKTA_SIGNS = re.compile(f"(?<!{chr(BA)})[{NUKTAS}]")
LOOK_ALIKES = str.maketrans("aceijopsxyABEHIJKMOPSTX", "асеіјорѕхуАВЕНІЈКМОРЅТХ")


def nfc(text: str, others: OtherStories, rng: random.Random) -> str | None:
    return _changed(text, unicodedata.normalize("NFC", text))


def nfd(text: str, others: OtherStories, rng: random.Random) -> str | None:
    return _changed(text, unicodedata.normalize("NFD", text))


def nfkc(text: str, others: OtherStories, rng: random.Random) -> str | None:
    """Apply NFKC to each line, unless it changes the words of the line: ½ would become 1⁄2, and ª would become a."""
    lines = [(line, unicodedata.normalize("NFKC", line)) for line in text.splitlines(keepends=True)]
    return _changed(text, "".join(new if new == line or tokens(new) == tokens(line) else line for line, new in lines))


def joiners_inserted(text: str, others: OtherStories, rng: random.Random) -> str | None:
    """Insert ZWJ or ZWNJ after every virama; in Malayalam ZWNJ only, because ZWJ would make a chillu."""

    def joined(virama: re.Match[str]) -> str:
        return virama[0] + (ZWNJ if virama[0] == MALAYALAM_VIRAMA else rng.choice((ZWNJ, ZWJ)))

    return _changed(text, BEFORE_JOINERS.sub(joined, text))


def joiners_removed(text: str, others: OtherStories, rng: random.Random) -> str | None:
    return _changed(text, JOINERS.sub("", text))


def soft_hyphens(text: str, others: OtherStories, rng: random.Random) -> str | None:
    """Insert soft hyphens into words, in a fifth of the places between two letters."""
    return _changed(text, BETWEEN_LETTERS.sub(lambda _: SOFT_HYPHEN if rng.random() < SHARE_HYPHENATED else "", text))


def nukta_composed(text: str, others: OtherStories, rng: random.Random) -> str | None:
    return _changed(text, _replace_each(text, COMPOSED))


def nukta_decomposed(text: str, others: OtherStories, rng: random.Random) -> str | None:
    return _changed(text, _replace_each(text, {composed: decomposed for decomposed, composed in COMPOSED.items()}))


def nukta_dropped(text: str, others: OtherStories, rng: random.Random) -> str | None:
    """Drop each nukta, but not that of a Bengali ba, which looks like a ra with it."""
    plain_letters = {composed: decomposed[0] for decomposed, composed in COMPOSED.items()}
    return _changed(text, NUKTA_SIGNS.sub("", _replace_each(text, plain_letters)))


def chillu_sequences(text: str, others: OtherStories, rng: random.Random) -> str | None:
    """Replace each chillu by its older spelling: letter, virama, ZWJ."""
    sequences = {chillu: letter + MALAYALAM_VIRAMA + ZWJ for letter, chillu in CHILLU.items()}
    return _changed(text, _replace_each(text, sequences))


def chillu_letters(text: str, others: OtherStories, rng: random.Random) -> str | None:
    """Replace each chillu spelled as letter, virama, ZWJ by its own code point."""
    chillus = {letter + MALAYALAM_VIRAMA + ZWJ: chillu for letter, chillu in CHILLU.items()}
    return _changed(text, _replace_each(text, chillus))


def upper_case(text: str, others: OtherStories, rng: random.Random) -> str | None:
    """Change letters to upper case, except those that then casefold to another letter: ı would become I."""
    return _changed(text, "".join(c.upper() if c.upper().casefold() == c.casefold() else c for c in text))


def digits(text: str, others: OtherStories, rng: random.Random) -> str | None:
    """Swap ASCII digits with those of the language's script; for a language not in BLOCKS, with Devanagari digits."""
    zero = BLOCKS.get(others.language, DEVANAGARI) + DIGITS_AT
    pairs = [(ord("0") + n, zero + n) for n in range(10)]
    return _changed(text, text.translate(dict(pairs) | {other: ascii_digit for ascii_digit, other in pairs}))


def other_script(text: str, others: OtherStories, rng: random.Random) -> str | None:
    """Write a text in Devanagari, or in Bengali script if that is its own; None for a language not in BLOCKS."""
    start = BLOCKS.get(others.language)
    if start is None:
        return None
    return _changed(text, transliterated(text, start, BENGALI if start == DEVANAGARI else DEVANAGARI))


def transliterated(text: str, start: int, to: int) -> str:
    """Replace each letter and vowel sign of one block of Unicode by the one at its place in another."""
    return "".join(_sign(to, ord(c) - start) if ord(c) - start in LETTERS else c for c in text)


def _sign(block: int, place: int) -> str:
    sign = chr(block + place)
    return sign if unicodedata.category(sign) != "Cn" else chr(block + INSTEAD.get(place, place))


def look_alikes(text: str, others: OtherStories, rng: random.Random) -> str | None:
    """Replace Latin letters by the Cyrillic ones that look the same, in a tenth of the words of an English text."""
    if others.language != "ENGLISH":
        return None
    pieces = re.split(r"(\s+)", text)
    places = [n for n, word in enumerate(pieces) if word.translate(LOOK_ALIKES) != word]
    for n in rng.sample(places, round(SHARE_LOOK_ALIKE * len(places))):
        pieces[n] = pieces[n].translate(LOOK_ALIKES)
    return _changed(text, "".join(pieces))


def _changed(text: str, new: str) -> str | None:
    return new if new != text else None


def _replace_each(text: str, replacements: dict[str, str]) -> str:
    for old, new in replacements.items():
        text = text.replace(old, new)
    return text
