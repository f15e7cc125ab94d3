"""The edits that make a copy of a story: pure functions of its text, the other stories and a random generator.

A word is a run of characters between spaces.  An edit returns the text of the copy, or None if it cannot be applied to
the story.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from neardup.insights.evaluate import noise, pages
from neardup.insights.evaluate.other_stories import OtherStories, paragraphs, strip_signs
from neardup.insights.evaluate.passages import RUNS, run_into, run_name

SPACES = re.compile(r"(\s+)")
SENTENCE_ENDS = re.compile(r"(?<=[.!?।॥])\s+")
NAMES = 4
NAME_OCCURS = 3
BLOCKS = 4  # a text of fewer paragraphs is reordered by its sentences
OTHER_SCRIPT = "another script"
RATES = (0.01, 0.02, 0.05, 0.10, 0.20)


Apply = Callable[[str, OtherStories, random.Random], str | None]


@dataclass(frozen=True, slots=True)
class Edit:
    """One way to copy a story.

    With `same_words`, normalisation undoes the edit.  With `part`, the copy is a small part of a longer story.
    """

    name: str
    apply: Apply
    same_words: bool = False
    part: bool = False
    page: Callable[[str], str] = pages.plain


def replaced(share: float) -> Apply:
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


def renamed(text: str, others: OtherStories, rng: random.Random) -> str | None:
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
    taken = others.common | {word.casefold() for word in counts}
    new: dict[str, str] = {}
    for name in names:
        new_name = others.draw(rng, taken)
        if new_name is None:
            return None
        new[name] = new_name
        taken |= {new_name.casefold()}
    for place in range(0, len(pieces), 2):
        name = strip_signs(pieces[place])
        if name in new:
            pieces[place] = pieces[place].replace(name, new[name], 1)
    return "".join(pieces)


def appended(share: float) -> Apply:
    """Append foreign text, that share of the story's own length."""
    return lambda text, others, rng: text + "\n" + paragraphs(_foreign(text, others, share))


def prepended(share: float) -> Apply:
    """Prepend foreign text, that share of the story's own length."""
    return lambda text, others, rng: paragraphs(_foreign(text, others, share)) + "\n" + text


def _foreign(text: str, others: OtherStories, share: float) -> Sequence[str]:
    return others.foreign[: round(share * len(text.split()))]


def part_alone(share: float) -> Apply:
    """Keep a contiguous share of the story, and nothing else."""
    return lambda text, others, rng: paragraphs(_part(text.split(), share, rng))


def part_within(share: float) -> Apply:
    """Put a contiguous share of the story in place of as many words of another text of the same length."""

    def edit(text: str, others: OtherStories, rng: random.Random) -> str:
        words = text.split()
        part = _part(words, share, rng)
        at = rng.randint(0, len(words) - len(part))
        host = others.foreign[: len(words)]
        return paragraphs([*host[:at], *part, *host[at + len(part) :]])

    return edit


def part_into(share: float) -> Apply:
    """Insert a contiguous share of the story into another story, which stays whole."""

    def edit(text: str, others: OtherStories, rng: random.Random) -> str:
        at = rng.randint(0, len(others.host))
        return paragraphs([*others.host[:at], *_part(text.split(), share, rng), *others.host[at:]])

    return edit


def _part(words: Sequence[str], share: float, rng: random.Random) -> Sequence[str]:
    length = round(share * len(words))
    start = rng.randint(0, len(words) - length)
    return words[start : start + length]


def reordered(text: str, others: OtherStories, rng: random.Random) -> str | None:
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


def unchanged(text: str, others: OtherStories, rng: random.Random) -> str:
    """Leave the text as it is; only the markup of the page differs."""
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
    Edit(OTHER_SCRIPT, noise.other_script),
    Edit("look-alike letters, 10% of words", noise.look_alikes, same_words=True),
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
    Edit("other markup", unchanged, same_words=True, page=pages.ornate),
    *(
        Edit(run_name(length, edited=edited), run_into(length, edited=edited), part=True)
        for length in RUNS
        for edited in (False, True)
    ),
)
