"""The samples of translated and retold stories: each pair is listed, of its kind, and long enough for two chunks."""

import csv
import json

from neardup.core.text.chunks import cut_chunks
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_visible_text
from neardup.core.verify.tiers import RETOLD, TRANSLATED

from tests.support.paths import SAMPLES

FOLDER = SAMPLES / "meaning"


def test_each_pair_is_listed_and_long_enough() -> None:
    rows = {
        int(row["id"]): row["language"]
        for row in csv.DictReader((FOLDER / "manifest.csv").read_text(encoding="utf-8").splitlines())
    }
    pairs = [json.loads(line) for line in (FOLDER / "truth.jsonl").read_text(encoding="utf-8").splitlines()]
    assert sorted(story for pair in pairs for story in (pair["a"], pair["b"])) == sorted(rows)
    for pair in pairs:
        assert pair["kind"] == (RETOLD if rows[pair["a"]] == rows[pair["b"]] else TRANSLATED)
    for story, language in rows.items():
        page = (FOLDER / "stories" / language / f"{story}.html").read_text(encoding="utf-8")
        text = extract_visible_text(page, Extraction("article .story"))
        assert len(text.split()) >= 150, story
        assert len(cut_chunks(text)) >= 2, story
