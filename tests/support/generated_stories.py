"""Generates pages and a manifest, with copies at known positions."""

import csv
import random
from pathlib import Path

from tests.support.command import embedded

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
