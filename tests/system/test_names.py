"""A story is never nameless: listed title, else the page's title or heading, else its path, else its first words."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

from tests.support.command import COMMON, Neardup
from tests.support.desk_corpus import prose

TEXT = prose(1)
PAGES = {
    1: ("a/1.html", "listed", f"<html><head><title>page</title></head><body><div class=post-body>{TEXT}</div>"),
    2: ("a/2.html", "", f"<html><head><title>page &amp; title</title></head><body><div class=post-body>{TEXT}</div>"),
    3: ("a/3.html", "", f"<body><h2>a heading</h2><div class=post-body>{TEXT}</div>"),
    4: ("a/4.html", "", f"<body><div class=post-body>{TEXT}</div>"),
    5: ("", "", f"<body><div class=post-body>{TEXT}</div>"),
}
TITLES = {1: "listed", 2: "page & title", 3: "a heading", 4: "a/4.html", 5: " ".join(TEXT.split()[:10])}


def corpus(folder: Path) -> str:
    """Copies of one story, named in different ways."""
    with (folder / "manifest.jsonl").open("w", encoding="utf-8") as manifest:
        for story, (path, title, html) in PAGES.items():
            page = folder / "pages" / (path or f"HINDI/{story}.html")
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(html, encoding="utf-8")
            manifest.write(json.dumps({"id": story, "language": "hi", "path": path, "title": title}) + "\n")
    return f'[source]\nmanifest = "{folder}/manifest.jsonl"\n[content]\nurl = "file:{folder}/pages"\n' + COMMON.format(
        index="sqlite:"
    )


def test_every_story_has_a_name(make_neardup: Callable[[str], Neardup], tmp_path: Path) -> None:
    neardup = make_neardup(corpus(tmp_path))
    printed = neardup("backfill")
    assert printed.code == 0, printed.err
    rows = list(csv.DictReader(io.StringIO(neardup("export", "--format", "csv").out)))
    assert len(rows) == 10
    for side in ("story", "matched"):
        for row in rows:
            story = int(row[f"{side}_id"])
            assert row[f"{side}_title"] == TITLES[story], story
            assert row[f"{side}_path"] == PAGES[story][0], story
    page = neardup("export", "--format", "html").out
    for name in TITLES.values():
        assert name.replace("&", "&amp;") in page, f"{name} is not on the page"
        assert name.split()[0] in printed.out, f"{name} is not in the table of new flags"
    assert "page & title" in neardup("compare", "1", "2").out
