"""Texts of synthetic stories in ten languages, whose word pairs recur as unevenly as Zipf's law says.

A share of them are copies of the story before: whole, with few words changed, with many changed, or of one passage.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from neardup.records import Language

from tests.bench.scale_corpus import divide
from tests.support.languages import BENGALI, ENGLISH, GUJARATI, HINDI, MALAYALAM, MARATHI, ODIA, PUNJABI, TAMIL, TELUGU
from tests.support.synthetic import AUTHORS, FIRST_LISTED_ID, FIRST_TIME, ID_STEP, PLATFORM

SEED = 3
VOCABULARY = 30_000
LOG_WORDS = (5.7, 0.4)  # mean and standard deviation of ln(words): about 325 words
SHORTEST = 120
COPIES = (0.005, 0.005, 0.005, 0.005)  # whole, few words changed, many changed, a passage
FEW, MANY = 0.005, 0.15  # the shares of words changed
PASSAGE = 110  # words
LETTERS = "कङचजटणतनपमयरलसह"  # every script has these, and the signs, at the same place in its block
SIGNS = ("", "", "ा", "ि", "ी", "ु", "ू", "े", "ो")
LATIN = "bcdfghklmnprstv", ("a", "e", "i", "o", "u", "ai", "ea", "ou", "y")
BLOCKS = {
    HINDI: 0,
    MARATHI: 0,
    BENGALI: 0x80,
    PUNJABI: 0x100,
    GUJARATI: 0x180,
    ODIA: 0x200,
    TAMIL: 0x280,
    TELUGU: 0x300,
    MALAYALAM: 0x400,
}

Words = npt.NDArray[np.int64]


class Text(NamedTuple):
    """A story: its id, its author, when it was published (Unix milliseconds), and its text."""

    id: int
    language: Language
    author_id: str
    published_at: int
    text: str


def texts(stories: int) -> Iterator[Text]:
    """So many stories in the platform's proportions, with ascending ids; the first n are the same for any number."""
    rng = np.random.default_rng(SEED)
    shares = divide(1000, PLATFORM)
    turn = rng.permutation(np.repeat(np.arange(len(shares)), list(shares.values())))
    languages = list(shares)
    vocabularies = [_vocabulary(language) for language in languages]
    chances = np.cumsum(1 / np.arange(1, VOCABULARY + 1))
    chances /= chances[-1]
    latest = [np.zeros(SHORTEST, np.int64)] * len(languages)
    for n in range(stories):
        number = int(turn[n % len(turn)])
        size = max(SHORTEST, int(rng.lognormal(*LOG_WORDS)))
        words = _copied(rng, latest[number], np.searchsorted(chances, rng.random(size)))
        latest[number] = words
        text = " ".join(vocabularies[number][words].tolist())
        yield Text(
            FIRST_LISTED_ID + ID_STEP * n, languages[number], str(n * 7919 % AUTHORS), FIRST_TIME + 60_000 * n, text
        )


def _copied(rng: np.random.Generator, before: Words, words: Words) -> Words:
    """The words of a story: those drawn for it, or a copy of the story before."""
    kind = int(np.searchsorted(np.cumsum(COPIES), rng.random()))
    if kind == len(COPIES):
        return words
    if kind == len(COPIES) - 1:
        return np.concatenate((words[: len(words) // 2], before[:PASSAGE], words[len(words) // 2 :]))
    kept = rng.random(len(before)) >= (0.0, FEW, MANY)[kind]
    return np.where(kept, before, rng.permutation(VOCABULARY)[: len(before)])


def _vocabulary(language: Language) -> npt.NDArray[np.object_]:
    """Words of two to four syllables, the most frequent first."""
    rng = np.random.default_rng(sum(map(ord, language)))
    letters, signs = LATIN if language == ENGLISH else (LETTERS, SIGNS)
    syllables = [letter + sign for letter in letters for sign in signs]
    if language != ENGLISH:
        syllables = ["".join(chr(ord(sign) + BLOCKS[language]) for sign in syllable) for syllable in syllables]
    found = dict[str, None]()
    while len(found) < VOCABULARY:
        found["".join(syllables[n] for n in rng.integers(0, len(syllables), rng.integers(2, 5)))] = None
    return np.array(list(found), object)
