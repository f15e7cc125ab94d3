"""Reads digits and signs that stand for letters in words of letters from a to z: `h0use`, `1ove`, `cl@sh`.

A digit is read as a letter in a word of nothing but letters and such digits, if it stands between two letters, or if
one or two of them stand before three letters; then all digits of the word are.  So numbers stay, and words like `1st`,
`90s`, `b2b` and `mp3`.  A sign is read as a letter between two letters.
"""

import re
import unicodedata

import numpy as np
import numpy.typing as npt

DIGITS = {"0": "o", "1": "l", "3": "e", "4": "a", "5": "s", "7": "t"}
SIGNS = {"@": "a", "$": "s"}
LEADING = 2  # digits at the most that stand for letters at the start of a word,
LETTERS = 3  # before so many letters

IN_LETTERS = str.maketrans(DIGITS)
WORD = re.compile("[a-z0-9]+")
DISGUISED = re.compile(
    f"(?=[a-z{''.join(DIGITS)}]+$)(?:[0-9]{{1,{LEADING}}}[a-z]{{{LETTERS}}}|[a-z0-9]*[a-z][0-9]+[a-z])"
)
BETWEEN_LETTERS = re.compile("(?<=a)@+(?=a)")
SIGN_CODES = np.array([*map(ord, SIGNS)], np.uint32)

Codes = npt.NDArray[np.uint32]


def letter_digits_read(text: str) -> str:
    """A normalised text -> the text with letters for the digits that stand for them."""
    return WORD.sub(lambda word: word[0].translate(IN_LETTERS) if _is_disguised(word) else word[0], text)


def letter_signs(codes: Codes, normal_forms: Codes) -> list[int]:
    """(n,) code points that are not dropped, and their normal forms -> the places of signs that stand for letters."""
    is_letter = normal_forms - np.uint32(ord("a")) < 26
    kinds = np.where(is_letter, "a", np.where(np.isin(codes, SIGN_CODES), "@", " "))
    return [place for match in BETWEEN_LETTERS.finditer("".join(kinds.tolist())) for place in range(*match.span())]


def _is_disguised(word: re.Match[str]) -> bool:
    beside = word.string[max(word.start() - 1, 0) : word.start()] + word.string[word.end() : word.end() + 1]
    is_whole = all(unicodedata.category(character)[0] not in "LMN" for character in beside)
    return is_whole and DISGUISED.match(word[0]) is not None
