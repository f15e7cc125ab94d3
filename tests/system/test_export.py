"""The command `export`, and the exports of runs, on the bundled samples; its files and others are closed to others."""

import asyncio
import csv
import json
import os
from collections.abc import Callable
from contextlib import closing
from io import StringIO
from pathlib import Path
from typing import Any

import openpyxl  # type: ignore[import-untyped]
import pytest
from msgspec.structs import replace
from neardup.ledger import connect, webhook_events
from neardup.option_values import FORMATS, Format
from pyarrow import parquet  # type: ignore[import-untyped]
from selectolax.lexbor import LexborHTMLParser

from tests.support.command import Neardup, assert_one_line, embedded
from tests.support.languages import CODES, SAMPLED
from tests.support.servers import REGION, Aws
from tests.support.small_servers import webhook_server

ALL = 21


def exported(neardup: Neardup, *options: str) -> list[dict[str, Any]]:
    done = neardup("export", "--format", "jsonl", *options)
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.split("\n")[:-1]]


def with_s3(aws: Aws, neardup: Neardup, **env: str) -> Neardup:
    """The command with this S3 in [content], although its pages are files."""
    content = {"ENDPOINT": aws.endpoint, "REGION": REGION, "PATH_STYLE": "true"}
    return replace(
        neardup, env=neardup.env | env | {f"NEARDUP_CONTENT__{key}": value for key, value in content.items()}
    )


def flags_in(path: Path, form: Format) -> list[int]:
    match form:
        case "csv":
            with path.open(encoding="utf-8-sig", newline="") as file:
                return [int(row["flag_id"]) for row in csv.DictReader(file)]
        case "jsonl":
            return [json.loads(line)["flag_id"] for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
        case "xlsx":
            return [int(row[0]) for row in openpyxl.load_workbook(path).active.iter_rows(2, values_only=True)]
        case "parquet":
            return list(parquet.read_table(path)["flag_id"].to_pylist())
        case "html":
            pairs = LexborHTMLParser(path.read_text(encoding="utf-8")).css("article .evidence")
            return [int((pair.attributes["id"] or "").removeprefix("flag-")) for pair in pairs]


def test_every_format_gives_the_same_flags_worst_first(flagged: Neardup) -> None:
    worst_first = [row["flag_id"] for row in exported(flagged)]
    assert len(worst_first) == ALL
    (flagged.folder / "out").mkdir()
    for form in FORMATS:
        path = flagged.folder / "out" / f"flags.{form}"
        ended = flagged("export", "-o", str(path))
        assert (ended.code, f"{ALL} flags: {path}" in ended.err) == (0, True), ended.err
        found = flags_in(path, form)
        assert found == worst_first or (form == "html" and sorted(found) == sorted(worst_first)), form
    ended = flagged("export", "--format", "csv", "--bom", "-o", str(flagged.folder / "flags.xlsx"))
    assert flags_in(flagged.folder / "flags.xlsx", "csv") == worst_first, (
        "--format must take precedence over the file name"
    )
    assert (flagged.folder / "flags.xlsx").read_bytes().startswith(b"\xef\xbb\xbf")


def test_flags_can_be_chosen(flagged: Neardup) -> None:
    rows = exported(flagged)
    first = rows[0]
    for options, wanted in (
        (["--language", "hi"], [row for row in rows if row["language"] == "HINDI"]),
        (["--language", "hi", "--language", "TAMIL"], [row for row in rows if row["language"] in {"HINDI", "TAMIL"}]),
        (["--kind", "near", "--kind", "partial"], [row for row in rows if row["kind"] in {"near", "partial"}]),
        (["--status", "withdrawn"], []),
        (["--status", "open", "--status", "not_similar"], rows),
        (["--min-similarity", "0.9"], [row for row in rows if row["similarity"] >= 0.9]),
        (["--author", "7001"], [r for r in rows if "7001" in {r["story_author_id"], r["matched_author_id"]}]),
        (["--story", str(first["story_id"])], [first]),
        (["--cluster", str(first["matched_id"])], [row for row in rows if row["cluster_id"] == first["cluster_id"]]),
        (["--since", "2000-01-01"], rows),
        (["--until", "2000-01-01"], []),
    ):
        assert exported(flagged, *options) == wanted, options


@pytest.mark.parametrize(("options", "words"), [
    (["--language", "klingon"], "--language: unknown language 'klingon'"),
    (["--since", "soon"], "--since: 'soon' is not"),
    (["--since", "2026-01-02", "--until", "2026-01-01"], "--since must be before --until"),
    (["-o", "s3://bucket"], "--output: not s3://BUCKET/KEY"), (["-o", "a.xlsx", "--bom"],
    "--bom: only CSV files have a byte order mark, not xlsx"),
])  # fmt: skip
def test_a_wrong_option_is_one_error_line(flagged: Neardup, options: list[str], words: str) -> None:
    ended = flagged("export", *options)
    assert (ended.code, ended.err.count("\n"), words in ended.err) == (2, 1, True), ended.err


def test_parquet_without_its_library_is_one_error_line(flagged: Neardup) -> None:
    (flagged.folder / "without").mkdir()
    (flagged.folder / "without" / "pyarrow.py").write_text(
        "raise ImportError('absent', name='pyarrow')", encoding="utf-8"
    )
    path = os.pathsep.join([str(flagged.folder / "without"), flagged.env.get("PYTHONPATH", "")])
    for command in (["export", "-o", "flags.parquet"], ["daily"]):
        ended = flagged(*command, PYTHONPATH=path, NEARDUP_EXPORT__PATH="flags.parquet")
        assert (ended.code, ended.err.splitlines()[-1:]) == (
            2,
            ["neardup: the format parquet needs pyarrow: pip install 'neardup[parquet]'"],
        ), ended.err
    assert exported(flagged, "--new"), "a failed export marked flags as exported"


def test_flags_are_marked_after_the_file_is_in_place(aws: Aws, flagged: Neardup) -> None:
    aws.bucket("flags")
    flagged = with_s3(aws, flagged)
    for target in ("s3://none/flags.csv", "/proc/flags.csv"):
        ended = flagged("export", "--new", "-o", target)
        assert (ended.code, f"neardup: cannot write {target}: " in ended.err) == (1, True), ended.err
    ended = flagged("export", "--new", "-o", "s3://flags/today/flags.csv")
    assert (ended.code, f"{ALL} flags: s3://flags/today/flags.csv" in ended.err) == (0, True), ended.err
    body = aws.client("s3").get_object(Bucket="flags", Key="today/flags.csv")["Body"].read().decode()
    assert len(list(csv.DictReader(StringIO(body)))) == ALL
    assert exported(flagged, "--new") == []


def test_a_run_writes_its_page_and_prints_its_path(make_neardup: Callable[[str], Neardup]) -> None:
    neardup = make_neardup(embedded() + '[export]\npath = "out/flags.html"\n')
    ended = neardup("backfill")
    assert ended.out.splitlines()[-1] == f"Open flags: {neardup.folder / 'out' / 'flags.html'}", ended.err
    tree = LexborHTMLParser((neardup.folder / "out" / "flags.html").read_text(encoding="utf-8"))
    assert len(tree.css("article")) == ALL
    for element in tree.css("article"):
        excerpts = element.css("dd")
        assert excerpts, f"no copied passage of {element.attributes['id']}"
        assert len(excerpts) % 2 == 0
        assert all(excerpt.css("mark") for excerpt in excerpts)
    assert {element.attributes["lang"] for element in tree.css("dd [lang]")} == {
        CODES[language] for language in SAMPLED
    }
    assert "Seventh on the List" in tree.text()


async def test_a_run_posts_to_a_webhook_and_writes_to_s3(aws: Aws, neardup: Neardup) -> None:
    aws.bucket("flags")
    neardup = with_s3(aws, neardup, NEARDUP_EXPORT__PATH="s3://flags/flags.jsonl")
    async with webhook_server(200, 404) as (url, received):
        done = await asyncio.to_thread(neardup, "backfill", "--json", NEARDUP_EXPORT__WEBHOOK=url)
        again = await asyncio.to_thread(neardup, "daily", "--json", NEARDUP_EXPORT__WEBHOOK=url)
    assert (done.code, again.code) == (0, 0), again.err
    assert received[0] == {**received[0], **done.facts, "command": "backfill", "file": "s3://flags/flags.jsonl"}
    assert received[0]["flagged_by_catalogue"] == {}, "without a reference no copy is one of a work"
    assert "export.webhook answers 404" in again.err, "the failure of the webhook was not logged"
    body = aws.client("s3").get_object(Bucket="flags", Key="flags.jsonl")["Body"].read().decode()
    assert len(body.split("\n")) == ALL + 1


async def test_dead_events_of_webhooks_are_listed_and_sent_again(make_neardup: Callable[[str], Neardup]) -> None:
    neardup = make_neardup(embedded())
    with closing(connect(neardup.ledger)) as db:
        for author in ("a1", "a2"):
            event: dict[str, Any] = {"event": "hide", "at": "2026-01-01T00:00:00Z", "author": author, "stories": []}
            event["by"] = "Asha"
            webhook_events.announce(db, webhook_events.VERDICTS, event)
        db.execute("UPDATE webhook_events SET due_at = NULL, attempts = 15, error = 'review.webhook answers 500'")
    later, first = neardup("dead-letters", "--webhooks", "--json").facts["dead_events"]
    assert (first["event"]["author"], later["event"]["author"], first["attempts"]) == ("a1", "a2", 15)
    assert "answers 500" in neardup("dead-letters", "--webhooks").out
    assert_one_line(neardup("retry", "--webhooks", "7"), 2, "no dead event 7")
    assert_one_line(neardup("retry", "--webhooks"), 2, "no webhook is set")
    async with webhook_server(500, 200, 200) as (url, received):
        for keys, delivered, waiting in (([first["key"]], 0, 1), ([], 1, 0)):
            sent = await asyncio.to_thread(neardup, "retry", "--webhooks", *keys, "--json", NEARDUP_REVIEW__WEBHOOK=url)
            assert sent.facts == {"delivered": delivered, "waiting": waiting}, sent.err
    assert [event["author"] for event in received] == ["a1", "a2"]
    assert neardup("dead-letters", "--webhooks").out == "No dead events.\n"


def test_an_export_that_cannot_be_written_is_one_warning(make_neardup: Callable[[str, str], Neardup]) -> None:
    """Flags, watermark and exit code are as without the export."""
    without = make_neardup(embedded(), "without")
    neardup = make_neardup(embedded() + '[export]\npath = "file/sub/flags.csv"\n', "with")
    (neardup.folder / "file").write_text("no folder", encoding="utf-8")
    why = f"cannot write {neardup.folder / 'file' / 'sub' / 'flags.csv'}: Not a directory"
    for command in ("backfill", "sweep", "daily"):
        done, undisturbed = neardup(command, "--json"), without(command, "--json")
        assert (done.code, undisturbed.code) == (0, 0), done.err
        times = ("seconds", "stories_per_second")
        assert done.facts == undisturbed.facts | {name: done.facts[name] for name in times if name in done.facts} | {
            "warnings": {"export": why}
        }
        warnings = [line for line in map(json.loads, done.err.splitlines()) if "hook" in line]
        assert [(line["hook"], line["why"]) for line in warnings] == [("export", why)], "one warning, and no more"
    facts, wanted = neardup("status", "--json").facts, without("status", "--json").facts
    assert facts["watermark"] == wanted["watermark"] is not None
    assert [run["status"] for run in facts["runs"]] == ["done"] * 3
    assert [run["counts"]["warnings"] for run in facts["runs"]] == [{"export": why}] * 3
    pairs = [[row["story_id"], row["matched_id"], row["kind"]] for row in exported(neardup)]
    assert pairs == [[row["story_id"], row["matched_id"], row["kind"]] for row in exported(without)]
    assert len(pairs) == ALL
    shown = neardup("daily").out
    assert f"warning: export failed: {why}" in shown, "the warning is not printed"
    assert "Open flags: " not in shown, "a missing file is named"
    assert "export failed: cannot write " in neardup("status").out


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_files_have_mode_0640(neardup: Neardup, tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        for command in (
            ("backfill", "--json"),
            ("backup", str(tmp_path / "copy.db")),
            *(("export", "-o", str(tmp_path / f"flags.{ending}")) for ending in ("csv", "jsonl", "xlsx", "html")),
            ("compare", "4104002", "4104005", "--html", str(tmp_path / "pair.html")),
        ):
            done = neardup(*command)
            assert done.code == 0, done.err
    finally:
        os.umask(before)
    written = [*tmp_path.glob("*.*"), *neardup.folder.glob("neardup.db*")]
    assert {"neardup.db", "copy.db", "flags.html", "pair.html"} <= {path.name for path in written}
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in written if path.is_file()} == {
        path.name: "0o640" for path in written if path.is_file() and path.name != "config.toml"
    }


def test_log_of_an_open_ledger_has_its_mode(neardup: Neardup) -> None:
    with closing(connect(neardup.ledger)):
        modes = {path.name: oct(path.stat().st_mode & 0o777) for path in neardup.folder.glob("neardup.db*")}
    assert modes == {f"neardup.db{ending}": "0o640" for ending in ("", "-wal", "-shm")}
