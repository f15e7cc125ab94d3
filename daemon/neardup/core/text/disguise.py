"""How much of a text is disguised: letters that are read as others, unseen characters in words, control characters.

Nearly all texts have too few unusual characters for that, as the counts of `core.text.scripts` say.  The others
take 70 us.
"""

import re
import unicodedata
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.core.text.codepoints import DROPPED, NUKTAS, SEPARATOR, VIRAMA_CLASS
from neardup.core.text.look_alikes import ACCENTS, LATIN, foreign, forms
from neardup.core.text.normalize import codes_of, nfc, table
from neardup.core.text.scripts import Characters
from neardup.records import Mark, MarkReason, Marks

LEAST = 0.05  # a smaller share is not measured
CONTROLS_END = 0xA0  # after the control characters of ASCII and Latin-1; those that are white space are not dropped
LETTERS = ((0x620, 0x700), (0x900, 0xE00))  # whole blocks, with their signs
JOINERS = (0x200C, 0x200D)
VIRAMAS = [code for code in range(0x900, 0xE00) if unicodedata.combining(chr(code)) == VIRAMA_CLASS]
WORD = re.compile(r"[^\W\d_]+")
LATIN_LETTER = re.compile(f"[{LATIN}]")
OTHER, LETTER, VIRAMA, FORM, FOREIGN, UNSEEN, JOINER, ACCENT, CONTROL = range(9)  # the letters before the unseen

Kinds = npt.NDArray[np.uint8]


class Disguise(NamedTuple):
    """The share of a text's letters that look like others or are unseen, and that of control characters in the text."""

    look_alikes: float = 0.0
    controls: float = 0.0


def disguise(text: str | bytes, counts: Characters) -> Disguise:
    """How much of a text with these counts is disguised; 0 where the share is LEAST or smaller.  Bytes are UTF-8.

    Letters of another script count where they stand in a word with Latin letters.  Joiners beside a virama do not.
    """
    if counts.unusual <= LEAST * (counts.letters + counts.unusual):
        return Disguise()
    if isinstance(text, bytes):
        text = text.decode()
    kinds = _kinds().take(codes_of(text), mode="clip")
    of_kind = np.bincount(kinds, minlength=CONTROL + 1).tolist()
    unseen = _count_unseen_in_words(kinds) + (_count_free_accents(text) if of_kind[ACCENT] else 0)
    changed = of_kind[FORM] + (_count_foreign_letters(text) if of_kind[FOREIGN] else 0) + unseen
    letters = sum(of_kind[LETTER:UNSEEN]) + unseen
    return Disguise(_share(changed, letters), _share(of_kind[CONTROL], len(text)))


def text_marks(text: str | bytes, counts: Characters) -> Marks:
    """The marks of a text with these counts; bytes are UTF-8."""
    look_alikes, controls = disguise(text, counts)
    marks = share_mark(MarkReason.LOOK_ALIKES, look_alikes) if look_alikes else ()
    return marks + (share_mark(MarkReason.CONTROLS, controls) if controls else ())


def share_mark(reason: MarkReason, share: float) -> Marks:
    """The mark whose detail is a share, 0 to 1."""
    return (Mark(reason, f"{100 * share:.0f} %"),)


def _share(part: int, whole: int) -> float:
    return part / whole if part > LEAST * whole else 0.0


def _count_unseen_in_words(kinds: Kinds) -> int:
    """How many unseen characters stand after a letter, apart from joiners that form a conjunct."""
    kinds = np.concatenate(([OTHER], kinds, [OTHER]))
    unseen = np.flatnonzero((kinds == UNSEEN) | (kinds == JOINER))
    begins = np.diff(unseen, prepend=-1) > 1  # a run of them
    before = kinds[np.maximum.accumulate(np.where(begins, unseen, 0)) - 1]
    joins = (kinds[unseen] == JOINER) & ((kinds[unseen - 1] == VIRAMA) | (kinds[unseen + 1] == VIRAMA))
    return int(np.count_nonzero((before >= LETTER) & (before <= FOREIGN) & ~joins))


def _count_foreign_letters(text: str) -> int:
    """How many letters of other scripts look like Latin ones and stand in a word with Latin letters."""
    letters = foreign()
    return sum(sum(ord(c) in letters for c in word) for word in WORD.findall(text) if LATIN_LETTER.search(word))


def _count_free_accents(text: str) -> int:
    """How many accents of a text no letter has taken up."""
    return sum(first <= ord(c) < end for c in nfc(text) if c > "\u02ff" for first, end in ACCENTS)


@cache
def _kinds() -> Kinds:
    """What each code point is, as the table of normal forms has it."""
    normal_forms = table()
    kinds = np.where(normal_forms == DROPPED, UNSEEN, LETTER).astype(np.uint8)
    kinds[normal_forms == SEPARATOR] = OTHER
    kinds[:CONTROLS_END][kinds[:CONTROLS_END] == UNSEEN] = CONTROL
    kinds[list(foreign())] = FOREIGN
    kinds[list(forms())] = FORM
    for first, end in LETTERS:
        kinds[first:end] = LETTER
    kinds[list(map(ord, NUKTAS))] = LETTER
    kinds[VIRAMAS] = VIRAMA
    kinds[list(JOINERS)] = JOINER
    for first, end in ACCENTS:
        kinds[first:end] = ACCENT
    return kinds
