"""The edits that make a copy of a story: pure functions of its text, the other stories and a random generator.

A word is a run of characters between spaces.  An edit returns the text of the copy, or None if it cannot be applied to
the story.  Foreign words are taken from the other stories of the language.
"""

import html
import random
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct

from neardup.core.text.codepoints import BA, CHILLU, NUKTAS
from neardup.core.text.normalize import tokenize
from neardup.records import Language

SIGNS = string.punctuation + "।॥‘’“”«»…–—·\u200b\ufeff"  # may begin or end a word
PARAGRAPH_WORDS = 80
DRAWS = 100


class OtherStories(Struct, frozen=True):
    """The other stories of the language, as words.

    `host` is one whole story.  `foreign` begins with it and has at least as many words as the story to be edited.
    `common` are the casefolded words that occur in many stories and are therefore taken not to be names.
    """

    language: Language
    stories: Sequence[Sequence[str]]
    host: Sequence[str]
    foreign: Sequence[str]
    common: frozenset[str]

    def draw(self, rng: random.Random, excluded: set[str] | frozenset[str]) -> str | None:
        """Draw a word that is not excluded, with a probability by its frequency; None after DRAWS attempts."""
        for _ in range(DRAWS):
            word = strip_signs(rng.choice(rng.choice(self.stories)))
            if word and word.casefold() not in excluded:
                return word
        return None


Apply = Callable[[str, OtherStories, random.Random], str | None]


def strip_signs(word: str) -> str:
    """Strip the punctuation at both ends of a word; empty if it has no letter or digit."""
    core = word.strip(SIGNS)
    return core if any(map(str.isalnum, core)) else ""


def write_paragraphs(words: Sequence[str]) -> str:
    """Join words into lines of PARAGRAPH_WORDS words."""
    return "\n".join(" ".join(words[n : n + PARAGRAPH_WORDS]) for n in range(0, len(words), PARAGRAPH_WORDS))


# Pages: with plain markup, and with markup that differs as much as possible

HEAD = '<!DOCTYPE html><html><head><meta charset="utf-8"><title>A story</title>'
EMPHASISED = 7  # every seventh word is emphasised
SPLIT = 11  # every eleventh word has a tag inside
OTHER_HEAD = (
    "<!doctype html>\n<HTML><HEAD><META charset=utf-8><style>p { margin: 0 }</style>"
    '<script>window.data = [{"words": "not the story"}];</script>'
)


def write_plain(text: str) -> str:
    """Write each line as a paragraph."""
    lines = "".join(f"<p>{html.escape(line)}</p>\n" for line in text.splitlines() if line.strip())
    return f"{HEAD}</head><body>\n{lines}</body></html>"


def write_ornate(text: str) -> str:
    """Write the same words with character references, tags within words, attributes, comments and hidden parts."""
    lines = "<br><br>".join(" ".join(map(_write_word, enumerate(line.split()))) for line in text.splitlines())
    return (
        f'{OTHER_HEAD}</HEAD><BODY onload="start()"><div hidden>A hidden part.</div>\n'
        f'<div class="content" style="text-align:justify"><!-- the story -->{lines}</div></BODY></HTML>'
    )


def _write_word(numbered: tuple[int, str]) -> str:
    n, word = numbered
    half = len(word) // 2
    first, second = (
        html.escape(part).encode("ascii", "xmlcharrefreplace").decode() for part in (word[:half], word[half:])
    )
    if n % SPLIT == 0:
        return f"{first}<span class=x>{second}</span>"
    if n % EMPHASISED == 0:
        return f'<em title="a &gt; b">{first}{second}</em>'
    return first + second


# Edits of code points: Unicode form, joiners, nukta, chillu, letter case, digits, scripts, look-alike letters

SCRIPT_BLOCKS = {  # the first code point of the Unicode block of the language's script
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
VIRAMAS = "".join(chr(start + VIRAMA_AT) for start in sorted(set(SCRIPT_BLOCKS.values())))
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


def of_text(change: Callable[[str], str]) -> Apply:
    """The edit that makes this change of a text, whatever the other stories are."""
    return lambda text, others, rng: _keep_if_changed(text, change(text))


compose = of_text(partial(unicodedata.normalize, "NFC"))
decompose = of_text(partial(unicodedata.normalize, "NFD"))


@of_text
def replace_compatibility_characters(text: str) -> str:
    """Apply NFKC to each line, unless it changes the words of the line: ½ would become 1⁄2, and ª would become a."""
    lines = [(line, unicodedata.normalize("NFKC", line)) for line in text.splitlines(keepends=True)]
    return "".join(new if new == line or tokenize(new) == tokenize(line) else line for line, new in lines)


def insert_joiners(text: str, others: OtherStories, rng: random.Random) -> str | None:
    """Insert ZWJ or ZWNJ after every virama; in Malayalam ZWNJ only, because ZWJ would make a chillu."""

    def join_letters(virama: re.Match[str]) -> str:
        return virama[0] + (ZWNJ if virama[0] == MALAYALAM_VIRAMA else rng.choice((ZWNJ, ZWJ)))

    return _keep_if_changed(text, BEFORE_JOINERS.sub(join_letters, text))


remove_joiners = of_text(partial(JOINERS.sub, ""))


def insert_soft_hyphens(text: str, others: OtherStories, rng: random.Random) -> str | None:
    """Insert soft hyphens into words, in a fifth of the places between two letters."""
    return _keep_if_changed(
        text, BETWEEN_LETTERS.sub(lambda _: SOFT_HYPHEN if rng.random() < SHARE_HYPHENATED else "", text)
    )


def replace_each(replacements: Mapping[str, str]) -> Callable[[str], str]:
    """What replaces each of these strings by another one."""

    def change(text: str) -> str:
        for old, new in replacements.items():
            text = text.replace(old, new)
        return text

    return change


compose_nukta = of_text(replace_each(COMPOSED))
decompose_nukta = of_text(replace_each({composed: decomposed for decomposed, composed in COMPOSED.items()}))
_drop_composed = replace_each({composed: decomposed[0] for decomposed, composed in COMPOSED.items()})
# But not that of a Bengali ba, which looks like a ra with it.
drop_nukta = of_text(lambda text: NUKTA_SIGNS.sub("", _drop_composed(text)))
# The older spelling of a chillu: letter, virama, ZWJ.
split_chillus = of_text(replace_each({chillu: f"{letter}{MALAYALAM_VIRAMA}{ZWJ}" for letter, chillu in CHILLU.items()}))
join_chillus = of_text(replace_each({f"{letter}{MALAYALAM_VIRAMA}{ZWJ}": chillu for letter, chillu in CHILLU.items()}))


@of_text
def write_in_upper_case(text: str) -> str:
    """Change letters to upper case, except those that then casefold to another letter: ı would become I."""
    return "".join(c.upper() if c.upper().casefold() == c.casefold() else c for c in text)


def swap_digits(text: str, others: OtherStories, rng: random.Random) -> str | None:
    """Swap ASCII digits with those of the language's script; for a language without a block, with Devanagari digits."""
    zero = SCRIPT_BLOCKS.get(others.language, DEVANAGARI) + DIGITS_AT
    pairs = [(ord("0") + n, zero + n) for n in range(10)]
    return _keep_if_changed(text, text.translate(dict(pairs) | {other: ascii_digit for ascii_digit, other in pairs}))


def write_in_other_script(text: str, others: OtherStories, rng: random.Random) -> str | None:
    """Write a text in Devanagari, or in Bengali script if that is its own; None for a language without a block."""
    start = SCRIPT_BLOCKS.get(others.language)
    if start is None:
        return None
    return _keep_if_changed(text, transliterate_block(text, start, BENGALI if start == DEVANAGARI else DEVANAGARI))


def transliterate_block(text: str, start: int, to: int) -> str:
    """Replace each letter and vowel sign of one block of Unicode by the one at its place in another."""
    return "".join(_find_sign(to, ord(c) - start) if ord(c) - start in LETTERS else c for c in text)


def _find_sign(block: int, place: int) -> str:
    sign = chr(block + place)
    return sign if unicodedata.category(sign) != "Cn" else chr(block + INSTEAD.get(place, place))


def replace_by_look_alikes(text: str, others: OtherStories, rng: random.Random) -> str | None:
    """Replace Latin letters by the Cyrillic ones that look the same, in a tenth of the words of an English text."""
    if others.language != "ENGLISH":
        return None
    pieces = re.split(r"(\s+)", text)
    places = [n for n, word in enumerate(pieces) if word.translate(LOOK_ALIKES) != word]
    for n in rng.sample(places, round(SHARE_LOOK_ALIKE * len(places))):
        pieces[n] = pieces[n].translate(LOOK_ALIKES)
    return _keep_if_changed(text, "".join(pieces))


def _keep_if_changed(text: str, new: str) -> str | None:
    return new if new != text else None


# Copies that are a small part of a longer story: chapters of a longer work, and runs of words in another story

CHAPTERS = (3, 5, 10, 20)
RUNS = (50, 100, 200, 400)
REST = 50  # words of a story, at least, that are not in the copied run
FIRST_REPLACED, REPLACED_EVERY = 5, 10  # places within an edited run


class Work(Struct, frozen=True):
    """A longer work: `chapters` stories, one after the other."""

    chapters: int
    part = True

    @property
    def name(self) -> str:
        return name_chapters(self.chapters)

    def page(self, text: str) -> str:
        return write_plain(text)

    def draw(self, stories: int, rng: random.Random) -> list[tuple[int, ...]]:
        """Divide this many stories into works at random, by their numbers; a rest that fills no work is left out."""
        numbers = rng.sample(range(stories), stories)
        return [tuple(numbers[n : n + self.chapters]) for n in range(0, stories - self.chapters + 1, self.chapters)]


def insert_run(length: int, *, edited: bool = False) -> Apply:
    """Copy a run of `length` words to the end of a paragraph of another story, which stays whole.

    With `edited`, every tenth word of the run is replaced by a word of another story.
    """

    def edit(text: str, others: OtherStories, rng: random.Random) -> str | None:
        words = text.split()
        if len(words) < length + REST:
            return None
        start = rng.randint(0, len(words) - length)
        run = words[start : start + length]
        if edited:
            for n in range(FIRST_REPLACED, length, REPLACED_EVERY):
                run[n] = others.draw(rng, {strip_signs(run[n]).casefold()}) or run[n]
        at = PARAGRAPH_WORDS * rng.randint(0, len(others.host) // PARAGRAPH_WORDS)
        return write_paragraphs([*others.host[:at], *run, *others.host[at:]])

    return edit


def name_chapters(chapters: int) -> str:
    return f"chapter of a work of {chapters}"


def name_run(length: int, *, edited: bool = False) -> str:
    return f"run of {length} words" + (", every tenth replaced" if edited else "")


WORKS: Sequence[Work] = tuple(map(Work, CHAPTERS))


# Edits of words and paragraphs, and the list of all edits

SPACES = re.compile(r"(\s+)")
SENTENCE_ENDS = re.compile(r"(?<=[.!?।॥])\s+")
NAMES = 4
NAME_OCCURS = 3
BLOCKS = 4  # a text of fewer paragraphs is reordered by its sentences
OTHER_SCRIPT = "another script"
RATES = (0.01, 0.02, 0.05, 0.10, 0.20)


class Edit(Struct, frozen=True):
    """One way to copy a story.

    With `same_words`, normalisation undoes the edit.  With `part`, the copy is a small part of a longer story.
    """

    name: str
    apply: Apply
    same_words: bool = False
    part: bool = False
    page: Callable[[str], str] = write_plain


def replace_words(share: float) -> Apply:
    """Replace that share of the words, at random places, each by a word of another story."""

    def edit(text: str, others: OtherStories, rng: random.Random) -> str | None:
        pieces = SPACES.split(text)
        places = [n for n in range(0, len(pieces), 2) if strip_signs(pieces[n])]
        count = round(share * len(places))
        for place in rng.sample(places, count):
            word = strip_signs(pieces[place])
            replacement = others.draw(rng, {word.casefold()})
            if replacement is None:
                return None
            pieces[place] = pieces[place].replace(word, replacement, 1)
        return "".join(pieces) if count else None

    return edit


def rename_characters(text: str, others: OtherStories, rng: random.Random) -> str | None:
    """Rename four characters of the story.

    The words that are frequent in this story and rare in the others are taken to be names.
    """
    pieces = SPACES.split(text)
    counts = Counter(strip_signs(word) for word in pieces[::2])
    names = [
        word
        for word, n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if n >= NAME_OCCURS and len(word) > 1 and word.casefold() not in others.common and not word.isnumeric()
    ][:NAMES]
    if len(names) < NAMES:
        return None
    names_in_use = others.common | {word.casefold() for word in counts}
    new: dict[str, str] = {}
    for name in names:
        new_name = others.draw(rng, names_in_use)
        if new_name is None:
            return None
        new[name] = new_name
        names_in_use |= {new_name.casefold()}
    for place in range(0, len(pieces), 2):
        name = strip_signs(pieces[place])
        if name in new:
            pieces[place] = pieces[place].replace(name, new[name], 1)
    return "".join(pieces)


def append_foreign_text(share: float) -> Apply:
    """Append foreign text, that share of the story's own length."""
    return lambda text, others, rng: text + "\n" + write_paragraphs(_cut_foreign(text, others, share))


def prepend_foreign_text(share: float) -> Apply:
    """Prepend foreign text, that share of the story's own length."""
    return lambda text, others, rng: write_paragraphs(_cut_foreign(text, others, share)) + "\n" + text


def _cut_foreign(text: str, others: OtherStories, share: float) -> Sequence[str]:
    return others.foreign[: round(share * len(text.split()))]


def keep_part(share: float) -> Apply:
    """Keep a contiguous share of the story, and nothing else."""
    return lambda text, others, rng: write_paragraphs(_cut_part(text.split(), share, rng))


def replace_with_part(share: float) -> Apply:
    """Put a contiguous share of the story in place of as many words of another text of the same length."""

    def edit(text: str, others: OtherStories, rng: random.Random) -> str:
        words = text.split()
        part = _cut_part(words, share, rng)
        at = rng.randint(0, len(words) - len(part))
        host = others.foreign[: len(words)]
        return write_paragraphs([*host[:at], *part, *host[at + len(part) :]])

    return edit


def insert_part(share: float) -> Apply:
    """Insert a contiguous share of the story into another story, which stays whole."""

    def edit(text: str, others: OtherStories, rng: random.Random) -> str:
        at = rng.randint(0, len(others.host))
        return write_paragraphs([*others.host[:at], *_cut_part(text.split(), share, rng), *others.host[at:]])

    return edit


def _cut_part(words: Sequence[str], share: float, rng: random.Random) -> Sequence[str]:
    length = round(share * len(words))
    start = rng.randint(0, len(words) - length)
    return words[start : start + length]


def reorder_parts(text: str, others: OtherStories, rng: random.Random) -> str | None:
    """Shuffle the paragraphs, or the sentences of a story with few paragraphs."""
    blocks = [line for line in text.splitlines() if line.strip()]
    if len(blocks) < BLOCKS:
        blocks = SENTENCE_ENDS.split(text)
    if len(set(blocks)) < BLOCKS:
        return None
    shuffled = blocks
    while shuffled == blocks:
        shuffled = rng.sample(blocks, len(blocks))
    return "\n".join(shuffled)


def leave_unchanged(text: str, others: OtherStories, rng: random.Random) -> str:
    """Leave the text as it is; only the markup of the page differs."""
    return text


def name_replaced(rate: float) -> str:
    return f"{rate:.0%} of words replaced"


EDITS = (
    *(Edit(name_replaced(rate), replace_words(rate)) for rate in RATES),
    Edit("25% foreign text appended", append_foreign_text(0.25)),
    Edit("50% foreign text appended", append_foreign_text(0.5)),
    Edit("100% foreign text appended", append_foreign_text(1.0)),
    Edit("50% foreign text prepended", prepend_foreign_text(0.5)),
    Edit("60% in a story of equal length", replace_with_part(0.6)),
    Edit("50% in a story of equal length", replace_with_part(0.5)),
    Edit("60% added to a whole story", insert_part(0.6)),
    Edit("50% added to a whole story", insert_part(0.5)),
    Edit("60% alone", keep_part(0.6)),
    Edit("50% alone", keep_part(0.5)),
    Edit("four characters renamed", rename_characters),
    Edit("paragraphs reordered", reorder_parts),
    Edit("digits of another script", swap_digits),
    Edit(OTHER_SCRIPT, write_in_other_script),
    Edit("look-alike letters, 10% of words", replace_by_look_alikes, same_words=True),
    Edit("Unicode form NFC", compose, same_words=True),
    Edit("Unicode form NFD", decompose, same_words=True),
    Edit("Unicode form NFKC", replace_compatibility_characters, same_words=True),
    Edit("joiners inserted", insert_joiners, same_words=True),
    Edit("joiners removed", remove_joiners, same_words=True),
    Edit("soft hyphens inserted", insert_soft_hyphens, same_words=True),
    Edit("nukta letters composed", compose_nukta, same_words=True),
    Edit("nukta letters decomposed", decompose_nukta, same_words=True),
    Edit("nukta signs dropped", drop_nukta, same_words=True),
    Edit("chillu letters as sequences", split_chillus, same_words=True),
    Edit("chillu sequences as letters", join_chillus, same_words=True),
    Edit("letter case changed", write_in_upper_case, same_words=True),
    Edit("other markup", leave_unchanged, same_words=True, page=write_ornate),
    *(
        Edit(name_run(length, edited=edited), insert_run(length, edited=edited), part=True)
        for length in RUNS
        for edited in (False, True)
    ),
)
