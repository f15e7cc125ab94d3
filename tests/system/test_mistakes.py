"""The typical mistakes of a new user: each ends in one line that names the way out, and never in a traceback."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from neardup.cli import main

from tests.support.command import embedded
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
