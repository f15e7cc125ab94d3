"""Reads letters as a reader does: in another form, of another script, or as digits and signs that stand for them.

A word is read as Latin if it has a Latin letter, or if all its letters look like Latin ones; so a word of another
script stays what it is.  Only the letters that look alike change.

Digits and signs stand for letters in words of letters from a to z: `h0use`, `1ove`, `cl@sh`.  A digit is read as a
letter in a word of nothing but letters and such digits, if it stands between two letters, or if one or two of them
stand before three letters; then all digits of the word are.  So numbers stay, and words like `1st`, `90s`, `b2b` and
`mp3`.  A sign is read as a letter between two letters.
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

LETTERS_END = 0x20000
ACCENTS = ((0x0300, 0x0370), (0x0483, 0x048A), (0x1AB0, 0x1B00), (0x1DC0, 0x1E00), (0x20D0, 0x2100), (0xFE20, 0xFE30))
LATIN = "a-zA-Z0-9\u00c0-\u024f\u1e00-\u1eff"
OTHER = "\u0370-\u058f\u13a0-\u13ff\u1f00-\u1fff\u2c80-\u2cff\uab70-\uabbf\ua4d0-\ua4ff\U00010400-\U000104ff"
UNSEEN_BETWEEN = "".join(f"{chr(first)}-{chr(end - 1)}" for first, end in ACCENTS) + "\u00ad\u200b-\u200d\u2060\ufeff"

KIND, BESIDE_LATIN, ALL_ALIKE, AS_IT_IS = range(4)  # the rows of `build_readings`
OUTSIDE, NO_LETTER, LATIN_LETTER, OTHER_LETTER, ALIKE = range(5)  # kinds: outside a word that may be Latin, or in one

Readings = npt.NDArray[np.uint16]

DIGITS = {"0": "o", "1": "l", "3": "e", "4": "a", "5": "s", "7": "t"}
SIGNS = {"@": "a", "$": "s"}
MOST_LEADING_DIGITS = 2  # that stand for letters at the start of a word, if LETTERS_AFTER letters follow
LETTERS_AFTER = 3

IN_LETTERS = str.maketrans(DIGITS)
WORD = re.compile("[a-z0-9]+")
DISGUISED = re.compile(
    f"(?=[a-z{''.join(DIGITS)}]+$)(?:[0-9]{{1,{MOST_LEADING_DIGITS}}}[a-z]{{{LETTERS_AFTER}}}|[a-z0-9]*[a-z][0-9]+[a-z])"
)
BETWEEN_LETTERS = re.compile("(?<=a)@+(?=a)")
SIGN_CODES = np.array([*map(ord, SIGNS)], np.uint32)

Codes = npt.NDArray[np.uint32]


@cache
def load_look_alikes() -> dict[str, str]:
    """Each letter from a to z -> the characters that look like it."""
    return tomllib.loads(Path(__file__).with_name("look_alikes.toml").read_text(encoding="utf-8"))


@cache
def map_forms() -> dict[int, str]:
    """Each code point that is another form of letters or digits, whatever stands beside it -> those letters."""
    found = {}
    for code in range(0x80, LETTERS_END):
        character = chr(code)
        if unicodedata.decomposition(character).startswith("<"):
            plain = unicodedata.normalize("NFKC", character)
            if plain != character and all(unicodedata.category(c)[0] in "LMN" for c in plain):
                found[code] = plain
    for letter, others in load_look_alikes().items():
        for other in others:
            if not _is_foreign(other):
                found[ord(other)] = letter
                if other.upper().casefold() == other:
                    found[ord(other.upper())] = letter
    return {code: plain.translate(found) for code, plain in found.items()}


@cache
def map_foreign_letters() -> dict[int, str]:
    """Each letter of another script that looks like a Latin letter, perhaps with accents -> the Latin letter."""
    found = {
        ord(other): letter for letter, others in load_look_alikes().items() for other in others if _is_foreign(other)
    }
    for code in range(0x0370, 0x2000):
        base, *accents = list(unicodedata.normalize("NFD", chr(code)))
        if accents and ord(base) in found:
            found[code] = unicodedata.normalize("NFC", found[ord(base)] + "".join(accents))
    return found


def list_disguises() -> Iterator[int]:
    """The code points, those of `map_foreign_letters` apart, for which a text must be read by `undisguise`."""
    yield from (code for code, plain in map_forms().items() if len(plain) > 1)
    for first, end in ACCENTS:
        yield from range(first, end)


def remove_accents(text: str) -> str:
    """A text in NFC -> the text in NFC without accents that have not composed with a letter."""
    return unicodedata.normalize("NFC", text.translate(_map_accents())) if not text.isascii() else text


@cache
def _map_accents() -> dict[int, None]:
    return dict.fromkeys(code for first, end in ACCENTS for code in range(first, end))


def undisguise(text: str, plain: Mapping[int, str]) -> str:
    """A text in NFC -> the text that it looks like, in NFC; with the accents that it has.  `plain` is `map_forms()`."""
    text = unicodedata.normalize("NFC", text.translate(plain))
    return _compile_foreign_words().sub(lambda word: _read_as_latin(word[0]), text)


def _read_as_latin(word: str) -> str:
    """A word in Latin letters, if it has one or if all its letters look like Latin ones; otherwise as it is."""
    if re.search(f"[{LATIN}]", re.sub("[0-9]", "", word)):
        return word.translate(map_foreign_letters())
    folded = word.casefold()
    return (
        folded.translate(map_foreign_letters())
        if all(ord(c) in map_foreign_letters() or not c.isalpha() for c in folded)
        else word
    )


@cache
def _compile_foreign_words() -> re.Pattern[str]:
    """Matches words of Latin and other letters with at least one that looks like a Latin letter."""
    looks = "".join(map(chr, map_foreign_letters()))
    inside = f"[{LATIN}{OTHER}{UNSEEN_BETWEEN}{looks}]*"
    return re.compile(f"{inside}[{looks}]{inside}")


@cache
def build_readings() -> Readings:
    """(4, LETTERS_END) uint16: what decides how a word is read, for each code point.

    The rows are its KIND, the letter that it is read as BESIDE_LATIN letters (for digits and signs: in leetspeak), the
    one in a word whose letters are ALL_ALIKE, and the one in a word that is read AS_IT_IS: 0 for none.  A code point
    that is read as several letters is OUTSIDE.
    """
    inside = re.compile(f"[{LATIN}{OTHER}{UNSEEN_BETWEEN}{''.join(map(chr, map_foreign_letters()))}]")
    plain = {ord(character): character for character in inside.findall("".join(map(chr, range(LETTERS_END))))}
    plain |= {code: form for code, form in map_forms().items() if inside.fullmatch(form)}
    out = np.zeros((4, LETTERS_END), np.uint16)
    for code, character in plain.items():
        folded = character.casefold()
        looks = [map_foreign_letters().get(ord(letter), "\0") for letter in (character, folded[0])]
        if max(map(len, (folded, *looks))) == 1:
            out[:AS_IT_IS, code] = _classify(character), *map(ord, looks)
    for sign, letter in (SIGNS | DIGITS).items():
        out[BESIDE_LATIN, ord(sign)] = ord(letter)
    return out


def _classify(character: str) -> int:
    if ord(character) in map_foreign_letters():
        return ALIKE
    if character not in "0123456789" and re.fullmatch(f"[{LATIN}]", character):
        return LATIN_LETTER
    return OTHER_LETTER if character.casefold().isalpha() else NO_LETTER


def _is_foreign(letter: str) -> bool:
    return letter.isalpha() and "LATIN" not in unicodedata.name(letter)


def read_letter_digits(text: str) -> str:
    """A normalised text -> the text with letters for the digits that stand for them."""
    return WORD.sub(lambda word: word[0].translate(IN_LETTERS) if _is_disguised(word) else word[0], text)


def find_letter_signs(codes: Codes, normal_forms: Codes) -> list[int]:
    """(n,) code points that are not dropped, and their normal forms -> the places of signs that stand for letters."""
    is_letter = normal_forms - np.uint32(ord("a")) < 26
    kinds = np.where(is_letter, "a", np.where(np.isin(codes, SIGN_CODES), "@", " "))
    return [place for match in BETWEEN_LETTERS.finditer("".join(kinds.tolist())) for place in range(*match.span())]


def _is_disguised(word: re.Match[str]) -> bool:
    beside = word.string[max(word.start() - 1, 0) : word.start()] + word.string[word.end() : word.end() + 1]
    is_whole = all(unicodedata.category(character)[0] not in "LMN" for character in beside)
    return is_whole and DISGUISED.match(word[0]) is not None
