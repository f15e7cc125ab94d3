"""A store of short pages that are made when they are asked for: a million take no room on disk.

`python -m tests.bench.generated_store STORIES` serves them as tests.support.s3_server does.  A page has 60 to 140
pseudo-words of Devanagari, as frequent as Zipf's law says.  One in COPY_EVERY is a copy of an earlier one, with a word
changed in every other of these.
"""

import csv
import random
import sys
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import numpy as np

from tests.bench.pages import AUTHORS, FIRST_ID, LANGUAGE, VOCABULARY, draw_vocabulary
from tests.support.s3_server import StoredObject, serve

COPY_EVERY = 50
WORDS = (60, 141)  # the fewest, and one more than the most
SEED = 1


def write_manifest(path: Path, stories: int) -> None:
    """List the stories; a copy has another author than its original."""
    with path.open("w", encoding="utf-8", newline="") as file:
        manifest = csv.writer(file)
        manifest.writerow(("id", "language", "author_id", "published_at"))
        for n in range(stories):
            manifest.writerow((FIRST_ID + n, LANGUAGE, n % AUTHORS, f"2026-01-01T00:00:00.{n % 1000:03}Z"))


def text_maker() -> Callable[[int], str]:
    """A function that makes the text of the n-th story, always the same."""
    vocabulary = draw_vocabulary(random.Random(SEED))
    zipf = np.fromiter(accumulate(1 / rank for rank in range(1, VOCABULARY + 1)), np.float64)

    def make_text(n: int) -> str:
        is_copy = n > 0 and n % COPY_EVERY == 0
        rng = np.random.Generator(np.random.SFC64(n // 2 | 1 if is_copy else n))
        places = np.searchsorted(zipf, rng.random(rng.integers(*WORDS)) * zipf[-1]).tolist()
        if is_copy and n % (2 * COPY_EVERY):
            places[n % len(places)] = n % VOCABULARY
        return " ".join(map(vocabulary.__getitem__, places))

    return make_text


def main(stories: int) -> None:
    """Serve the pages of so many stories, in any bucket."""
    make_text = text_maker()

    def find(path: str) -> StoredObject | None:
        n = int(path.rpartition("/")[2].removesuffix(".html")) - FIRST_ID
        return StoredObject.of(f"<p>{make_text(n)}</p>".encode()) if 0 <= n < stories else None

    serve(find)


if __name__ == "__main__":
    main(int(sys.argv[1]))
