"""The typical mistakes of a new user, and wrong input: each ends in one line that names the way out, with the right
exit code, or in a named outcome, and never in a traceback.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from neardup.cli import main
from neardup.ledger import lock

from tests.support.command import Neardup, assert_one_line, embedded
from tests.support.paths import SAMPLES
from tests.support.servers import free_port

HINDI_PAGE = SAMPLES / "stories" / "HINDI" / "4100000.html"
Files = dict[str, str | bytes]
NONE: Files = {}
SAMPLE: Files = {"config.toml": embedded()}


def listing(name: str, content: str | bytes) -> Files:
    return {"config.toml": embedded(manifest=Path(name)), name: content}


def changed(before: str, after: str) -> Files:
    assert before in embedded()
    return {"config.toml": embedded().replace(before, after)}


MISTAKES: dict[str, tuple[Files, list[str], int, str]] = {
    "no configuration": (NONE, ["backfill"], 2, "`neardup init` writes one"),
    "a configuration in another folder": (NONE, ["--config", "a.toml", "status"], 2, "cannot read the config"),
    "a misspelt command": (NONE, ["backfil"], 2, "No such command 'backfil'"),
    "a misspelt option": (SAMPLE, ["export", "--fromat", "csv"], 2, "See `neardup export --help`"),
    "a missing argument": (SAMPLE, ["compare", str(HINDI_PAGE)], 2, "Missing argument 'B'"),
    "a misspelt key": (changed("manifest =", "manifst ="), ["backfill"], 2, "source.manifst: unknown key"),
    "a string without quotes": (changed('"sqlite:"', "sqlite:"), ["backfill"], 2, "bad TOML"),
    "a path without file:": (changed('url = "file:', 'url = "'), ["backfill"], 2, "neither file:PATH nor s3://"),
    "a folder that does not exist": (changed("/stories", "/tales"), ["backfill"], 1, "content.url: no folder"),
    "a manifest that does not exist": (changed("/manifest.csv", "/list.csv"), ["backfill"], 2, "cannot read the man"),
    "a manifest with other columns": (
        listing("list.csv", "story,lang\n1,hi\n"), ["backfill"], 2, "which has story, lang",
    ),
    "a manifest in UTF-16": (listing("list.csv", "id,language\n1,hi\n".encode("utf-16")), ["backfill"], 2, "as CSV"),
    "a workbook as a manifest": (listing("list.xlsx", b"PK\x03\x04..."), ["backfill"], 2, "save it as CSV"),
    "a row without a language": (listing("list.json", '[{"id": 1}]'), ["backfill"], 1, "unknown language ''"),
    "a picture as a manifest": (listing("list.csv", b"\x89PNG\r\n\0\0"), ["backfill"], 2, "is not text in UTF-8"),
    "an empty manifest": (listing("list.csv", "id,language\n"), ["backfill"], 1, "look at source.manifest"),
    "a language that is not known": (
        listing("list.csv", "id,language\n4100000,Hindustani\n"), ["backfill"], 1, "unknown language 'Hindustani'",
    ),
    "paths that lead nowhere": (
        listing("list.csv", "id,language,path\n1,hi,a.html\n"), ["backfill"], 1, "content.url",
    ),
    "a selector that matches nothing": (
        changed("article .story, div.post-body", "div.no-such-thing"), ["backfill"], 1, "extract.body",
    ),
    "a selector that is none": (changed("article .story, div.post-body", "p["), ["backfill"], 2, "not a CSS selector"),
    "a server that is not running": (
        changed('"sqlite:"', f'"redis://127.0.0.1:{free_port()}"'), ["backfill"], 75, "Redis does not answer",
    ),
    "an index without a scheme": (changed('"sqlite:"', '"localhost:6379"'), ["status"], 2, "index.url: must be sqlite"),
    "a folder as the ledger": (changed('"neardup.db"', '"."'), ["backfill"], 1, "it is a folder, not a file"),
    "labelled pairs in CSV": (
        SAMPLE | {"pairs.csv": "a,b\n1,2\n"}, ["evaluate", "--truth", "pairs.csv"], 2, "line 1: no JSON such as",
    ),
    "a page in place of a folder": (
        {"a.html": "<p>a"}, ["init", "--pages", "a.html", "--language", "hi"], 2, "name the folder that holds the",
    ),
    "results before a run": (SAMPLE, ["export"], 1, "run `neardup backfill` first"),
    "a check before a run": (SAMPLE, ["check", str(HINDI_PAGE), "--language", "hi"], 1, "run `neardup backfill` first"),
    "a check in an unknown language": (
        SAMPLE, ["check", str(HINDI_PAGE), "--language", "Hindustani"], 2, "'Hindustani'; known are Hindi (hi), ",
    ),
    "a file that does not exist": (NONE, ["compare", str(HINDI_PAGE), "nowhere.html"], 2, "cannot read nowhere.html"),
    "an id without a configuration": (NONE, ["compare", "1", "2"], 2, "config.toml"),
    "an output of an unknown format": (SAMPLE, ["export", "-o", "flags.docx"], 2, "use .csv"),
    "a variable without a section": (SAMPLE, ["status"], 2, "write NEARDUP_<SECTION>__<KEY>"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_that_names_the_way_out(
    mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, arguments, code, way_out = MISTAKES[mistake]
    for name, content in files.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.chdir(tmp_path)
    if mistake == "a variable without a section":
        monkeypatch.setenv("NEARDUP_WORKERS", "4")
    done = CliRunner().invoke(main, arguments, prog_name="neardup")
    lines = [line for line in done.stderr.splitlines() if not line.startswith('{"timestamp"')]
    assert done.exit_code == code, done.output
    assert len(lines) == 1 and lines[0].startswith("neardup: "), f"not one line:\n{done.stderr}"
    assert way_out in lines[0], lines[0]
    assert isinstance(done.exception, SystemExit), "an error must not escape"


PLANTED = 21  # pairs among the samples
Make = Callable[..., Neardup]
PROSE = "राम अपने गाँव के पुराने स्कूल में हर सुबह जल्दी पहुँच जाता था और दीवार पर लिखता था। "


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[source\n", ["bad TOML", "line 1"]),
        (embedded() + "[run]\nworkerz = 3\n", ["run.workerz: unknown key"]),
        (embedded() + "[colour]\nred = 1\n", ["colour: unknown key"]),
        (embedded(index="http://localhost"), ["index.url"]),
        (embedded(index="redis://localhost:notaport"), ["index.url"]),
        (embedded() + "[detection]\nhamming = 8\n", ["detection", "0 to 7", "whole band"]),
        (embedded() + '[export]\npath = "flags.pdf"\n', ["export: path: the ending .pdf names no format", ".csv"]),
        (embedded(manifest=Path("/nowhere.csv")), ["cannot read the manifest /nowhere.csv"]),
    ],
)
def test_a_wrong_configuration(make_neardup: Make, text: str, words: list[str]) -> None:
    assert_one_line(make_neardup(text)("backfill"), 2, *words)


def test_a_missing_configuration(neardup: Neardup) -> None:
    assert_one_line(neardup("status", config=Path("/nowhere.toml")), 2, "cannot read the configuration /nowhere.toml")


def test_config_is_taken_after_the_command_too(neardup: Neardup) -> None:
    assert_one_line(neardup("status", "--config", "/other.toml"), 2, "/other.toml")


def test_redis_down_at_start(make_neardup: Make) -> None:
    neardup = make_neardup(embedded(index=f"redis://127.0.0.1:{free_port()}"))
    for command in ("backfill", "daily", "reindex"):
        assert_one_line(neardup(command), 75, "Redis does not answer")


def test_no_ledger_yet(neardup: Neardup) -> None:
    for command in ("status", "export"):
        assert_one_line(neardup(command), 1, "run `neardup backfill` first")


def test_a_missing_folder_of_pages(make_neardup: Make) -> None:
    assert_one_line(make_neardup(embedded(stories=Path("/nowhere")))("backfill"), 1, "no folder /nowhere")


def test_an_export_that_cannot_be_written_is_one_warning(make_neardup: Make) -> None:
    neardup = make_neardup(embedded() + '\n[export]\npath = "/proc/flags.csv"\n')
    ended = neardup("backfill")
    assert (ended.code, ended.err.count("cannot write /proc/flags.csv")) == (0, 1), ended.err
    assert neardup("status", "--json").facts["runs"][0]["status"] == "done"
    assert len(neardup.flagged_pairs()) == PLANTED, "the run whose file could not be written has flagged its pairs"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["daily", "--since", "yesterday"], "'yesterday' is not an RFC 3339 time"),
        (["check", "-", "--language", "klingon"], "unknown language 'klingon'"),
        (["export", "-o", "flags.pdf"], "the ending .pdf names no format"),
        (["export", "-o", "s3://bucket/flags.csv.gz"], "the ending .gz names no format"),
        (["export", "-o", "nowhere/flags.csv"], "--output: there is no folder nowhere"),
        (["compare", "1", "2", "--html", "nowhere/page.html"], "--html: there is no folder nowhere"),
    ],
)
def test_wrong_arguments(neardup: Neardup, arguments: list[str], word: str) -> None:
    assert_one_line(neardup(*arguments), 2, word)


def test_a_second_pipeline_command_names_the_first(neardup: Neardup) -> None:
    with lock.only_one(neardup.ledger, "backfill"):
        assert_one_line(neardup("daily"), 75, "in use: neardup backfill, process ")
        assert "backfill, process" in neardup("status").out, "status does not name the running command"


def test_daily_from_athena_without_a_watermark(make_neardup: Make) -> None:
    athena = embedded().replace(
        "[source]", '[source]\nkind = "athena"\ndatabase = "d"\noutput = "s3://r/"\nbackfill_sql = "x"\ndaily_sql = "?"'
    )
    assert_one_line(make_neardup(athena)("daily"), 2, "no watermark yet", "neardup backfill")


def page(text: str) -> bytes:
    return f"<html><body><p>{text}</p></body></html>".encode()


PAGES = {
    "good.html": page(PROSE * 3),
    "utf16.html": f"<html><body><p>{PROSE * 3} और।</p></body></html>".encode("utf-16"),
    "word.html": page("शब्द"),
    "empty.html": b"",
    "huge.html": b"<p>" + b"word " * 12_000_000,
    "binary.html": bytes(range(256)) * 40,
}
MANIFEST = [
    ("1", "hi", "good.html"),
    ("", "hi", "good.html"),
    ("x" * 1001, "hi", "good.html"),
    ("3", "klingon", "good.html"),
    ("4", "hi", "../../secret.html"),
    ("5", "hi", "missing.html"),
    ("6", "hi", "empty.html"),
    ("7", "hi", "huge.html"),
    ("8", "hi", "binary.html"),
    ("9", "hi", "utf16.html"),
    ("10", "hi", "word.html"),
    ("1", "hi", "good.html"),
]


def test_wrong_rows_and_pages_are_named_outcomes(make_neardup: Make, tmp_path: Path) -> None:
    pages = tmp_path / "pages" / "below"
    pages.mkdir(parents=True)
    for name, body in PAGES.items():
        (pages / name).write_bytes(body)
    (tmp_path / "secret.html").write_bytes(page(PROSE * 5))
    manifest = tmp_path / "manifest.csv"
    manifest.write_text("id,language,path\n" + "".join(",".join(row) + "\n" for row in MANIFEST), encoding="utf-8")
    neardup = make_neardup(embedded(manifest, pages).replace('body = "article .story, div.post-body"', ""))
    ended = neardup("backfill", "--json")
    assert ended.code == 0, ended.err
    assert "Traceback" not in ended.err
    facts = ended.facts
    assert facts["listed"] == len(MANIFEST)
    assert facts["fingerprinted"] == 3, "the good page, the UTF-16 one, and the beginning of the huge one"
    assert facts["skipped"] == {"empty": 1, "missing": 1, "not_text": 1, "too_short": 1, "unchanged": 1}
    assert facts["dead_lettered"] == {"bad_id": 2, "bad_language": 1, "bad_path": 1}
    on_record = neardup("status", "--json").facts["dead_letters"]
    assert on_record == facts["dead_lettered"] | {"missing": 1}, "a missing page is not recorded for a retry"
    logged = [json.dumps(line) for line in ended.err.splitlines() if "dead-lettered" in line]
    assert len(logged) == 4, "a dead letter was not logged"
