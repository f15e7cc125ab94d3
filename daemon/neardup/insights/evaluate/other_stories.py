"""The other stories of a language, from which edits take foreign words, and helpers for words."""

import random
import string
from collections.abc import Sequence
from dataclasses import dataclass

from neardup.records import Language

SIGNS = string.punctuation + "।॥‘’“”«»…–—·\u200b\ufeff"  # may begin or end a word
PARAGRAPH_WORDS = 80
DRAWS = 100


@dataclass(frozen=True, slots=True)
class OtherStories:
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


def strip_signs(word: str) -> str:
    """Strip the punctuation at both ends of a word; empty if it has no letter or digit."""
    core = word.strip(SIGNS)
    return core if any(map(str.isalnum, core)) else ""


def paragraphs(words: Sequence[str]) -> str:
    """Join words into lines of PARAGRAPH_WORDS words."""
    return "\n".join(" ".join(words[n : n + PARAGRAPH_WORDS]) for n in range(0, len(words), PARAGRAPH_WORDS))
