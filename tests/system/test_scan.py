"""`neardup scan` finds what a backfill of the same pages finds, and keeps nothing unless it is asked to."""

import csv
import json
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from neardup import find_copies
from neardup.cli import console, main
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_page_text
from neardup.ledger import connect, read, runs

from tests.support.command import Ended, Neardup, assert_one_line, embedded
from tests.support.languages import HINDI, TAMIL
from tests.support.paths import SAMPLES
from tests.support.sample_texts import STORIES as SAMPLE_TEXTS

STORIES = SAMPLES / "stories"
PAGES = sorted(STORIES.rglob("*.html"))
WHOLE_PAGES = (
    embedded()
    .replace('body = "article .story, div.post-body"', 'body = ""')
    .replace('strip = [".share", ".author-note"]', "")
)
PROSE = "राम अपने गाँव के पुराने स्कूल में हर सुबह जल्दी पहुँच जाता था और दीवार पर लिखता था। "


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scans")


@pytest.fixture(scope="module")
def neardup(folder: Path) -> Neardup:
    """The command in a folder whose configuration a scan must not need."""
    neardup = Neardup(folder, {"TMPDIR": str(folder / "temporary")})
    (folder / "temporary").mkdir()
    neardup.configure(WHOLE_PAGES)
    return neardup


@pytest.fixture(scope="module")
def kept(neardup: Neardup) -> Ended:
    """A scan of the samples, whose ledger is kept in kept.db."""
    return neardup("scan", str(STORIES), "--keep", "kept.db", "--html", "copies.html", "--format", "jsonl")


def rows(ended: Ended) -> list[dict[str, Any]]:
    assert ended.code == 0, ended.err
    return [json.loads(line) for line in ended.out.splitlines()]


def flags_of(ledger: Path) -> dict[tuple[str, str], tuple[Any, ...]]:
    """The flags by the paths of their stories, the lesser first: spans, language, kind and scores."""
    paths = ", ".join(f"coalesce({side}.path, l.name || '/' || {side}.id || '.html')" for side in ("s", "t"))
    query = (
        f"SELECT {paths}, spans_a, spans_b, l.name, kind, hamming, jaccard, longest_run_words, status FROM flags"
        " JOIN stories s ON s.id = a JOIN stories t ON t.id = b JOIN languages l ON l.number = flags.language"
    )
    flags = {}
    with closing(read(ledger)) as db:
        for path_a, path_b, spans_a, spans_b, *about in db.execute(query):
            sides = sorted([(path_a, spans_a), (path_b, spans_b)])
            flags[sides[0][0], sides[1][0]] = (sides[0][1], sides[1][1], *about)
    return flags


def test_a_scan_of_a_folder_finds_what_a_backfill_of_its_pages_finds(neardup: Neardup, kept: Ended) -> None:
    assert kept.code == 0, kept.err
    assert neardup("backfill").code == 0
    expected, found = flags_of(neardup.ledger), flags_of(neardup.folder / "kept.db")
    assert expected, "the samples have no copies"
    assert found.keys() == expected.keys(), "the pairs differ"
    assert found == expected, "kinds, scores or spans differ"


def test_find_copies_finds_what_a_scan_finds(neardup: Neardup, kept: Ended) -> None:
    texts = {page.relative_to(STORIES): extract_page_text(page.read_bytes(), None, Extraction()) for page in PAGES}
    found = {(*sorted((str(copy.a), str(copy.b))), copy.language, copy.kind) for copy in find_copies(texts)}
    flags = flags_of(neardup.folder / "kept.db")
    assert found == {(*paths, language, kind) for paths, (_, _, language, kind, *_) in flags.items()}


def test_the_rows_name_the_files(kept: Ended) -> None:
    named = {(row["story_title"], row["matched_title"]) for row in rows(kept)}
    assert named
    assert all(Path(name).is_relative_to(STORIES) for pair in named for name in pair), named


def test_a_kept_ledger_serves_the_commands_on_flags(neardup: Neardup, kept: Ended) -> None:
    config = neardup.folder / "kept.db.toml"
    assert f"neardup --config {config.name}" in kept.err
    exported = neardup("export", "--format", "jsonl", config=config)
    assert rows(exported) == rows(kept)
    shown = neardup("show", str(rows(kept)[0]["story_id"]), config=config)
    assert shown.code == 0, shown.err
    assert "similarity" in shown.out
    daily = neardup("daily", config=config, NEARDUP_METRICS__LISTEN="127.0.0.1:0")  # the port is another test's
    assert_one_line(daily, 2, "run `neardup scan`")


def test_the_page_has_the_pairs(neardup: Neardup, kept: Ended) -> None:
    page = (neardup.folder / "copies.html").read_text(encoding="utf-8")
    assert all(row["story_title"] in page for row in rows(kept))


def test_what_a_killed_scan_left_does_not_stop_the_next_one(neardup: Neardup, folder: Path) -> None:
    page = str(PAGES[0])
    left = folder / "left.db"
    left.touch()
    assert neardup("scan", page, "--keep", left.name).code == 0
    assert neardup("scan", page, "--keep", left.name).code == 2, "a scan that ended is replaced"
    for path in folder.glob("left.db*"):
        path.unlink()
    with closing(connect(left)) as db:
        runs.begin(db, "scan")
    assert neardup("scan", page, "--keep", left.name).code == 0


def test_a_scan_prints_clusters_with_their_passages_and_keeps_nothing(neardup: Neardup) -> None:
    ended = neardup("scan", str(STORIES / "TAMIL"), "--fail")
    assert ended.code == 1, ended.err
    for words in ("Cluster 1: 2 texts", "similar", "98 %", "TAMIL/4104000.html", "«"):
        assert words in ended.out, ended.out
    assert not list((neardup.folder / "temporary").iterdir()), "the temporary ledger was left behind"


def test_without_copies_a_scan_says_so_and_fails_not(neardup: Neardup) -> None:
    ended = neardup("scan", str(STORIES / "TAMIL" / "4104000.html"), "--fail")
    assert (ended.code, ended.out) == (0, "No copies.\n"), ended.err


def test_a_reference_is_compared_with_the_new_only(neardup: Neardup, kept: Ended) -> None:
    reference, *new = sorted((STORIES / "TAMIL").glob("*.html"))
    found = rows(neardup("scan", *map(str, new), "--against", str(reference), "--format", "jsonl"))
    expected = [row for row in rows(kept) if str(reference) in (row["story_title"], row["matched_title"])]
    assert expected, "the first story was not copied"
    assert {row["story_title"] for row in found} == {row["story_title"] for row in expected}
    assert {row["matched_title"] for row in found} == {str(reference)}


BAD = {
    "empty.txt": b"",
    "binary.txt": bytes(range(256)) * 40,
    "word.txt": "शब्द".encode(),
    "greek.txt": "Ελληνικά γράμματα ".encode() * 40,
    "photo.jpg": b"\xff\xd8",
}


def test_what_cannot_be_compared_is_named_and_counted(neardup: Neardup, tmp_path: Path) -> None:
    for name, body in BAD.items() | {("a.txt", (PROSE * 3).encode()), ("b.md", (PROSE * 3).encode("utf-16"))}:
        (tmp_path / name).write_bytes(body)
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nowhere")
    (tmp_path / b"caf\xe9.txt".decode("utf-8", "surrogateescape")).write_bytes(b"")
    ended = neardup("scan", str(tmp_path), "--format", "csv")
    assert ended.code == 0, ended.err
    assert "Traceback" not in ended.err
    assert [row["kind"] for row in csv.DictReader(ended.out.splitlines())] == ["exact"]
    assert "2 of 8 documents were compared" in ended.err
    for reason, name in (
        ("empty 1", "empty.txt"),
        ("not_text 1", "binary.txt"),
        ("too_short 1", "word.txt"),
        ("bad_language 1", "greek.txt"),
        ("missing 1", "gone.txt"),
        ("bad_path 1", "caf�.txt"),
    ):
        assert reason in ended.err, f"{reason}: {ended.err}"
        assert name in ended.err, name
    assert "left out, by ending: .jpg 1" in ended.err


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    for name, text in (
        ("a.txt", PROSE),
        ("\udcff/a.txt", PROSE),
        ("held.db", "text"),
        ("pictures/photo.jpg", ""),
        ("tables/stories.csv", "text"),
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "empty").mkdir()
    return folder


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], ["nowhere: no such file or folder"]),
        (["*.pdf"], ["*.pdf: no such file or folder"]),
        (["empty"], ["empty: no .txt, .md, .html, .htm, .xhtml file"]),
        (["pictures"], ["pictures: no .txt, .md", "only .jpg 1"]),
        (["tables"], ["tables: no .txt, .md", "only .csv 1; name a table itself"]),
        (["a.txt", "--language", "klingon"], ["--language: unknown language 'klingon'"]),
        (["a.txt", "--html", "nowhere/page.html"], ["--html: there is no folder nowhere"]),
        (["a.txt", "--keep", "nowhere/kept.db"], ["--keep: there is no folder nowhere"]),
        (["\udcff", "--keep", "kept.db"], ["--keep: cannot write ", "not UTF-8"]),
        (["a.txt", "--keep", "held.db"], ["--keep: held.db exists already"]),
        (["a.txt", "--text", "story"], ["--text and --id name columns of a table"]),
        (["a.txt", "--against", "a.txt"], ["a.txt: no .txt, .md", "not in the reference"]),
    ],
    ids=" ".join,
)
def test_a_wrong_argument_is_one_line_that_names_the_way_out(
    pages: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: list[str]
) -> None:
    """In this process, because each line costs a second in one of its own."""
    monkeypatch.chdir(pages)
    monkeypatch.setattr(console, "set_up_logging", lambda: None)  # it configures the whole process
    ended = CliRunner().invoke(main, ["scan", *arguments])
    assert_one_line(Ended(ended.exit_code, ended.stdout, ended.stderr), 2, *words)


def test_nothing_to_compare_is_a_failure(neardup: Neardup, tmp_path: Path) -> None:
    (tmp_path / "word.txt").write_text("word", encoding="utf-8")
    assert_one_line(neardup("scan", str(tmp_path)), 1, "none of 1 documents can be compared: too_short 1", "word.txt")


def test_a_folder_of_several_languages_says_which_texts_seem_to_be_in_which(neardup: Neardup, tmp_path: Path) -> None:
    for language in (HINDI, TAMIL):
        for n, text in enumerate(SAMPLE_TEXTS[language][:2]):
            (tmp_path / f"{language}{n}.txt").write_text(text, encoding="utf-8")
    (tmp_path / "french.txt").write_text("le chat est dans la maison avec les enfants du village " * 5)
    ended = neardup("scan", str(tmp_path))
    assert "language by script and words: HINDI 2, TAMIL 2, ENGLISH 1; 1 of them is uncertain" in ended.err, ended.err


CHROME = "<nav><a>Home</a> <a>All the stories of the month</a></nav>{}<footer>All rights are reserved by us</footer>"


def test_what_most_pages_of_a_folder_share_is_left_out_and_said(neardup: Neardup, tmp_path: Path) -> None:
    texts = [*SAMPLE_TEXTS[HINDI][:5], SAMPLE_TEXTS[HINDI][0]]
    for n, text in enumerate(texts):
        (tmp_path / f"{n}.html").write_text(CHROME.format(f"<div class='tale'>{text}</div>"), encoding="utf-8")
    (tmp_path / "plain.txt").write_text(texts[0], encoding="utf-8")
    ended = neardup("scan", str(tmp_path), "--format", "csv", "--keep", str(tmp_path / "kept.db"))
    assert "left out of the pages, because most of them share it: footer, nav" in ended.err, ended.err
    exact = {
        frozenset(Path(row[side]).name for side in ("story_title", "matched_title"))
        for row in csv.DictReader(ended.out.splitlines())
        if row["kind"] == "exact"
    }
    same = ("0.html", "5.html", "plain.txt")
    assert exact == {frozenset(pair) for pair in combinations(same, 2)}
    assert "nav" in (tmp_path / "kept.db.toml").read_text(encoding="utf-8"), "other commands read the same texts"


def test_what_copies_share_is_no_chrome(neardup: Neardup, tmp_path: Path) -> None:
    for n in range(6):
        page = f"<nav>menu {n}</nav><div class='tale'>{SAMPLE_TEXTS[HINDI][0]}</div>"
        (tmp_path / f"{n}.html").write_text(page, encoding="utf-8")
    ended = neardup("scan", str(tmp_path), "--format", "csv")
    assert "left out" not in ended.err and len(ended.out.splitlines()) == 1 + 15, ended.err
