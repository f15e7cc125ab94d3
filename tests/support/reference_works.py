"""A reference for the sample stories: in each language two editions of one story, and a work with a passage of another.

One more work is a Hindi story in Bengali script.  All are dated later than the stories that copy them.
"""

import csv
import random
from pathlib import Path

from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_visible_text

from tests.support.command import embedded
from tests.support.languages import BENGALI, HINDI, SAMPLED
from tests.support.paths import SAMPLES
from tests.support.sample_texts import STORIES, transliterated
from tests.support.samples import ROWS

CLASSICS, REPRINTS = "Classics", "पुनर्मुद्रण"
LICENCE = "CC BY-SA 4.0"
SECTION = """
[reference]
manifest = "works.csv"
[reference.content]
url = "file:works"
key = "{language}/{id}.html"
[reference.extract]
body = "main"
"""
PASSAGE_WORDS = 150

Copies = set[tuple[int, str]]  # the id of a story, and the name of the work that it copies


def make_works(folder: Path) -> Copies:
    """Write works.csv and works/ to a folder; returns the copies that are sure to be found."""
    rows, copies = list[dict[str, str]](), set[tuple[int, str]]()

    def add(catalogue: str, work: str, language: str, text: str, story: int) -> None:
        page = folder / "works" / language / f"{work}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        footer = "<footer>Not a part of any work. " * 40
        page.write_text(f"<title>{work}</title><main>{text}</main>{footer}", encoding="utf-8")
        row = {"id": work, "language": language, "catalogue": catalogue, "published_at": "2031-01-01T00:00:00Z"}
        rows.append(row | {"licence": LICENCE if catalogue == CLASSICS else ""})
        copies.add((story, f"reference:{catalogue}/{work}"))

    for number, language in enumerate(SAMPLED):
        copied, quoted = [row for row in ROWS if row["language"] == language][:2]
        add(CLASSICS, f"{number}", language, text_of(copied), int(copied["id"]))
        add(REPRINTS, f"{number}, 2nd", language, text_of(copied), int(copied["id"]))
        own = random.Random(number).choices(" ".join(STORIES[language]).split(), k=600)
        passage = text_of(quoted).split()[5 : 5 + PASSAGE_WORDS]
        add(CLASSICS, f"{number} essay", language, " ".join([*own[:300], *passage, *own[300:]]), int(quoted["id"]))
        if language == HINDI:
            text = transliterated(text_of(copied), HINDI, BENGALI)
            add(REPRINTS, "other script", BENGALI, text, int(copied["id"]))
    write_works(folder, rows)
    return copies


def text_of(row: dict[str, str]) -> str:
    page = SAMPLES / "stories" / row["language"] / f"{row['id']}.html"
    return extract_visible_text(page.read_text(encoding="utf-8"), Extraction("article .story, div.post-body"))


def write_works(folder: Path, rows: list[dict[str, str]]) -> None:
    with (folder / "works.csv").open("w", encoding="utf-8", newline="") as out:
        table = csv.DictWriter(out, rows[0])
        table.writeheader()
        table.writerows(rows)


def read_works(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "works.csv").read_text(encoding="utf-8").splitlines()))


def protected() -> str:
    """The configuration of the samples, with [reference]."""
    return embedded() + SECTION
