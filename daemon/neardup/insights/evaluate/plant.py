"""The temporary corpus of one language: originals, and their copies by every edit."""

import csv
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from neardup.insights.evaluate.around import Around, bare
from neardup.insights.evaluate.edits import Edit
from neardup.insights.evaluate.pages import plain
from neardup.insights.evaluate.sample import Original

COMMON_SHARE = 0.2  # a word that stands in more of the stories is nobody's name


@dataclass(frozen=True, slots=True)
class Planted:
    """One story of the corpus; `origin` is the place of its original, `edit` None for that itself."""

    origin: int
    edit: Edit | None
    text: str


@dataclass(frozen=True, slots=True)
class Corpus:
    """The stories of one language, each known by its place: an original, then its copies, then the next original.

    `donors` tells for each original which others the foreign text of its copies is from.
    """

    originals: Sequence[Original]
    stories: Sequence[Planted]
    donors: Sequence[frozenset[int]]

    def told(self, place: int) -> tuple[int, str | None]:
        """The id of a story's original, and the name of the edit."""
        story = self.stories[place]
        return self.originals[story.origin].id, story.edit.name if story.edit else None


def plant(originals: Sequence[Original], edits: Sequence[Edit], seed: int) -> Corpus:
    """Copy each original by each of the edits that finds something to work on.  Takes two originals at least."""
    words = [original.text.split() for original in originals]
    common = _common(words)
    stories: list[Planted] = []
    donors = []
    for origin, original in enumerate(originals):
        donated = _donors(words, origin, _chance(seed, original, "donors"))
        around = Around(
            language=original.language,
            others=words[:origin] + words[origin + 1 :],
            host=words[donated[0]],
            foreign=[word for donor in donated for word in words[donor]],
            common=common,
        )
        stories.append(Planted(origin, None, original.text))
        for edit in edits:
            text = edit.apply(original.text, around, _chance(seed, original, edit.name))
            if text is not None:
                stories.append(Planted(origin, edit, text))
        donors.append(frozenset(donated))
    return Corpus(originals, stories, donors)


def _chance(seed: int, original: Original, purpose: str) -> random.Random:
    return random.Random(f"{seed}:{original.id}:{purpose}")  # noqa: S311 - nothing here is a secret


def _common(words: Sequence[Sequence[str]]) -> frozenset[str]:
    """The words that stand in many of the stories, casefolded: in two at least."""
    counts = Counter(word for story in words for word in {bare(word).casefold() for word in story})
    return frozenset(word for word, n in counts.items() if n > max(1.0, COMMON_SHARE * len(words)))


def _donors(words: Sequence[Sequence[str]], origin: int, chance: random.Random) -> list[int]:
    """One story as long as the original, by chance; several where none is."""
    wanted = len(words[origin])
    others = [n for n in range(len(words)) if n != origin]
    long = [n for n in others if len(words[n]) >= wanted]
    if long:
        return [chance.choice(long)]
    chance.shuffle(others)
    donors: list[int] = []
    while sum(len(words[n]) for n in donors) < wanted:
        donors.append(others[len(donors) % len(others)])
    return donors


def write(corpus: Corpus, folder: Path) -> None:
    """A manifest and a page for each story, whose id is its place in the corpus."""
    (folder / "html").mkdir()
    language = corpus.originals[0].language
    with (folder / "manifest.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "language", "path"])
        for place, story in enumerate(corpus.stories):
            page = (story.edit.page if story.edit else plain)(story.text)
            (folder / "html" / f"{place}.html").write_text(page, encoding="utf-8", errors="replace")
            rows.writerow([place, language, f"{place}.html"])
