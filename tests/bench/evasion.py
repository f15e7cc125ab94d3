"""Disguises 24 real stories in every way of `tests.support.disguises*`, and counts the copies that are flagged.

`python -m tests.bench.evasion CORPUS` takes the stories from a corpus (see `corpus`), in turn from each language that a
disguise applies to.  Each run of the pipeline has few disguises, so that no story has more copies than
`detection.common_passage` and `detection.max_matches` allow.
"""

import csv
import html
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from neardup.records import Language

from tests.bench.corpus import Document, read_documents
from tests.support.disguises import DISGUISES, Disguise
from tests.support.disguises_by_markup import BY_ELEMENT, BY_ORDER, HIDDEN_BY_STYLE

EVERY = (*DISGUISES, *HIDDEN_BY_STYLE, *BY_ELEMENT, *BY_ORDER)
STORIES = 24
DISGUISES_PER_RUN = 20
WORDS = range(200, 1_500)
MAIN = "from neardup.cli import main; main()"
FIRST_COPY = 10_000_000_000
CONFIG = """
source = {kind = "manifest", manifest = "manifest.csv"}
content = {url = "file:pages"}
index = {url = "sqlite:"}
ledger = {path = "neardup.db"}
"""

Pages = dict[int, tuple[Language, str]]


def chosen(documents: Sequence[Document], disguise: Disguise) -> list[Document]:
    """The stories that are disguised: from each language in turn."""
    held = defaultdict[Language, list[Document]](list)
    for document in documents:
        if len(document.text.split()) in WORDS:
            held[document.language].append(document)
    spread = [held[language][:: max(1, len(held[language]) // STORIES)] for language in disguise.languages]
    return [label for label in chain.from_iterable(zip_longest(*spread)) if label is not None][:STORIES]


def flagged(pages: Pages, folder: Path, environment: Mapping[str, str]) -> set[frozenset[int]]:
    """The pairs that a backfill of these pages flags."""
    (folder / "pages").mkdir()
    with (folder / "manifest.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "language", "path"])
        for number, (language, markup) in pages.items():
            rows.writerow([number, language, f"{number}.html"])
            page = f"<!doctype html><meta charset=utf-8><body>{markup}"
            (folder / "pages" / f"{number}.html").write_text(page, encoding="utf-8")
    (folder / "config.toml").write_text(CONFIG, encoding="utf-8")
    for arguments in (["backfill"], ["export", "-o", str(folder / "flags.csv")]):
        command = [sys.executable, "-c", MAIN, "--config", str(folder / "config.toml"), *arguments]
        subprocess.run(command, check=True, env=environment, capture_output=True)
    with (folder / "flags.csv").open(encoding="utf-8", newline="") as file:
        return {frozenset((int(row["story_id"]), int(row["matched_id"]))) for row in csv.DictReader(file)}


@click.command()
@click.argument("corpus", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--source", default="", help="The folder `daemon` of another version of neardup, to be measured instead.")
def main(corpus: Path, source: str) -> None:
    """Print how many of the disguised copies are flagged."""
    environment = os.environ | {"PYTHONPATH": source}
    documents = read_documents(corpus / "manifest.csv", corpus / "html")
    click.echo("| family | disguise | flagged | of |\n|---|---|---|---|")
    for first in range(0, len(EVERY), DISGUISES_PER_RUN):
        some = EVERY[first : first + DISGUISES_PER_RUN]
        pages: Pages = {}
        copies: list[tuple[Disguise, frozenset[int]]] = []
        for disguise in some:
            for story in chosen(documents, disguise):
                copy = FIRST_COPY + len(copies)
                pages[story.id] = story.language, html.escape(story.text).replace("\n", "<br>")
                pages[copy] = disguise.label or story.language, disguise.page(story.text, story.language)
                copies.append((disguise, frozenset((story.id, copy))))
        with TemporaryDirectory(prefix="neardup-bench-") as folder:
            pairs = flagged(pages, Path(folder), environment)
        for disguise in some:
            found = [pair in pairs for label, pair in copies if label is disguise]
            click.echo(f"| {disguise.family} | {disguise.name} | {sum(found)} | {len(found)} |")


if __name__ == "__main__":
    main()
