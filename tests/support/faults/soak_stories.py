"""Generated stories as pages, some of them copies, and the pairs that a run must find."""

import random
import time
from pathlib import Path

from neardup.languages import LANGUAGES

COPY_EVERY, COPY_OF = 50, 25  # a copy's original is so many stories before it
WORDS, VOCABULARY = 100, 20_000


def write_stories(folder: Path, count: int) -> list[dict[str, str]]:
    """So many pages below a folder, and the rows that list them."""
    chance = random.Random(count)
    vocabulary = [
        "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(VOCABULARY)
    ]
    for name in LANGUAGES:
        (folder / name).mkdir(parents=True)
    rows: list[dict[str, str]] = []
    texts: list[str] = []
    for n in range(count):
        copy = n % COPY_EVERY == COPY_EVERY - 1
        text = texts[n - COPY_OF] if copy else " ".join(chance.choices(vocabulary, k=WORDS))
        texts.append(text)
        language = rows[n - COPY_OF]["language"] if copy else str(LANGUAGES[n % len(LANGUAGES)])
        path = f"{language}/{n + 1}.html"
        (folder / path).write_text(f'<article><div class="story"><p>{text}</p></div></article>', encoding="ascii")
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_700_000_000 + n))
        rows.append({"id": str(n + 1), "language": language, "title": f"Story {n + 1}", "updated_at": moment})
    return rows


def expected(count: int) -> set[tuple[int, int]]:
    """The copies and their originals."""
    return {(n + 1, n + 1 - COPY_OF) for n in range(COPY_EVERY - 1, count, COPY_EVERY)}
