r"""Normalisation and tokenisation that are safe for Indic scripts.

Two pages hold the same story whatever their Unicode form, joiners, nukta signs or case, so fingerprints are
computed from the normalised text: NFC; Bengali ra for ba with a nukta; signs between letters, and letters that look
like others, read as those; Malayalam chillu sequences to their atomic letters; default-ignorable code points (ZWJ,
ZWNJ, BOM, soft hyphen, ...) removed; nukta signs dropped; casefolded; NFC again; digits that stand for letters read as
those. A token is a maximal run of letters, marks and numbers (Unicode L*, M*, N*). The `\w` of `re` does not
match combining marks, so it would split nearly every Indic word.

The normal form of each code point is in the tables of `codepoints`.  They are read from the files beside this module,
which takes no time: they are mapped into memory, which processes share and of which each reads what its texts need.
`python -m neardup.core.text.normalize` writes the files.  They are of one version of Unicode; under a Python with
another one the tables are computed.
"""

import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from neardup.core.text import codepoints, look_alikes
from neardup.core.text.codepoints import (
    BA,
    BEYOND_TABLE,
    CHILLU,
    CODE,
    COMBINING,
    DROPPED,
    EXPANDS,
    LETTERS_END,
    LOOK_ALIKE,
    NUKTA,
    RA,
    SECOND,
    SEPARATOR,
    TABLE_END,
    TWO_SIGNS,
    ZWJ,
    Codes,
    Tables,
)
from neardup.core.text.look_alikes import (
    ACCENTS,
    SIGN_CODES,
    SIGNS,
    build_readings,
    find_letter_signs,
    read_letter_digits,
    remove_accents,
    undisguise,
)

LOOKS_LIKE_ONE = re.compile("|".join(TWO_SIGNS))
CHILLU_SEQUENCE = re.compile("([ണനരലളക])\u0d4d\u200d")  # letter, virama, ZWJ

# Grapheme clusters (Unicode Annex 29).  Beside marks, EXTENDERS belong to the character before them: joiners, vowels of
# Thai and Lao, halfwidth voicing marks, regional indicators, skin tones, tags.  PREPENDERS belong to the character
# after them.  PICTOGRAPHS and all code points from FIRST_PICTOGRAPH on belong to a ZWJ before them.
EXTENDERS = (
    *map(ord, "\u200c\u200d\u0e33\u0eb3\uff9e\uff9f"),
    *range(0x1F1E6, 0x1F200),
    *range(0x1F3FB, 0x1F400),
    *range(0xE0020, 0xE0080),
)
PREPENDERS = (
    *map(ord, "\r\u06dd\u070f\u0890\u0891\u08e2\u0d4e"),
    *range(0x0600, 0x0606),
    *(0x110BD, 0x110CD, 0x111C2, 0x111C3, 0x113D1, 0x1193F, 0x11941, 0x11D46),
    *range(0x11A84, 0x11A8A),
)
PICTOGRAPHS = (0xA9, 0xAE)
FIRST_PICTOGRAPH = 0x203C
MARKS = {"Mn", "Mc", "Me", "Cn"}  # an unassigned code point may be a mark in a later version of Unicode

LONG_TEXT = 10_000  # characters; a text this long takes a tenth of a second to sort if it is all marks
LONG_MARK_RUN = 100  # no writing system puts so many marks on one letter

Offsets = npt.NDArray[np.intp]

FOLDER = Path(__file__).with_name("tables")  # has a folder for each version of Unicode
TABLES = "flagged_table", "compositions", "readings"
FORMED, FORMS = "formed", "forms"
BETWEEN_FORMS = " "  # forms, which have no spaces


class Located(Struct, frozen=True):
    """The offsets of the words of a text.

    `text` is the text in NFC; its word n is `text[starts[n]:ends[n]]`.  `cuts` are the offsets, ascending, at
    which the text can be split: 0, its length, and those within neither a word nor a grapheme cluster.
    """

    text: str
    starts: Offsets
    ends: Offsets
    cuts: Offsets

    def find_span(self, first: int, end: int) -> tuple[int, int]:
        """Words [first, end) -> the offset where they start and the one where they end, both moved outward to cuts."""
        start = self.cuts[np.searchsorted(self.cuts, self.starts[first], "right") - 1]
        stop = self.cuts[np.searchsorted(self.cuts, self.ends[end - 1])]
        return int(start), int(stop)


def tokenize(text: str) -> list[bytes]:
    """Text -> its normalised words in UTF-8, in reading order."""
    codes = get_codes(text)
    beyond = _find_beyond_table(codes)
    if len(beyond):
        chunks = text.split(" ")
        at = sorted({*np.cumsum(codes == SEPARATOR)[beyond].tolist()})
        for place, chunk in zip(at, _normalise(" ".join(chunks[n] for n in at)).split(" "), strict=True):
            chunks[place] = chunk
        text = " ".join(chunks)
    text = _compose_chillus(text)
    looked_up = _look_up(text)
    if len(beyond):
        looked_up = np.where(looked_up == EXPANDS, get_codes(text), looked_up)  # case folding and NFC gave it back
    folded: str = looked_up[looked_up != DROPPED].tobytes().decode("utf-32-le")
    return folded.encode().split()


def _normalise(text: str) -> str:
    """Text -> its normal form by all steps, with its separators."""
    text = _compose_chillus(undisguise(_read_letter_signs(_compose_ra(nfc(text))), load_forms()))
    if (_look_up(text) == EXPANDS).any():
        text = text.casefold()
    normal_forms = _look_up(text)
    codes = np.where(normal_forms == SEPARATOR, get_codes(text), normal_forms)
    folded: str = codes[codes != DROPPED].tobytes().decode("utf-32-le", "surrogatepass")
    return read_letter_digits(_compose_signs(remove_accents(nfc(folded))))


def _read_letter_signs(text: str) -> str:
    """A text in NFC -> the text with letters for the signs that stand for them."""
    codes = get_codes(text)
    for place in _find_letter_signs(codes, _drop_accents(codes)).tolist():
        codes[place] = ord(SIGNS[chr(codes[place])])
    return codes.tobytes().decode("utf-32-le", "surrogatepass")


def _find_letter_signs(codes: Codes, normal_forms: Codes) -> Offsets:
    """The offsets of the signs that stand for letters."""
    if not np.isin(codes, SIGN_CODES).any():
        return np.empty(0, np.intp)
    kept = np.flatnonzero(normal_forms != DROPPED)
    return kept[find_letter_signs(codes[kept], normal_forms[kept])]


def _drop_accents(codes: Codes) -> Codes:
    """(n,) code points -> (n,) their normal forms, DROPPED for accents."""
    normal_forms = load_table().take(codes, mode="clip")
    for first, end in ACCENTS:
        normal_forms[(codes >= first) & (codes < end)] = DROPPED
    return normal_forms


def _compose_chillus(text: str) -> str:
    return CHILLU_SEQUENCE.sub(lambda match: CHILLU[match[1]], text) if chr(ZWJ) in text else text


def _compose_ra(text: str) -> str:
    """A text in NFC -> the text with the Bengali ra for each ba with a nukta, whatever is dropped between the two."""
    return _compile_ba_with_nukta().sub(chr(RA), text) if chr(NUKTA) in text else text


@cache
def _compile_ba_with_nukta() -> re.Pattern[str]:
    first, end = np.flatnonzero(np.diff(load_table() == DROPPED, prepend=False, append=False)).reshape(-1, 2).T
    dropped = "".join(f"{re.escape(chr(a))}-{re.escape(chr(b - 1))}" for a, b in zip(first, end, strict=True))
    return re.compile(f"{chr(BA)}[{dropped}]*{chr(NUKTA)}")


def locate_words(text: str) -> Located:
    """Text -> the offsets of `tokens(text)`, in order; the tokens of `text[start:end]` are that token alone."""
    text = nfc(text)
    codes = get_codes(text)
    normal_forms = _drop_accents(codes)  # a run of accents only is not a word
    is_separator = normal_forms == SEPARATOR
    is_separator[_find_letter_signs(codes, normal_forms)] = False
    edges = np.flatnonzero(np.diff(is_separator, prepend=True, append=True)).reshape(-1, 2)
    kept_before = np.concatenate(([0], np.cumsum(~is_separator & (normal_forms != DROPPED))))
    is_word = kept_before[edges[:, 1]] > kept_before[edges[:, 0]]  # a run of ignorables only is not a word
    starts, ends = edges[is_word].T
    marks = [ord(c) for c in set(text) if unicodedata.category(c) in MARKS]
    gaps = np.flatnonzero(is_separator[:-1] | is_separator[1:])
    before, after = codes[gaps], codes[gaps + 1]
    pictograph = (after >= FIRST_PICTOGRAPH) | np.isin(after, PICTOGRAPHS)
    joined = np.isin(before, PREPENDERS) | np.isin(after, [*EXTENDERS, *marks]) | (before == ZWJ) & pictograph
    return Located(text, starts, ends, np.concatenate(([0], gaps[~joined] + 1, [len(text)])))


def _compose_signs(text: str) -> str:
    """A text in NFC, with one sign for each two that look the same."""
    while text != (shorter := LOOKS_LIKE_ONE.sub(lambda signs: TWO_SIGNS[signs[0]], text)):
        text = shorter
    return text


def nfc(text: str) -> str:
    """A text in NFC, in time linear in its length; the library alone takes time quadratic in a run of marks."""
    if len(text) <= LONG_TEXT:
        return unicodedata.normalize("NFC", text)
    # A long text repeats most of its words.  No character composes with a space, so each can be normalised by itself.
    words = text.split(" ")
    distinct = list(dict.fromkeys(words))
    ordered = " ".join(distinct)
    if max(map(len, distinct)) >= LONG_MARK_RUN:
        ordered = _compile_long_mark_runs().sub(lambda run: _order_marks(run[0]), ordered)
    normal_form = dict(zip(distinct, unicodedata.normalize("NFC", ordered).split(" "), strict=True))
    return " ".join(map(normal_form.__getitem__, words))


@cache
def _compile_long_mark_runs() -> re.Pattern[str]:
    """Matches LONG_MARK_RUN or more adjacent marks that canonical ordering may move."""
    marks = (chr(code) for code in range(TABLE_END) if unicodedata.category(chr(code))[0] == "M")
    ordered = "".join(c for c in marks if unicodedata.combining(unicodedata.normalize("NFD", c)[0]))
    return re.compile(f"[{ordered}]{{{LONG_MARK_RUN},}}")


def _order_marks(marks: str) -> str:
    """Marks, decomposed, in canonical order (Unicode, D109)."""
    decomposed = "".join(unicodedata.normalize("NFD", mark) for mark in marks)
    return "".join(sorted(decomposed, key=unicodedata.combining))


def _find_beyond_table(codes: Codes) -> Offsets:
    """The offsets of code points that the table alone does not normalise."""
    looked_up = load_flagged_table().take(codes, mode="clip")
    if looked_up.max(initial=0) < LOOK_ALIKE:
        return np.empty(0, np.intp)
    beyond = looked_up & BEYOND_TABLE != 0
    kept = np.flatnonzero(looked_up & CODE != DROPPED)
    composing = looked_up[kept[:-1]] << 1 & looked_up[kept[1:]] & SECOND  # FIRST << 1 is SECOND
    beyond[kept[1:][composing != 0]] = True
    if len(nuktas := np.flatnonzero(codes == NUKTA)):
        beyond[nuktas] = _follow_ba_or_mark(looked_up, kept, nuktas)
    may_be_letter = looked_up[kept] & LOOK_ALIKE != 0
    if may_be_letter.any():
        is_letter = (looked_up[kept] & CODE) - np.uint32(ord("a")) < 26
        beyond[kept[:-1]] |= may_be_letter[:-1] & is_letter[1:]
    return np.flatnonzero(beyond)


def _follow_ba_or_mark(looked_up: Codes, kept: Offsets, nuktas: Offsets) -> npt.NDArray[np.bool_]:
    """Whether the code point before each nukta that is not dropped is BA, or a mark that NFC puts behind the nukta."""
    before = np.searchsorted(kept, nuktas)
    entries = np.insert(looked_up[kept], 0, SEPARATOR)[before]
    found: npt.NDArray[np.bool_] = (entries & CODE == BA) | (entries & COMBINING != 0)
    return found


def _look_up(text: str) -> Codes:
    return load_table().take(get_codes(text), mode="clip")


def get_codes(text: str) -> Codes:
    """(len(text),) uint32: the code points, including lone surrogates."""
    return np.array([text]).view(np.uint32)[: len(text)]  # takes a quarter of the time of encoding


# The tables.


def are_kept() -> bool:
    """Whether there are files of this version of Unicode."""
    return _find_folder().is_dir()


@cache
def load_tables() -> Tables:
    """The tables for a text.  They cannot be written."""
    if are_kept():
        flagged, composed, read_as = map(_map_table, TABLES)
        return flagged, composed, read_as
    return compute_tables()


@cache
def load_tables_of_normalised() -> Tables:
    """The tables for a text that is normalised already: each code point is its own normal form."""
    _, compositions, readings = load_tables()
    return np.arange(LETTERS_END, dtype=np.uint32), compositions, readings


@cache
def load_table() -> Codes:
    """(TABLE_END,) uint32: as `codepoints.build_table`."""
    return load_flagged_table() & np.uint32(CODE)


def load_flagged_table() -> Codes:
    """(TABLE_END,) uint32: as `codepoints.build_flagged_table`."""
    return load_tables()[0]


@cache
def load_forms() -> dict[int, str]:
    """As `look_alikes.map_forms`."""
    if are_kept():
        plain = bytes(_map_table(FORMS)).decode().split(BETWEEN_FORMS)
        return dict(zip(_map_table(FORMED).tolist(), plain, strict=True))
    return look_alikes.map_forms()


def compute_tables() -> Tables:
    """The tables for a text, by Python's Unicode data."""
    return codepoints.build_flagged_table(), codepoints.list_compositions(), build_readings()


def _find_folder() -> Path:
    return FOLDER / f"unicode-{unicodedata.unidata_version}"


def _map_table(name: str) -> npt.NDArray[Any]:
    # an ndarray, because slices of a memmap take longer
    return np.asarray(np.load(_find_folder() / f"{name}.npy", mmap_mode="r"))


def write_tables() -> None:
    """Write the files."""
    _find_folder().mkdir(parents=True, exist_ok=True)
    formed = look_alikes.map_forms()
    arrays = dict(zip(TABLES, compute_tables(), strict=True))
    arrays |= {
        FORMED: np.array(list(formed), np.uint32),
        FORMS: np.frombuffer(BETWEEN_FORMS.join(formed.values()).encode(), np.uint8),
    }
    for name, array in arrays.items():
        np.save(_find_folder() / f"{name}.npy", np.ascontiguousarray(array))


if __name__ == "__main__":
    write_tables()
