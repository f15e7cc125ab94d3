"""The copies that are a small part of a longer story: chapters of a longer work, and runs of words in another story."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from neardup.insights.evaluate import pages
from neardup.insights.evaluate.other_stories import PARAGRAPH_WORDS, OtherStories, paragraphs, strip_signs

CHAPTERS = (3, 5, 10, 20)
RUNS = (50, 100, 200, 400)
REST = 50  # words of a story, at least, that are not in the copied run
FIRST_REPLACED, REPLACED_EVERY = 5, 10  # places within an edited run


@dataclass(frozen=True, slots=True)
class Work:
    """A longer work: `chapters` stories, one after the other."""

    chapters: int
    part = True
    same_words = False

    @property
    def name(self) -> str:
        return chapter_name(self.chapters)

    def page(self, text: str) -> str:
        return pages.plain(text)

    def draw(self, stories: int, rng: random.Random) -> list[tuple[int, ...]]:
        """Divide this many stories into works at random, by their numbers; a rest that fills no work is left out."""
        drawn = rng.sample(range(stories), stories)
        return [tuple(drawn[n : n + self.chapters]) for n in range(0, stories - self.chapters + 1, self.chapters)]


def run_into(length: int, *, edited: bool = False) -> Callable[[str, OtherStories, random.Random], str | None]:
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
        return paragraphs([*others.host[:at], *run, *others.host[at:]])

    return edit


def chapter_name(chapters: int) -> str:
    return f"chapter of a work of {chapters}"


def run_name(length: int, *, edited: bool = False) -> str:
    return f"run of {length} words" + (", every tenth replaced" if edited else "")


WORKS: Sequence[Work] = tuple(map(Work, CHAPTERS))
