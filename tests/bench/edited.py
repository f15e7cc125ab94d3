"""A corpus of the sample stories and edited copies of them; its pairs come from comparing all pairs exactly."""

import csv
import html
import json
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, cycle
from pathlib import Path

import neardup
from neardup.records import Language

from tests.bench.corpus import Document, read_documents, scores, shingle_set

SAMPLES = Path(neardup.__file__).parent / "samples"
FIRST_ID = 9_000_000
COPIES = 2  # edited copies of each story
RUN_WORDS = 20  # the length of the runs that are shuffled when a story is reordered
LEAST_SCORE = 0.3  # pairs with a lower containment are not listed

Words = list[str]
Edit = Callable[[Words, Words, random.Random], Words]


def replaced(share: float) -> Edit:
    """Replace this share of the words by words of another story."""

    def edit(words: Words, other: Words, rng: random.Random) -> Words:
        return [rng.choice(other) if rng.random() < share else word for word in words]

    return edit


def appended(share: float) -> Edit:
    """Append words of another story, this share of the story's own length."""
    return lambda words, other, rng: words + other[: int(share * len(words))]


def halved(words: Words, other: Words, rng: random.Random) -> Words:
    """Keep the first half, followed by another story's second half."""
    return words[: len(words) // 2] + other[len(other) // 2 :]


def shortened(words: Words, other: Words, rng: random.Random) -> Words:
    """Keep only the second half."""
    return words[len(words) // 2 :]


def reordered(words: Words, other: Words, rng: random.Random) -> Words:
    runs = [words[at : at + RUN_WORDS] for at in range(0, len(words), RUN_WORDS)]
    return [word for run in rng.sample(runs, len(runs)) for word in run]


EDITS: tuple[Edit, ...] = (
    *map(replaced, (0.01, 0.05, 0.1, 0.15, 0.2, 0.3)),
    *map(appended, (0.25, 0.5)),
    halved,
    shortened,
    reordered,
)


def write_corpus(folder: Path, seed: int = 1) -> None:
    """Write the sample stories, COPIES edited copies of each, and the exact scores of all pairs."""
    (folder / "html").mkdir(parents=True)
    with (folder / "manifest.csv").open("w", encoding="utf-8", newline="") as file:
        manifest = csv.writer(file)
        manifest.writerow(("id", "language", "path"))
        for story_id, (language, words) in enumerate(_stories(random.Random(seed)), FIRST_ID):
            page = f'<!DOCTYPE html><meta charset="utf-8"><title>story</title><p>{html.escape(" ".join(words))}</p>'
            (folder / "html" / f"{story_id}.html").write_text(page, encoding="utf-8")
            manifest.writerow((story_id, language, f"{story_id}.html"))
    with (folder / "pairs.jsonl").open("w", encoding="utf-8") as pairs:
        for row in exact_scores(read_documents(folder / "manifest.csv", folder / "html")):
            pairs.write(json.dumps(row) + "\n")


def _stories(rng: random.Random) -> Iterator[tuple[Language, Words]]:
    with (SAMPLES / "truth.jsonl").open(encoding="utf-8") as file:
        copies = {json.loads(line)["b"] for line in file}
    samples = read_documents(SAMPLES / "manifest.csv", SAMPLES / "stories")
    originals = [(sample.language, sample.text.split()) for sample in samples if sample.id not in copies]
    yield from originals
    edits = cycle(EDITS)
    for _ in range(COPIES):
        for language, words in originals:
            others = [text for its_language, text in originals if its_language == language and text is not words]
            yield language, next(edits)(words, rng.choice(others), rng)


def exact_scores(documents: Sequence[Document]) -> Iterator[dict[str, float]]:
    """Compare the sets of word pairs of every two stories of a language, without hashes and without an index."""
    shingles = [(document, shingle_set(document)) for document in documents]
    for (a, shingles_a), (b, shingles_b) in combinations(shingles, 2):
        if a.language == b.language:
            jaccard, containment = scores(shingles_a, shingles_b)
            if containment >= LEAST_SCORE:
                yield {"a": a.id, "b": b.id, "j": jaccard, "c": containment}
