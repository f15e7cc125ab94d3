"""Small corpora for the desk, written as pages and a manifest."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.support.command import COMMON

ALPHABET = [chr(code) for code in range(0x0915, 0x0939)]


def prose(seed: int, words: int = 120) -> str:
    """Generated Hindi words; the same seed gives the same words, and two seeds give different ones."""
    text, state = list[str](), seed + 1
    for _ in range(words):
        letters = list[str]()
        for _ in range(4):
            state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            letters.append(ALPHABET[state >> 33 & 31])
        text.append("".join(letters))
    return " ".join(text)


def write(folder: Path, stories: Sequence[tuple[int, str, str]], **columns: Iterable[Any]) -> str:
    """Write stories (id, title, HTML of the body) as pages and a manifest; returns the configuration for them.

    `columns` are more columns of the manifest, with a value for each story.
    """
    pages = folder / "pages"
    pages.mkdir(parents=True)
    more = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)] or [{}] * len(
        stories
    )
    with (folder / "manifest.jsonl").open("w", encoding="utf-8") as manifest:
        for n, (story_id, title, body) in enumerate(stories):
            page = f"<html><body><article><div class=story>{body}</div></article></body></html>"
            (pages / f"{story_id}.html").write_text(page, encoding="utf-8", errors="surrogatepass")
            row = {"id": story_id, "language": "hi", "path": f"{story_id}.html", "title": title}
            row |= {"author_id": f"a{n}", "published_at": f"2026-01-{n + 1:02}T00:00:00Z"} | more[n]
            manifest.write(json.dumps(row) + "\n")
    source = f'[source]\nmanifest = "{folder}/manifest.jsonl"\n[content]\nurl = "file:{pages}"\n'
    return source + COMMON.format(index="sqlite:")


def pairs_of(folder: Path, count: int, words: int) -> str:
    """Write `count` stories of so many words, each twice; returns the configuration for them."""
    texts = ["".join(f"<p>{prose(n * 1_000 + at, 60)}</p>" for at in range(0, words, 60)) for n in range(count)]
    stories = [(1_000 + 2 * n + copy, f"कहानी {n}", texts[n]) for n in range(count) for copy in (0, 1)]
    return write(folder, stories, published_at=[f"2026-01-01T{n // 60:02}:{n % 60:02}:00Z" for n in range(2 * count)])


def cluster_of(folder: Path, size: int) -> str:
    """Write `size` copies of one story and two copies of another; returns the configuration for them."""
    stories = [(100 + n, f"प्रति {n}", f"<p>{prose(1)}</p>") for n in range(size)]
    stories += [(200 + n, f"जोड़ी {n}", f"<p>{prose(2)}</p>") for n in range(2)]
    return write(folder, stories)
