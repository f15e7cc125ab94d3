"""Makes the temporary corpus of one language: originals, and their copies by every edit."""

import csv
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from neardup.insights.evaluate.edits import Edit
from neardup.insights.evaluate.other_stories import OtherStories, strip_signs
from neardup.insights.evaluate.pages import plain
from neardup.insights.evaluate.sample import Original

COMMON_SHARE = 0.2  # a word that occurs in a larger share of the stories is not a name


@dataclass(frozen=True, slots=True)
class PlantedStory:
    """One story of the corpus; `origin` is the number of its original, `edit` is None for the original itself."""

    origin: int
    edit: Edit | None
    text: str


@dataclass(frozen=True, slots=True)
class Corpus:
    """The stories of one language: an original, then its copies, then the next original, and so on.

    The id of a story is its position in `stories`.  `donors` has for each original the originals from which the foreign
    text of its copies is taken.
    """

    originals: Sequence[Original]
    stories: Sequence[PlantedStory]
    donors: Sequence[frozenset[int]]

    def describe(self, place: int) -> tuple[int, str | None]:
        """The id of a story's original in the source, and the name of the edit."""
        story = self.stories[place]
        return self.originals[story.origin].id, story.edit.name if story.edit else None


def plant(originals: Sequence[Original], edits: Sequence[Edit], seed: int) -> Corpus:
    """Copy each original by each edit that can be applied to it.  Needs at least two originals."""
    words = [original.text.split() for original in originals]
    common = _common(words)
    stories: list[PlantedStory] = []
    donors = []
    for origin, original in enumerate(originals):
        donated = _donors(words, origin, _random(seed, original, "donors"))
        others = OtherStories(
            language=original.language,
            stories=words[:origin] + words[origin + 1 :],
            host=words[donated[0]],
            foreign=[word for donor in donated for word in words[donor]],
            common=common,
        )
        stories.append(PlantedStory(origin, None, original.text))
        for edit in edits:
            text = edit.apply(original.text, others, _random(seed, original, edit.name))
            if text is not None:
                stories.append(PlantedStory(origin, edit, text))
        donors.append(frozenset(donated))
    return Corpus(originals, stories, donors)


def _random(seed: int, original: Original, purpose: str) -> random.Random:
    return random.Random(f"{seed}:{original.id}:{purpose}")  # noqa: S311 - not for cryptography


def _common(words: Sequence[Sequence[str]]) -> frozenset[str]:
    """The casefolded words that occur in at least two of the stories, and in more than COMMON_SHARE of them."""
    counts = Counter(word for story in words for word in {strip_signs(word).casefold() for word in story})
    return frozenset(word for word, n in counts.items() if n > max(1.0, COMMON_SHARE * len(words)))


def _donors(words: Sequence[Sequence[str]], origin: int, rng: random.Random) -> list[int]:
    """Choose a random story at least as long as the original, or several if there is none."""
    wanted = len(words[origin])
    others = [n for n in range(len(words)) if n != origin]
    long = [n for n in others if len(words[n]) >= wanted]
    if long:
        return [rng.choice(long)]
    rng.shuffle(others)
    donors: list[int] = []
    while sum(len(words[n]) for n in donors) < wanted:
        donors.append(others[len(donors) % len(others)])
    return donors


def write(corpus: Corpus, folder: Path) -> None:
    """Write a manifest, and a page for each story."""
    (folder / "html").mkdir()
    language = corpus.originals[0].language
    with (folder / "manifest.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "language", "path"])
        for place, story in enumerate(corpus.stories):
            page = (story.edit.page if story.edit else plain)(story.text)
            (folder / "html" / f"{place}.html").write_text(page, encoding="utf-8", errors="replace")
            rows.writerow([place, language, f"{place}.html"])
