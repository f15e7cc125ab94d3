"""How much of a text is disguised: letters that are read as others, unseen characters in words, control characters.

Nearly all texts have too few unusual characters for that; a compiled function counts these first, in 2 us a story.
"""

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.core.text.codepoints import DROPPED, NUKTAS, SEPARATOR, VIRAMA_CLASS, Codes, table
from neardup.core.text.look_alikes import ACCENTS, LATIN, foreign, forms
from neardup.core.text.normalize import nfc

LEAST = 0.05  # a smaller share is not measured
CONTROLS_END = 0xA0  # after the control characters of ASCII and Latin-1; those that are white space are not dropped
LETTERS = ((0x620, 0x700), (0x900, 0xE00))  # whole blocks, with their signs
JOINERS = (0x200C, 0x200D)
VIRAMAS = tuple(code for code in range(0x900, 0xE00) if unicodedata.combining(chr(code)) == VIRAMA_CLASS)
WORD = re.compile(r"[^\W\d_]+")
LATIN_LETTER = re.compile(f"[{LATIN}]")
LETTER, FORM, UNSEEN, CONTROL = range(1, 5)

Kinds = npt.NDArray[np.uint8]


class Disguise(NamedTuple):
    """The share of a text's letters that look like others or are unseen, and that of control characters in the text."""

    look_alikes: float = 0.0
    controls: float = 0.0


def disguise(text: str, codes: Codes) -> Disguise:
    """How much of a text, whose code points are `codes`, is disguised; 0 where the share is LEAST or smaller.

    Letters of another script count where they stand in a word with Latin letters.  Joiners beside a virama do not.
    """
    count = _compiled_count()
    if count is not None:
        usual, unusual = map(int, count(codes))
        if unusual <= LEAST * (usual + unusual):
            return Disguise()
    kinds = _kinds().take(codes, mode="clip")
    unseen = int(np.count_nonzero(_in_words(codes, kinds))) + _free_accents(text)
    changed = int(np.count_nonzero(kinds == FORM)) + _foreign_letters(text) + unseen
    letters = int(np.count_nonzero((kinds == LETTER) | (kinds == FORM))) + unseen
    controls = int(np.count_nonzero(kinds == CONTROL))
    return Disguise(_share(changed, letters), _share(controls, len(codes)))


def _share(part: int, whole: int) -> float:
    return part / whole if part > LEAST * whole else 0.0


def _in_words(codes: Codes, kinds: Kinds) -> npt.NDArray[np.bool_]:
    """Which characters are unseen and stand after a letter, apart from joiners that form a conjunct."""
    unseen = kinds == UNSEEN
    places = np.arange(len(codes))
    before = np.maximum.accumulate(np.where(unseen, 0, places))
    virama = np.isin(codes, VIRAMAS)
    beside = np.append(virama[1:], False) | np.append(False, virama[:-1])
    joins = np.isin(codes, JOINERS) & beside
    inside: npt.NDArray[np.bool_] = unseen & np.isin(kinds[before], (LETTER, FORM)) & ~joins
    return inside


def _foreign_letters(text: str) -> int:
    """How many letters of other scripts look like Latin ones and stand in a word with Latin letters."""
    look_alikes, _ = _characters()
    if look_alikes.isdisjoint(text):
        return 0
    return sum(sum(c in look_alikes for c in word) for word in WORD.findall(text) if LATIN_LETTER.search(word))


def _free_accents(text: str) -> int:
    """How many accents of a text no letter has taken up."""
    _, accents = _characters()
    return 0 if accents.isdisjoint(text) else sum(character in accents for character in nfc(text))


@cache
def _characters() -> tuple[frozenset[str], frozenset[str]]:
    """The letters of other scripts that look like Latin ones, and the accents."""
    return frozenset(map(chr, foreign())), frozenset(chr(code) for first, end in ACCENTS for code in range(first, end))


@cache
def _kinds() -> Kinds:
    """What each code point is, as the table of normal forms has it: 0 for what is neither letter nor unseen."""
    normal_forms = table()
    kinds = np.where(normal_forms == DROPPED, UNSEEN, LETTER).astype(np.uint8)
    kinds[normal_forms == SEPARATOR] = 0
    kinds[:CONTROLS_END][kinds[:CONTROLS_END] == UNSEEN] = CONTROL
    kinds[list(forms())] = FORM
    for first, end in LETTERS:
        kinds[first:end] = LETTER
    kinds[list(map(ord, NUKTAS))] = LETTER
    for first, end in ACCENTS:
        kinds[first:end] = 0
    return kinds


@cache
def _compiled_count() -> Callable[[Codes], tuple[np.uint32, np.uint32]] | None:
    """The compiled function; None if the operating system forbids executable memory."""
    try:  # loads numba, 115 MB
        from neardup.core.text.disguise_kernel import count_unusual  # noqa: PLC0415
    except OSError:
        return None
    return count_unusual
