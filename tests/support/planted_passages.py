"""A manifest and pages in ten languages with passages copied into longer works, and the pairs to be found.

Each story is made of the words of the language's sample stories, drawn at random, so only what is planted is shared.
"""

import csv
import random
from pathlib import Path

from msgspec import Struct

from tests.support.languages import CODES, SAMPLED
from tests.support.sample_texts import STORIES

CHAPTERS, CHAPTER_WORDS = 12, 300
RUN_WORDS = 150
EDIT_EVERY = 10  # one word in so many is replaced in an edited run


class Planted(Struct, frozen=True):
    """A folder with manifest.csv and html/, and the pairs of stories that share a passage, the lower id first.

    An edited passage is likely to be found, and the others are sure to be.
    """

    folder: Path
    pairs: frozenset[tuple[int, int]]
    edited_pairs: frozenset[tuple[int, int]]


def plant(folder: Path, seed: int = 1) -> Planted:
    """Write, for each language, CHAPTERS stories, a work made of them, and hosts of a run and of an edited run."""
    chance, story_id = random.Random(seed), 0
    rows: list[tuple[int, str, str, str]] = []
    pairs: set[tuple[int, int]] = set()
    edited_pairs: set[tuple[int, int]] = set()
    for language in SAMPLED:
        vocabulary = sorted({word for text in STORIES[language] for word in text.split()})

        def draw(count: int, words: list[str] = vocabulary) -> list[str]:
            return chance.choices(words, k=count)

        chapters = [draw(CHAPTER_WORDS) for _ in range(CHAPTERS)]
        run = chapters[0][50 : 50 + RUN_WORDS]
        edited = [
            draw(1)[0] if n % EDIT_EVERY == EDIT_EVERY // 2 else word for n, word in enumerate(chapters[1][:RUN_WORDS])
        ]
        whole = [word for chapter in chapters for word in chapter]
        texts = [*chapters, whole, draw(600) + run + draw(500), draw(500) + edited + draw(600), draw(CHAPTER_WORDS)]
        for text in texts:
            story_id += 1
            page = folder / "html" / language / f"{story_id}.html"
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(f"<html><body><p>{' '.join(text)}</p></body></html>", encoding="utf-8")
            rows.append(
                (story_id, CODES[language], f"{language}/{page.name}", f"2026-01-01T{len(rows) % 24:02}:00:00Z")
            )
        first = story_id - len(texts) + 1
        work, host, edited_host = (first + CHAPTERS + n for n in range(3))
        pairs |= {(first + n, work) for n in range(CHAPTERS)} | {(first, host), (work, host)}
        edited_pairs |= {(first + 1, edited_host), (work, edited_host)}
    with (folder / "manifest.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "language", "path", "published_at"), *rows])
    return Planted(folder, frozenset(pairs), frozenset(edited_pairs))
