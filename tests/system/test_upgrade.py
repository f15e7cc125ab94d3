"""A ledger of the oldest schema that is supported is upgraded by the first command that writes, and loses nothing."""

import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from neardup.ledger import connect, files, lock, removed_texts, schema

from tests.support.command import Neardup, assert_one_line
from tests.support.desk_client import get, named_client
from tests.support.moderated_samples import JUDGED, REMOVED, lay_out_oldest, moderate

# What was said at another time, by another ledger.
TIMES = (
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?: UTC|Z)?)?",
    r"\b\d+ [A-Z]\w+ \d{4}(?:, \d\d:\d\d UTC)?",
    r"\b[1-4]\d{12}\b",
    r"\bin \d+ \w+\b",
)
FOLDERS, TAGS = r"[\w/-]*/(?:old|new)/", "<[^>]*>"
DIFFERS = re.compile("|".join([*TIMES, FOLDERS, TAGS]))
SAID = (
    ("export", "--format", "jsonl"),
    ("export", "--format", "jsonl", "--status", "plagiarism"),
    ("export", "--format", "jsonl", "--by", "story"),
    ("verdicts",),
    ("permit", "--json"),
    ("complaints", "--json"),
    ("dead-letters", "--json"),
    ("suspects", "--json"),
    ("show", str(JUDGED), "--json"),
    ("audit", "--json"),
)
PAGES = ("/", f"/case/{JUDGED}", f"/story/{JUDGED}", "/authors", "/author/7046", "/complaints", "/permissions")
Make = Callable[..., Neardup]


def read_schema(path: Path) -> set[tuple[Any, ...]]:
    """The columns of the tables, and the definitions of everything else, apart from white space."""
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
        found = {("column", name, *row) for _, name, _ in rows for row in db.execute(f"PRAGMA table_xinfo({name})")}
        others = {(kind, name, " ".join(sql.split())) for kind, name, sql in rows if kind != "table"}
        return found | others | {db.execute("PRAGMA user_version").fetchone()}


def said(neardup: Neardup, *arguments: str) -> str:
    ended = neardup(*arguments)
    assert ended.code == 0, f"{arguments}: {ended.err}"
    return DIFFERS.sub("…", ended.out)


async def pages_of(neardup: Neardup) -> set[tuple[str, str]]:
    async with named_client(neardup.folder) as client:
        return {(path, line) for path in PAGES for line in DIFFERS.sub("…", (await get(client, path))[1]).splitlines()}


async def test_an_upgraded_ledger_says_what_a_new_one_says(make_neardup: Make) -> None:
    old, new = make_neardup("", "old"), make_neardup("", "new")
    lay_out_oldest(old)
    before = old.ledger.read_bytes()
    for command in (["status"], ["export"], ["permit"], ["show", str(JUDGED)]):
        assert_one_line(old(*command), 1, "earlier neardup (schema 19, this one reads", "`neardup doctor` upgrades it")
    assert old.ledger.read_bytes() == before, "a command that only reads wrote"

    moderate(new)
    for neardup in (old, new):
        ended = neardup("doctor")
        assert ended.code == 0, ended.out
        lines = [json.loads(line) for line in ended.err.splitlines() if "was upgraded" in line]
        versions = [(line["former_schema"], line["schema"]) for line in lines]
        assert versions == ([(schema.OLDEST, schema.VERSION)] if neardup is old else []), ended.err
    assert read_schema(old.ledger) == read_schema(new.ledger)
    for arguments in SAID:
        assert said(old, *arguments) == said(new, *arguments), arguments
    assert await pages_of(old) ^ await pages_of(new) == set()
    with closing(connect(old.ledger)) as db:
        [(removed,)] = db.execute("SELECT story_id FROM removed_texts").fetchall()
        assert removed == REMOVED and not removed_texts.read_passages(db), "what was not kept is made up"

    ended = old("daily", "--since", "2025-01-01T00:00:00Z")
    assert ended.code == 0 and '"pages were read again"' not in ended.err, ended.err
    counts = json.loads(old("status", "--json").out)["runs"][0]["counts"]
    assert (counts["fingerprinted"], counts["listed"]) == (0, 61), counts


@pytest.mark.parametrize(
    "command",
    [
        ("permit", "--by", "7046"),
        ("dead-letters", "--drop", "--reason", "missing"),
        ("dead-letters", "--webhooks", "--drop", "KEY"),
        ("retry",),
        ("retry", "--webhooks"),
    ],
    ids=" ".join,
)
def test_a_command_that_writes_upgrades_first(make_neardup: Make, command: tuple[str, ...]) -> None:
    neardup = make_neardup("")
    lay_out_oldest(neardup)
    ended = neardup(*command)
    assert "the ledger was upgraded" in ended.err, ended.err
    refused = ("no dead event KEY", "no webhook is set")  # for what they lack here, not for the schema
    assert ended.code == 0 or any(why in ended.err for why in refused), ended.err


def test_a_backup_before_an_upgrade_is_a_copy_of_the_former_ledger(make_neardup: Make) -> None:
    neardup = make_neardup("")
    lay_out_oldest(neardup)
    before = neardup.ledger.read_bytes()
    ended = neardup("backup", "copy.db")
    assert ended.code == 0 and neardup.ledger.read_bytes() == before, ended.err
    with closing(sqlite3.connect(neardup.ledger)) as db, closing(sqlite3.connect(neardup.folder / "copy.db")) as copy:
        assert schema.read_version(copy) == schema.OLDEST and list(copy.iterdump()) == list(db.iterdump())
    passages, copies = (files.name_passages_folder(neardup.folder / name) for name in (neardup.ledger, "copy.db"))
    assert {path.name for path in passages.iterdir()} == {path.name for path in copies.iterdir()} != set()


def test_a_copy_of_the_oldest_schema_that_is_restored_alone_is_upgraded_by_a_run(make_neardup: Make) -> None:
    neardup = make_neardup("")
    lay_out_oldest(neardup)
    shutil.rmtree(files.name_passages_folder(neardup.ledger))
    ended = neardup("daily")
    assert ended.code == 0 and all(line in ended.err for line in ("was upgraded", "pages were read again")), ended.err
    ended = neardup("doctor")
    assert ended.code == 0 and "was upgraded" not in ended.err, ended.out


def test_an_upgrade_waits_for_a_command_of_the_former_program(make_neardup: Make) -> None:
    neardup = make_neardup("")
    lay_out_oldest(neardup)
    before = neardup.ledger.read_bytes()
    with lock.only_one(neardup.ledger, "daily"):
        assert_one_line(neardup("backfill"), 75, "the ledger is in use: neardup daily")
    assert neardup.ledger.read_bytes() == before
