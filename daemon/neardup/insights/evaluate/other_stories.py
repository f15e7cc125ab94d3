"""What an edit may draw from, and the words it works on."""

import random
import string
from collections.abc import Sequence
from dataclasses import dataclass

from neardup.records import Language

SIGNS = string.punctuation + "।॥‘’“”«»…–—·\u200b\ufeff"  # what may lead or end a word
PARAGRAPH_WORDS = 80
DRAWS = 100


@dataclass(frozen=True, slots=True)
class Around:
    """The other stories of the language, as words.

    `host` is one of them, whole; `foreign` begins with it and has as many words as the story, or more;
    `common` are the words that stand in many stories, casefolded: nobody's name.
    """

    language: Language
    others: Sequence[Sequence[str]]
    host: Sequence[str]
    foreign: Sequence[str]
    common: frozenset[str]

    def draw(self, chance: random.Random, but: set[str] | frozenset[str]) -> str | None:
        """A word of the other stories, a frequent one more likely; None where they hold none but those."""
        for _ in range(DRAWS):
            word = bare(chance.choice(chance.choice(self.others)))
            if word and word.casefold() not in but:
                return word
        return None


def bare(word: str) -> str:
    """A word without the signs around it; empty where it has no letter or digit."""
    core = word.strip(SIGNS)
    return core if any(map(str.isalnum, core)) else ""


def paragraphs(words: Sequence[str]) -> str:
    """Words -> a text of lines."""
    return "\n".join(" ".join(words[n : n + PARAGRAPH_WORDS]) for n in range(0, len(words), PARAGRAPH_WORDS))
