"""A corpus with known pairs: a folder with manifest.csv (id, language, path), html/ and pairs.jsonl.

A line of pairs.jsonl has the ids `a` and `b`, the Jaccard similarity `j` of the two stories' sets of word pairs, and
the containment `c` of the smaller set.  Pairs that are not listed have little in common.
"""

import csv
import html
import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import combinations, cycle, pairwise
from pathlib import Path

import click
import neardup
from msgspec import Struct
from neardup.core.languages import SHIPPED
from neardup.core.text.decoding import NoStoryText
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_page_text
from neardup.core.text.normalize import tokenize
from neardup.records import Language

MUST = 0.55  # a pair with either score at least this must be found
MAY = 0.45  # a pair with both scores below this is false; other pairs may be found, but need not

Pair = tuple[int, int]  # ids, the lower first


class Document(Struct, frozen=True):
    """A story and the text of its page."""

    id: int
    language: Language
    text: str


class Truth(Struct, frozen=True):
    """The pairs that must be found, by the score that makes them copies, and the pairs that may be found."""

    jaccard: frozenset[Pair]
    containment: frozenset[Pair]  # pairs that are copies by containment alone
    may: frozenset[Pair]

    @property
    def must(self) -> frozenset[Pair]:
        return self.jaccard | self.containment

    @property
    def correct(self) -> frozenset[Pair]:
        """The pairs that a detector may report."""
        return self.must | self.may


def check(folder: Path) -> None:
    """Raises UsageError for a folder that is not a corpus."""
    missing = [name for name in ("manifest.csv", "html", "pairs.jsonl") if not (folder / name).exists()]
    if missing:
        raise click.UsageError(f"{folder} is not a corpus: {', '.join(missing)} is missing")


def read_documents(manifest: Path, pages: Path) -> list[Document]:
    """The stories that have text, in the manifest's order, with the texts as neardup extracts them."""
    documents = []
    with manifest.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            page = pages / (row.get("path") or f"{row['language']}/{row['id']}.html")
            with suppress(NoStoryText):
                text = extract_page_text(page.read_bytes(), "text/html", Extraction())
                documents.append(Document(int(row["id"]), SHIPPED.find(row["language"]), text))
    return documents


def read_truth(folder: Path) -> Truth:
    with (folder / "pairs.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    scored = [(ordered(row["a"], row["b"]), row["j"], row["c"]) for row in rows]
    similar = frozenset(pair for pair, jaccard, _ in scored if jaccard >= MUST)
    contained = frozenset(pair for pair, _, containment in scored if containment >= MUST) - similar
    may = frozenset(pair for pair, jaccard, containment in scored if max(jaccard, containment) >= MAY)
    return Truth(similar, contained, may - similar - contained)


def shingle_set(document: Document) -> frozenset[tuple[bytes, bytes]]:
    """A document's distinct word pairs, not hashed."""
    return frozenset(pairwise(tokenize(document.text)))


def scores(a: frozenset[object], b: frozenset[object]) -> tuple[float, float]:
    """The exact Jaccard similarity, and the containment of the smaller set."""
    common = len(a & b)
    return common / max(len(a | b), 1), common / max(min(len(a), len(b)), 1)


def ordered(a: int, b: int) -> Pair:
    return min(a, b), max(a, b)


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
