"""How much of a text is disguised: letters that are read as others, unseen characters in words, control characters.

Nearly all texts have too few unusual characters to be disguised, as the counts of `core.text.scripts` show, and are not
read again.  Measuring one of the others takes 70 us.
"""

import re
import unicodedata
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.core.text.codepoints import DROPPED, NUKTAS, SEPARATOR, VIRAMA_CLASS
from neardup.core.text.look_alikes import ACCENTS, LATIN, map_foreign_letters, map_forms
from neardup.core.text.normalize import get_codes, load_table, nfc
from neardup.core.text.scripts import Characters
from neardup.records import Mark, MarkReason, Marks

LEAST = 0.05  # a smaller share is not measured
CONTROLS_END = 0xA0  # after the control characters of ASCII and Latin-1; those that are white space are not dropped
LETTERS = ((0x620, 0x700), (0x900, 0xE00))  # whole blocks, with their signs
JOINERS = (0x200C, 0x200D)
VIRAMAS = [code for code in range(0x900, 0xE00) if unicodedata.combining(chr(code)) == VIRAMA_CLASS]
WORD = re.compile(r"[^\W\d_]+")
LATIN_LETTER = re.compile(f"[{LATIN}]")
# Kinds of characters: LETTER to FOREIGN are letters, UNSEEN and JOINER are not seen.
OTHER, LETTER, VIRAMA, FORM, FOREIGN, UNSEEN, JOINER, ACCENT, CONTROL = range(9)

Kinds = npt.NDArray[np.uint8]


class Disguise(NamedTuple):
    """The share of a text's letters that look like others or are unseen, and that of control characters in the text."""

    look_alikes: float = 0.0
    controls: float = 0.0


def measure_disguise(text: str | bytes, counts: Characters) -> Disguise:
    """How much of a text with these counts is disguised; 0 where the share is LEAST or smaller.  Bytes are UTF-8.

    Letters of another script count where they stand in a word with Latin letters.  Joiners beside a virama do not.
    """
    if counts.unusual <= LEAST * (counts.letters + counts.unusual):
        return Disguise()
    if isinstance(text, bytes):
        text = text.decode()
    kinds = _classify_code_points().take(get_codes(text), mode="clip")
    count_by_kind = np.bincount(kinds, minlength=CONTROL + 1).tolist()
    unseen = _count_unseen_in_words(kinds) + (_count_free_accents(text) if count_by_kind[ACCENT] else 0)
    changed = count_by_kind[FORM] + (_count_foreign_letters(text) if count_by_kind[FOREIGN] else 0) + unseen
    letters = sum(count_by_kind[LETTER:UNSEEN]) + unseen
    return Disguise(_measure_share(changed, letters), _measure_share(count_by_kind[CONTROL], len(text)))


def mark_text(text: str | bytes, counts: Characters) -> Marks:
    """The marks of a text with these counts; bytes are UTF-8."""
    look_alikes, controls = measure_disguise(text, counts)
    marks = make_share_mark(MarkReason.LOOK_ALIKES, look_alikes) if look_alikes else ()
    return marks + (make_share_mark(MarkReason.CONTROLS, controls) if controls else ())


def make_share_mark(reason: MarkReason, share: float) -> Marks:
    """The mark whose detail is a share, 0 to 1."""
    return (Mark(reason, f"{100 * share:.0f} %"),)


def _measure_share(part: int, whole: int) -> float:
    return part / whole if part > LEAST * whole else 0.0


def _count_unseen_in_words(kinds: Kinds) -> int:
    """How many unseen characters stand after a letter, apart from joiners that form a conjunct."""
    kinds = np.concatenate(([OTHER], kinds, [OTHER]))
    unseen = np.flatnonzero((kinds == UNSEEN) | (kinds == JOINER))
    begins = np.diff(unseen, prepend=-1) > 1  # a run of unseen characters
    before = kinds[np.maximum.accumulate(np.where(begins, unseen, 0)) - 1]
    joins = (kinds[unseen] == JOINER) & ((kinds[unseen - 1] == VIRAMA) | (kinds[unseen + 1] == VIRAMA))
    return int(np.count_nonzero((before >= LETTER) & (before <= FOREIGN) & ~joins))


def _count_foreign_letters(text: str) -> int:
    """How many letters of other scripts look like Latin ones and stand in a word with Latin letters."""
    letters = map_foreign_letters()
    return sum(sum(ord(c) in letters for c in word) for word in WORD.findall(text) if LATIN_LETTER.search(word))


def _count_free_accents(text: str) -> int:
    """How many accents of a text do not compose with a letter."""
    return sum(first <= ord(c) < end for c in nfc(text) if c > "\u02ff" for first, end in ACCENTS)


@cache
def _classify_code_points() -> Kinds:
    """What each code point is, as the table of normal forms has it."""
    normal_forms = load_table()
    kinds = np.where(normal_forms == DROPPED, UNSEEN, LETTER).astype(np.uint8)
    kinds[normal_forms == SEPARATOR] = OTHER
    kinds[:CONTROLS_END][kinds[:CONTROLS_END] == UNSEEN] = CONTROL
    kinds[list(map_foreign_letters())] = FOREIGN
    kinds[list(map_forms())] = FORM
    for first, end in LETTERS:
        kinds[first:end] = LETTER
    kinds[list(map(ord, NUKTAS))] = LETTER
    kinds[VIRAMAS] = VIRAMA
    kinds[list(JOINERS)] = JOINER
    for first, end in ACCENTS:
        kinds[first:end] = ACCENT
    return kinds
