"""A folder of stories of which it is known which pairs have how much in common.

manifest.csv (id, language, path), html/, and pairs.jsonl: a, b, and of their sets of word pairs the
Jaccard similarity `j` and the containment of the smaller `c`; a pair that is not listed has little
in common.
"""

import csv
import json
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import click
from neardup.core.text.html import Extraction, NoStoryText, page_text
from neardup.core.text.normalize import tokens
from neardup.languages import SHIPPED
from neardup.records import Language

MUST = 0.55  # at this or more, on either score, a pair must be found
MAY = 0.45  # below this on both it is false; between the two it may be found

Pair = tuple[int, int]  # ids, the lower first


@dataclass(frozen=True, slots=True)
class Document:
    """A story with the text of its page."""

    id: int
    language: Language
    text: str


@dataclass(frozen=True, slots=True)
class Truth:
    """The pairs that must be found, by what makes them copies, and those that may be."""

    jaccard: frozenset[Pair]
    containment: frozenset[Pair]  # that score alone
    may: frozenset[Pair]

    @property
    def must(self) -> frozenset[Pair]:
        return self.jaccard | self.containment

    @property
    def right(self) -> frozenset[Pair]:
        """All that a detector may report."""
        return self.must | self.may


def check(folder: Path) -> None:
    """Raises UsageError for a folder that is no such corpus."""
    missing = [name for name in ("manifest.csv", "html", "pairs.jsonl") if not (folder / name).exists()]
    if missing:
        raise click.UsageError(f"{folder} holds no {', no '.join(missing)}")


def read_documents(manifest: Path, pages: Path) -> list[Document]:
    """The stories in the manifest's order, as neardup reads their pages; those without a text left out."""
    documents = []
    with manifest.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            page = pages / (row.get("path") or f"{row['language']}/{row['id']}.html")
            with suppress(NoStoryText):
                text = page_text(page.read_bytes(), "text/html", Extraction())
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
    """A document's distinct word pairs, as they are."""
    return frozenset(pairwise(tokens(document.text)))


def scores(ours: frozenset[object], theirs: frozenset[object]) -> tuple[float, float]:
    """Exact Jaccard similarity, and containment of the smaller."""
    common = len(ours & theirs)
    return common / max(len(ours | theirs), 1), common / max(min(len(ours), len(theirs)), 1)


def ordered(a: int, b: int) -> Pair:
    return min(a, b), max(a, b)
