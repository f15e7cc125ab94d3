"""`neardup scan` of tables finds what a scan of the same texts in files finds; wrong tables are one line each."""

import csv
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from neardup import find_copies
from pyarrow import parquet

from tests.support.command import Ended, Neardup, assert_one_line
from tests.support.languages import CODES, SAMPLED
from tests.support.sample_texts import STORIES

ROWS = [
    {"id": f"{CODES[language]}-{n}", "language": CODES[language], "text": text}
    for language in SAMPLED
    for n, text in enumerate(STORIES[language])
]
PROSE = "राम अपने गाँव के पुराने स्कूल में हर सुबह जल्दी पहुँच जाता था और दीवार पर लिखता था। " * 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    (folder / "config.toml").touch()
    for name, separator in (("stories.csv", ","), ("stories.tsv", "\t"), ("semicolons.csv", ";")):
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(ROWS[0]), delimiter=separator)
            writer.writeheader()
            writer.writerows(ROWS)
    lines = (json.dumps({"Body": row["text"], "key": row["id"]}, ensure_ascii=False) for row in ROWS)
    (folder / "stories.jsonl").write_text("\n".join(lines), encoding="utf-8")
    table = pa.table({"prose": [row["text"] for row in ROWS], "name": [row["id"] for row in ROWS]})
    parquet.write_table(table, folder / "stories.parquet")
    (folder / "array.json").write_text(json.dumps(ROWS, ensure_ascii=False), encoding="utf-8")
    for name, table_name in (("misnamed.csv", "array.json"), ("misnamed.json", "stories.jsonl")):
        shutil.copyfile(folder / table_name, folder / name)
    shutil.copyfile(folder / "stories.csv", folder / "table.txt")
    shutil.copyfile(folder / "stories.parquet", folder / "no_ending")
    return folder


@pytest.fixture(scope="module")
def neardup(folder: Path) -> Neardup:
    return Neardup(folder, {})


@pytest.fixture(scope="module")
def expected() -> set[tuple[str, ...]]:
    """The copies by the names of their texts, the lesser first: names and kind."""
    found = find_copies({row["id"]: row["text"] for row in ROWS})
    return {(*sorted((str(pair.a), str(pair.b))), pair.kind) for pair in found}


def pairs(ended: Ended) -> set[tuple[str, ...]]:
    assert ended.code == 0, ended.err
    rows: list[dict[str, Any]] = [json.loads(line) for line in ended.out.splitlines()]
    return {(*sorted((row["matched_title"], row["story_title"])), row["kind"]) for row in rows}


@pytest.mark.parametrize(
    "arguments",
    [
        ["stories.csv"],
        ["stories.tsv"],
        ["semicolons.csv"],
        ["stories.jsonl"],
        ["stories.parquet", "--text", "prose"],
        ["array.json"],
        ["misnamed.csv"],
        ["misnamed.json"],
        ["table.txt"],
        ["no_ending", "--text", "prose"],
    ],
    ids=lambda arguments: str(arguments[0]),
)
def test_every_kind_of_table_gives_the_copies(
    neardup: Neardup, expected: set[tuple[str, ...]], arguments: list[str]
) -> None:
    assert pairs(neardup("scan", *arguments, "--format", "jsonl")) == expected


def test_stdin_is_compared_with_a_table(neardup: Neardup, folder: Path, expected: set[tuple[str, ...]]) -> None:
    first, second, kind = min(expected)
    text = next(row["text"] for row in ROWS if row["id"] == first)
    command = neardup.command("scan", "-", "--against", "stories.jsonl", "--format", "jsonl", "--fail")
    done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=folder, env={}, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1, done.stderr
    assert {row["story_title"] for row in rows} == {"stdin"}
    matched = {row["matched_title"]: row["kind"] for row in rows}
    assert matched[f"stories.jsonl:{first}"] == "exact"
    assert matched[f"stories.jsonl:{second}"] == kind


BAD_ROWS = [
    json.dumps({"id": 1, "text": PROSE}),
    '{"id": 2, "text": "cut',
    json.dumps({"id": 3}),
    json.dumps({"id": 4, "text": 5}),
    json.dumps({"id": 5, "text": PROSE, "language": "klingon"}),
    json.dumps({"id": 6, "text": "", "language": "hi"}),
    json.dumps({"id": "=7\t", "text": f"<p>{PROSE}", "language": "Hindi"}),
]


def test_bad_rows_are_named_and_counted(neardup: Neardup, folder: Path) -> None:
    (folder / "bad.jsonl").write_text("\n".join(BAD_ROWS), encoding="utf-8")
    ended = neardup("scan", "bad.jsonl", "--id", "id", "--keep", "bad.db", "--format", "jsonl")
    assert pairs(ended) == {("1", "=7", "exact")}
    assert "2 of 7 documents were compared" in ended.err
    for words in ("bad_row 3", "bad.jsonl, row 2: not JSON", "bad_language 1", "unknown language 'klingon'", "empty 1"):
        assert words in ended.err, ended.err
    shown = neardup("export", "--format", "html", config=folder / "bad.db.toml")
    assert "राम अपने" in shown.out, "the kept texts cannot be read again"


@pytest.mark.parametrize(
    ("name", "content", "options", "words"),
    [
        ("t.csv", "id,words\n1,a\n", [], ["t.csv: which column holds the texts? Name it with --text: id, words"]),
        ("t.csv", "id,words\n1,a\n", ["--text", "body"], ["--text: t.csv has no column body, only id, words"]),
        ("t.jsonl", '{"text": "a"}\n', ["--id", "key"], ["--id: t.jsonl has no column key, only text"]),
        ("t.parquet", "no Parquet", [], ["t.parquet is not a Parquet file"]),
        ("t.csv", "", [], ["none of 0 documents"]),
    ],
)
def test_a_wrong_table_is_one_line(
    neardup: Neardup, name: str, content: str, options: list[str], words: list[str]
) -> None:
    (neardup.folder / name).write_text(content, encoding="utf-8")
    assert_one_line(neardup("scan", name, *options), 1 if "none" in words[0] else 2, *words)
