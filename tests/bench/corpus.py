"""A corpus with known pairs: a folder with manifest.csv (id, language, path), html/ and pairs.jsonl.

A line of pairs.jsonl has the ids `a` and `b`, the Jaccard similarity `j` of the two stories' sets of word pairs, and
the containment `c` of the smaller set.  Pairs that are not listed have little in common.
"""

import csv
import json
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import click
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
