"""Stories may have ids that are names: every output shows the names, never the integers that are made from them; every
command accepts them; and Redis holds integers all the same.  A story is never nameless: listed title, else the page's
title or heading, else its path, else its first words.
"""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from pyarrow import parquet  # type: ignore[import-untyped]

from tests.support.command import COMMON, Ended, Neardup, embedded
from tests.support.desk_client import prose
from tests.support.exported_pairs import read_xlsx
from tests.support.paths import SAMPLES
from tests.support.samples import PLANTED, ROWS

FOLDER = {row["id"]: f"{row['language']}/{row['id']}.html" for row in ROWS}
MADE = re.compile(r"[4-9][0-9]{18}")  # integers that are made from names
A, B, _ = min(PLANTED)
LOST = {**ROWS[0], "id": "lost"}
EXPORTS: tuple[list[str], ...] = ([], ["--by", "story"], ["--keep", "earliest"])
OUTPUTS = [
    "status",
    "status --json",
    "dead-letters",
    "dead-letters --json",
    "suspects",
    "suspects --json",
    "verdicts",
    "audit",
    "audit --json",
    "evaluate --truth truth.jsonl",
    "evaluate --truth truth.jsonl --json",
    *(f"export {' '.join(options)} --format {form}" for options in EXPORTS for form in ("csv", "jsonl", "html")),
]


def name_of(story: object) -> str:
    return f"कथा {story}; =one/two"


@pytest.fixture
def named(make_neardup: Callable[..., Neardup], tmp_path: Path, redis_or_valkey_url: str) -> Neardup:
    """The samples and a story without a page, by names, semicolon-separated, after a backfill into Redis."""
    with (tmp_path / "list.csv").open("w", encoding="utf-8", newline="") as out:
        rows = csv.DictWriter(out, [*ROWS[0], "path"], delimiter=";")
        rows.writeheader()
        rows.writerows(row | {"id": name_of(row["id"]), "path": FOLDER.get(row["id"])} for row in [*ROWS, LOST])
    neardup = make_neardup(embedded(manifest=tmp_path / "list.csv", index=redis_or_valkey_url))
    wanted = [{"a": name_of(a), "b": name_of(b)} for a, b, _ in PLANTED] + [{"a": name_of(A), "b": name_of("nowhere")}]
    truth = "\n".join(json.dumps(pair) for pair in wanted)
    (neardup.folder / "truth.jsonl").write_text(truth, encoding="utf-8")
    assert_shows(neardup("backfill"), "कथा ")
    return neardup


def assert_shows(ended: Ended, *shown: str) -> None:
    """A command shows these texts, and no integer that is made from a name."""
    assert ended.code == 0, ended.err
    text = ended.out + ended.err
    assert not (made := MADE.search(text)), f"the integer of a name is shown: {text[max(made.start() - 200, 0) :]:.300}"
    lacking = [name for name in shown if " ".join(name.split()) not in " ".join(text.split())]
    assert not lacking, f"{lacking} is not in {text:.2000}"


def test_every_output_has_the_names(named: Neardup, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in named("export", "--format", "jsonl").out.splitlines()]
    found = {(*sorted((row["story_id"], row["matched_id"])), row["kind"]) for row in rows}
    assert found == {(*sorted((name_of(a), name_of(b))), kind) for a, b, kind in PLANTED}
    for command in OUTPUTS:
        assert_shows(named(*command.split()))
    for options in EXPORTS:
        table = list(csv.DictReader(named("export", *options, "--format", "csv").out.splitlines()))
        for form in ("xlsx", "parquet"):
            assert_shows(named("export", *options, "-o", str(tmp_path / f"out.{form}")))
        header, *cells = [[cell.value for cell in row] for row in read_xlsx(tmp_path / "out.xlsx")]
        in_xlsx = [dict(zip(header, row, strict=True)) for row in cells]
        for form, some in {
            "csv": table,
            "xlsx": in_xlsx,
            "parquet": parquet.read_table(tmp_path / "out.parquet").to_pylist(),
        }.items():
            ids = [row[name] for row in some for name in row if name.endswith("_id") and name in NAMED]
            wrong = [shown for shown in ids if not str(shown).startswith("कथा ")]
            assert ids and not wrong, f"{form} {options}: {wrong}"


NAMED = {"story_id", "matched_id", "earlier_id", "cluster_id", "top_source_id"}


def test_every_command_takes_the_names(named: Neardup, redis_or_valkey_url: str) -> None:
    a, b = name_of(A), name_of(B)
    page = str(SAMPLES / "stories" / FOLDER[str(A)])
    language = page.rsplit("/", 2)[-2]
    for options in ([], ["--json"]):
        assert_shows(named("show", b, *options), b)
        assert_shows(named("compare", a, b, *options), a, b)
        assert_shows(named("check", page, "--language", language, *options), a, b)
    assert_shows(named("case", b, "--html"), b)
    for selection in ("--story", "--cluster"):
        assert_shows(named("export", selection, a, "--format", "jsonl"), a, b)
    assert_shows(named("dead-letters", name_of("lost")), name_of("lost"))
    assert_shows(named("retry", name_of("lost")))
    refused = named("retry", name_of("nowhere"))
    assert refused.code == 2 and f"no dead letter {name_of('nowhere')}" in refused.err, refused.err
    assert named("dead-letters", name_of("lost"), "--drop").out == "1 dead letter was deleted\n"

    with redis.Redis.from_url(redis_or_valkey_url) as client:
        sets = [key for key in client.scan_iter(count=1000) if client.type(key) == b"set"]
        assert sets and {client.object("encoding", key) for key in sets} == {b"intset"}

    assert_shows(named("forget", a), f"story {a} is forgotten")
    assert named("show", a).code == 1
    assert_shows(named("forget", a, "--undo"), f"story {a} is listed again")


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
