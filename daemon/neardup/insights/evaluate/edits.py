"""The edits that make a copy of a story: pure functions of its text, what stands around it, and chance.

A word is what stands between spaces.  An edit gives the copy's text; None where the story has
nothing for it to work on.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from neardup.insights.evaluate import noise, pages
from neardup.insights.evaluate.around import Around, bare, paragraphs

SPACES = re.compile(r"(\s+)")
SENTENCE_ENDS = re.compile(r"(?<=[.!?।॥])\s+")
NAMES = 4
NAME_OCCURS = 3
BLOCKS = 4  # a text of fewer paragraphs is reordered by its sentences
RATES = (0.01, 0.02, 0.05, 0.10, 0.20)


Apply = Callable[[str, Around, random.Random], str | None]


@dataclass(frozen=True, slots=True)
class Edit:
    """One way to copy.  `same_words`: normalisation undoes what it changes."""

    name: str
    apply: Apply
    same_words: bool = False
    page: Callable[[str], str] = pages.plain


def replaced(share: float) -> Apply:
    """That share of the words, at random places, each by a word of another story."""

    def edit(text: str, around: Around, chance: random.Random) -> str | None:
        pieces = SPACES.split(text)
        places = [n for n in range(0, len(pieces), 2) if bare(pieces[n])]
        count = round(share * len(places))
        for place in chance.sample(places, count):
            core = bare(pieces[place])
            other = around.draw(chance, {core.casefold()})
            if other is None:
                return None
            pieces[place] = pieces[place].replace(core, other, 1)
        return "".join(pieces) if count else None

    return edit


def renamed(text: str, around: Around, chance: random.Random) -> str | None:
    """Four characters, wherever they are named.

    Names are taken to be the words that stand often in the story and in few others.
    """
    pieces = SPACES.split(text)
    counts = Counter(bare(word) for word in pieces[::2])
    names = [
        word
        for word, n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if n >= NAME_OCCURS and len(word) > 1 and word.casefold() not in around.common and not word.isnumeric()
    ][:NAMES]
    if len(names) < NAMES:
        return None
    taken = around.common | {word.casefold() for word in counts}
    new: dict[str, str] = {}
    for name in names:
        other = around.draw(chance, taken)
        if other is None:
            return None
        new[name] = other
        taken |= {other.casefold()}
    for place in range(0, len(pieces), 2):
        name = bare(pieces[place])
        if name in new:
            pieces[place] = pieces[place].replace(name, new[name], 1)
    return "".join(pieces)


def appended(share: float) -> Apply:
    """Foreign text behind it, that share of the story's own length."""
    return lambda text, around, chance: text + "\n" + paragraphs(_foreign(text, around, share))


def prepended(share: float) -> Apply:
    """Foreign text before it, that share of the story's own length."""
    return lambda text, around, chance: paragraphs(_foreign(text, around, share)) + "\n" + text


def _foreign(text: str, around: Around, share: float) -> Sequence[str]:
    return around.foreign[: round(share * len(text.split()))]


def part_alone(share: float) -> Apply:
    """A contiguous share of the story, and nothing else."""
    return lambda text, around, chance: paragraphs(_part(text.split(), share, chance))


def part_within(share: float) -> Apply:
    """A contiguous share of the story takes the place of as many words in another of equal length."""

    def edit(text: str, around: Around, chance: random.Random) -> str:
        words = text.split()
        part = _part(words, share, chance)
        at = chance.randint(0, len(words) - len(part))
        host = around.foreign[: len(words)]
        return paragraphs([*host[:at], *part, *host[at + len(part) :]])

    return edit


def part_into(share: float) -> Apply:
    """A contiguous share of the story is put into another, which stays whole."""

    def edit(text: str, around: Around, chance: random.Random) -> str:
        at = chance.randint(0, len(around.host))
        return paragraphs([*around.host[:at], *_part(text.split(), share, chance), *around.host[at:]])

    return edit


def _part(words: Sequence[str], share: float, chance: random.Random) -> Sequence[str]:
    length = round(share * len(words))
    start = chance.randint(0, len(words) - length)
    return words[start : start + length]


def reordered(text: str, around: Around, chance: random.Random) -> str | None:
    """Its paragraphs in another order; its sentences, where it has few paragraphs."""
    blocks = [line for line in text.splitlines() if line.strip()]
    if len(blocks) < BLOCKS:
        blocks = SENTENCE_ENDS.split(text)
    if len(set(blocks)) < BLOCKS:
        return None
    shuffled = blocks
    while shuffled == blocks:
        shuffled = chance.sample(blocks, len(blocks))
    return "\n".join(shuffled)


def unmoved(text: str, around: Around, chance: random.Random) -> str:
    """The text as it is."""
    return text


def replaced_name(rate: float) -> str:
    return f"{rate:.0%} of words replaced"


EDITS = (
    *(Edit(replaced_name(rate), replaced(rate)) for rate in RATES),
    Edit("25% foreign text appended", appended(0.25)),
    Edit("50% foreign text appended", appended(0.5)),
    Edit("100% foreign text appended", appended(1.0)),
    Edit("50% foreign text prepended", prepended(0.5)),
    Edit("60% in a story of equal length", part_within(0.6)),
    Edit("50% in a story of equal length", part_within(0.5)),
    Edit("60% added to a whole story", part_into(0.6)),
    Edit("50% added to a whole story", part_into(0.5)),
    Edit("60% alone", part_alone(0.6)),
    Edit("50% alone", part_alone(0.5)),
    Edit("four characters renamed", renamed),
    Edit("paragraphs reordered", reordered),
    Edit("digits of another script", noise.digits),
    Edit("look-alike letters, 10% of words", noise.look_alikes),
    Edit("Unicode form NFC", noise.nfc, same_words=True),
    Edit("Unicode form NFD", noise.nfd, same_words=True),
    Edit("Unicode form NFKC", noise.nfkc, same_words=True),
    Edit("joiners inserted", noise.joiners_inserted, same_words=True),
    Edit("joiners removed", noise.joiners_removed, same_words=True),
    Edit("soft hyphens inserted", noise.soft_hyphens, same_words=True),
    Edit("nukta letters composed", noise.nukta_composed, same_words=True),
    Edit("nukta letters decomposed", noise.nukta_decomposed, same_words=True),
    Edit("nukta signs dropped", noise.nukta_dropped, same_words=True),
    Edit("chillu letters as sequences", noise.chillu_sequences, same_words=True),
    Edit("chillu sequences as letters", noise.chillu_letters, same_words=True),
    Edit("letter case changed", noise.upper_case, same_words=True),
    Edit("other markup", unmoved, same_words=True, page=pages.ornate),
)
