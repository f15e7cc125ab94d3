"""Edits of code points: Unicode form, joiners, nukta, chillu, letter case, digits, and look-alike letters."""

import random
import re
import unicodedata

from neardup.core.text.codepoints import CHILLU, NUKTAS
from neardup.core.text.normalize import tokens
from neardup.insights.evaluate.other_stories import OtherStories
from neardup.records import Language

BLOCKS = {
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
FULLWIDTH_DIGITS = 0xFF10
ZWNJ, ZWJ, SOFT_HYPHEN = "\u200c", "\u200d", "\u00ad"
MALAYALAM_VIRAMA = "\u0d4d"
VIRAMAS = "".join(chr(start + VIRAMA_AT) for start in sorted(set(BLOCKS.values())))
BEFORE_JOINERS = re.compile(f"[{VIRAMAS}](?![{ZWNJ}{ZWJ}])")
JOINERS = re.compile(f"{ZWNJ}|(?<![{''.join(CHILLU)}]{MALAYALAM_VIRAMA}){ZWJ}")  # not the ZWJ that is part of a chillu
BETWEEN_LETTERS = re.compile(r"(?<=[^\W\d_])(?=[^\W\d_])")
SHARE_HYPHENATED = 0.2
SHARE_LOOK_ALIKE = 0.1
COMPOSED = {
    unicodedata.normalize("NFD", chr(code)): chr(code)
    for code in range(0x0900, 0x0B80)
    if unicodedata.decomposition(chr(code)).endswith(tuple(f"{ord(sign):04X}" for sign in NUKTAS))
}
LOOK_ALIKES = str.maketrans("aceijopsxyABEHIJKMOPSTX", "асеіјорѕхуАВЕНІЈКМОРЅТХ")


def nfc(text: str, others: OtherStories, rng: random.Random) -> str | None:
    return _changed(text, unicodedata.normalize("NFC", text))


def nfd(text: str, others: OtherStories, rng: random.Random) -> str | None:
    return _changed(text, unicodedata.normalize("NFD", text))


def nfkc(text: str, others: OtherStories, rng: random.Random) -> str | None:
    """Apply NFKC line by line, except to lines where it changes the words: ½ would become 1⁄2, and ª an a."""
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
    """Insert a soft hyphen between a fifth of the adjacent letters."""
    return _changed(text, BETWEEN_LETTERS.sub(lambda _: SOFT_HYPHEN if rng.random() < SHARE_HYPHENATED else "", text))


def nukta_composed(text: str, others: OtherStories, rng: random.Random) -> str | None:
    return _changed(text, _replace_each(text, COMPOSED))


def nukta_decomposed(text: str, others: OtherStories, rng: random.Random) -> str | None:
    return _changed(text, _replace_each(text, {one: two for two, one in COMPOSED.items()}))


def nukta_dropped(text: str, others: OtherStories, rng: random.Random) -> str | None:
    letters = {one: two[0] for two, one in COMPOSED.items()}
    return _changed(text, _replace_each(text, letters | dict.fromkeys(NUKTAS, "")))


def chillu_sequences(text: str, others: OtherStories, rng: random.Random) -> str | None:
    return _changed(text, _replace_each(text, {one: letter + MALAYALAM_VIRAMA + ZWJ for letter, one in CHILLU.items()}))


def chillu_letters(text: str, others: OtherStories, rng: random.Random) -> str | None:
    return _changed(text, _replace_each(text, {letter + MALAYALAM_VIRAMA + ZWJ: one for letter, one in CHILLU.items()}))


def upper_case(text: str, others: OtherStories, rng: random.Random) -> str | None:
    """Change letters to upper case, except those that do not casefold back: ı would become I."""
    return _changed(text, "".join(c.upper() if c.upper().casefold() == c.casefold() else c for c in text))


def digits(text: str, others: OtherStories, rng: random.Random) -> str | None:
    """Swap ASCII digits with those of the language's script; in English, with fullwidth digits."""
    script = BLOCKS.get(others.language)
    zero = script + DIGITS_AT if script else FULLWIDTH_DIGITS
    pairs = [(ord("0") + n, zero + n) for n in range(10)]
    return _changed(text, text.translate(dict(pairs) | {native: western for western, native in pairs}))


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
