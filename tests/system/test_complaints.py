"""`neardup complaints` records the rows of a CSV file, names those that it refuses, and lists the open ones."""

import csv
from pathlib import Path

from tests.support.command import Neardup, assert_one_line

HEAD = ["story_id", "original_id", "original_text", "complainant", "contact", "statement"]
COPY, ORIGINAL = "4104002", "4104000"


def write(path: Path, *rows: list[str], head: list[str] = HEAD) -> Path:
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([head, *rows])
    return path


def test_complaints_of_a_file_are_recorded_or_named(backfilled: Neardup, tmp_path: Path) -> None:
    person = ["Meera", "meera@example.com", "यह मेरी है,\nपूरी"]
    rows = [
        [COPY, ORIGINAL, "", *person],
        [COPY, ORIGINAL, "", *person],
        ["77", "", "", *person],
        [COPY, "", "", *person],
        [COPY, "", "दो शब्द", *person],
    ]
    ended = backfilled("complaints", "--add", str(write(tmp_path / "a.csv", *rows)))
    assert ended.code == 1
    recorded = [line.partition(", due")[0] for line in ended.out.splitlines()]
    assert recorded == ["line 3: complaint 1", "line 9: complaint 2"]
    for words in (
        "line 5: this is complaint 1",
        "line 7: the story is not on record",
        "line 11: the text of",
        "3 rows",
    ):
        assert words in ended.err, ended.err
    listed = backfilled("complaints", "--json")
    assert [complaint["evidence"]["compared_with"] for complaint in listed.rows] == ["story", "all"]
    assert "meera" not in listed.out.lower()
    assert f"1  story {COPY}  due " in backfilled("complaints").out
    assert backfilled("complaints", "--closed").out == "No closed complaints.\n"
    for path, words in (
        (tmp_path / "absent.csv", "cannot read"),
        (write(tmp_path / "b.csv", head=HEAD[1:]), "no column story_id"),
        (write(tmp_path / "c.csv", head=[*HEAD, "colour"]), "unknown column colour"),
        (write(tmp_path / "d.csv", [*["x"] * 7]), "more cells than columns"),
    ):
        assert_one_line(backfilled("complaints", "--add", str(path)), 2, "--add", words)
