"""Generates stories as pages, some of them copies, and the pairs that a run must flag."""

import random
import time
from pathlib import Path

from tests.support.languages import SAMPLED

COPY_EVERY, COPY_OF = 50, 25  # the original of a copy comes COPY_OF stories before it
WORDS, VOCABULARY = 100, 20_000


def write_stories(folder: Path, count: int) -> list[dict[str, str]]:
    """Write `count` pages below a folder; returns the rows of their manifest."""
    rng = random.Random(count)
    vocabulary = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9))) for _ in range(VOCABULARY)]
    for name in SAMPLED:
        (folder / name).mkdir(parents=True)
    rows: list[dict[str, str]] = []
    texts: list[str] = []
    for n in range(count):
        copy = n % COPY_EVERY == COPY_EVERY - 1
        text = texts[n - COPY_OF] if copy else " ".join(rng.choices(vocabulary, k=WORDS))
        texts.append(text)
        language = rows[n - COPY_OF]["language"] if copy else str(SAMPLED[n % len(SAMPLED)])
        path = f"{language}/{n + 1}.html"
        (folder / path).write_text(f'<article><div class="story"><p>{text}</p></div></article>', encoding="ascii")
        updated_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_700_000_000 + n))
        rows.append({"id": str(n + 1), "language": language, "title": f"Story {n + 1}", "updated_at": updated_at})
    return rows


def expected_pairs(count: int) -> set[tuple[int, int]]:
    """The pairs (copy, original) among `count` stories."""
    return {(n + 1, n + 1 - COPY_OF) for n in range(COPY_EVERY - 1, count, COPY_EVERY)}
