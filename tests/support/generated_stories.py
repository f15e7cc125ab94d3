"""Generates pages and a manifest, with copies at known positions, or with passages copied into longer works.

A story with passages is made of the words of the language's sample stories, drawn at random, so only what is planted is
shared.
"""

import csv
import random
from pathlib import Path

from msgspec import Struct

from tests.support.command import embedded
from tests.support.languages import CODES, SAMPLED
from tests.support.sample_texts import STORIES

COPY_EVERY = 50  # in each so many stories, one is an exact copy of the story before it, and the next a near copy
VOCABULARY = 3000


def generate(folder: Path, count: int, seed: int = 1) -> Path:
    """Write `count` HINDI pages of about 250 words under folder/html; returns the manifest."""
    chance = random.Random(seed)
    letters = [chr(code) for code in range(0x0915, 0x0939)]
    signs = ["", "ा", "ि", "ी", "ु", "े", "ो", "्"]
    words = ["".join(chance.choice(letters) + chance.choice(signs) for _ in range(3)) for _ in range(VOCABULARY)]
    weights = [1 / (rank + 3) for rank in range(VOCABULARY)]
    pages = folder / "html" / "HINDI"
    pages.mkdir(parents=True)
    manifest = folder / "manifest.csv"
    text = chance.choices(words, weights, k=250)
    with manifest.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "language", "published_at", "updated_at"])
        for n in range(count):
            if n % COPY_EVERY == 1:
                text = [*text[:-1], "बदला"]
            elif n % COPY_EVERY:
                text = chance.choices(words, weights, k=250)
            (pages / f"{n}.html").write_text(f"<html><body><p>{' '.join(text)}</p></body></html>", encoding="utf-8")
            when = f"2026-01-01T{n % 24:02}:{n % 60:02}:00Z"
            rows.writerow([n, "hi", when, when])
    return manifest


def configuration(corpus: Path, index: str = "sqlite:") -> str:
    return embedded(corpus / "manifest.csv", corpus / "html", index).replace(
        'body = "article .story, div.post-body"', ""
    )


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
