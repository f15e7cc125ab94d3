"""The sample stories and edited copies of them, as a corpus whose truth is found by comparing all pairs."""

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
COPIES = 2  # of each story, so that a story is in about one pair
RUN_WORDS = 20  # what is moved when a story is reordered
LEAST_SCORE = 0.3  # pairs with less in common are not written down

Words = list[str]
Edit = Callable[[Words, Words, random.Random], Words]


def replaced(share: float) -> Edit:
    """That share of the words changed for words of another story."""

    def edit(words: Words, other: Words, rng: random.Random) -> Words:
        return [rng.choice(other) if rng.random() < share else word for word in words]

    return edit


def appended(share: float) -> Edit:
    """Followed by so much of another story, measured by the story's own length."""
    return lambda words, other, rng: words + other[: int(share * len(words))]


def halved(words: Words, other: Words, rng: random.Random) -> Words:
    """The first half, then another story's second half."""
    return words[: len(words) // 2] + other[len(other) // 2 :]


def shortened(words: Words, other: Words, rng: random.Random) -> Words:
    """The second half alone."""
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
            others = [theirs for spoken, theirs in originals if spoken == language and theirs is not words]
            yield language, next(edits)(words, rng.choice(others), rng)


def exact_scores(documents: Sequence[Document]) -> Iterator[dict[str, float]]:
    """Compare the sets of word pairs of every two stories of a language, with no hash and no index."""
    shingles = [(document, shingle_set(document)) for document in documents]
    for (one, ours), (other, theirs) in combinations(shingles, 2):
        if one.language == other.language:
            jaccard, containment = scores(ours, theirs)
            if containment >= LEAST_SCORE:
                yield {"a": one.id, "b": other.id, "j": jaccard, "c": containment}
