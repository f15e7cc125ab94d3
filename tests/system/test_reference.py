"""`neardup reference`: copies of works are flagged in ten languages, whatever the dates and the kind; a sync that is
killed at any instant and run again ends as one that was not; and a catalogue that is removed leaves no trace.
"""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from neardup.source.parse import parse_id

from tests.support.command import Neardup, assert_one_line, embedded
from tests.support.ledger_state import state
from tests.support.paths import SAMPLES
from tests.support.reference_works import (
    CLASSICS,
    LICENCE,
    REPRINTS,
    Copies,
    make_works,
    protected,
    read_works,
    write_works,
)

KILLED_AT = (0, 16, 31)  # works listed


@pytest.fixture(scope="module")
def backfilled(tmp_path_factory: pytest.TempPathFactory) -> Neardup:
    """The samples after a backfill, with a reference that was not listed yet."""
    neardup = Neardup(tmp_path_factory.mktemp("backfilled"), {})
    neardup.configure(protected())
    make_works(neardup.folder)
    assert neardup("backfill").code == 0
    return neardup


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Copies:
    return make_works(tmp_path_factory.mktemp("works"))


@pytest.fixture(scope="module")
def first_sync(backfilled: Neardup, tmp_path_factory: pytest.TempPathFactory) -> tuple[Neardup, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("synced") / "neardup"
    shutil.copytree(backfilled.folder, folder)
    synced = Neardup(folder, {})
    done = synced("reference", "sync", "--json")
    assert done.code == 0, done.err
    return synced, done.facts


@pytest.fixture
def synced(neardup: Neardup, first_sync: tuple[Neardup, dict[str, Any]]) -> Neardup:
    """The samples after a backfill and a sync."""
    shutil.copytree(first_sync[0].folder, neardup.folder, dirs_exist_ok=True)
    return neardup


def flagged_works(neardup: Neardup) -> list[dict[str, Any]]:
    """The open flags of copies of works."""
    rows = [json.loads(line) for line in neardup("export", "--format", "jsonl").out.splitlines()]
    return [row for row in rows if row["catalogue"] is not None]


def test_copies_of_works_are_flagged_in_every_language(
    first_sync: tuple[Neardup, dict[str, Any]], copies: Copies
) -> None:
    neardup, facts = first_sync
    assert (facts["status"], facts["listed"], facts["added"]) == ("done", len(copies), len(copies))
    rows = flagged_works(neardup)
    missed = copies - {(row["story_id"], row["matched_id"]) for row in rows}
    assert not missed, f"not flagged as copies: {sorted(missed)}"
    for row in rows:
        assert row["matched_id"] == row["earlier_id"] and parse_id(row["matched_id"]) < 0 <= row["story_id"], row
        assert row["matched_id"] == f"reference:{row['catalogue']}/{row['matched_id'].partition('/')[2]}"
        assert row["licence"] == (LICENCE if row["catalogue"] == CLASSICS else None)
        assert row["publication_order"] == f"{row['matched_id']} is a work of the catalogue {row['catalogue']}"
    assert {row["kind"] for row in rows} >= {"near", "passage", "transliterated"}
    assert sum(facts["flagged"].values()) == len(rows), "a sync flagged stories of the platform, or works"

    only = neardup("export", "--catalogue", REPRINTS, "--format", "jsonl").out.splitlines()
    assert {json.loads(line)["flag_id"] for line in only} == {
        row["flag_id"] for row in rows if row["catalogue"] == REPRINTS
    }
    shown = neardup("show", str(min(copies)[0]))
    assert shown.code == 0 and f"reference:{CLASSICS}/" in shown.out, shown.out + shown.err
    page = str(SAMPLES / "stories" / "HINDI" / "4100000.html")
    checked = neardup("check", page, "--language", "hi", "--json").facts
    assert checked["verdict"] == "copy"
    assert {CLASSICS, REPRINTS} <= {match["catalogue"] for match in checked["matches"]}
    listed = neardup("reference", "list", "--json").rows
    assert {catalogue["name"]: (catalogue["works"], catalogue["licences"]) for catalogue in listed} == {
        CLASSICS: (20, [LICENCE]), REPRINTS: (11, []),
    }  # fmt: skip
    assert sum(catalogue["open_flags"] for catalogue in listed) == len(rows)


def test_a_sync_does_what_the_list_says_and_no_more(synced: Neardup) -> None:
    before = state(synced)
    again = synced("reference", "sync")
    assert again.out.startswith("done: 31 works listed: 0 added, 0 updated, 0 removed;"), again.out + again.err
    assert state(synced) == before, "a second sync changed the ledger"

    rows = read_works(synced.folder)
    write_works(synced.folder, [row for row in rows if row["catalogue"] == CLASSICS])
    edited = synced.folder / "works" / rows[0]["language"] / f"{rows[0]['id']}.html"
    edited.write_text(edited.read_text(encoding="utf-8").replace("<main>", "<main>नया संस्करण "), encoding="utf-8")
    assert synced("reference", "sync", "--json").facts.items() >= {"added": 0, "updated": 1, "removed": 11}.items()
    assert {row["catalogue"] for row in flagged_works(synced)} == {CLASSICS}


def test_a_catalogue_that_is_removed_leaves_no_trace(synced: Neardup, backfilled: Neardup) -> None:
    (synced.folder / "works.csv").unlink()
    synced.configure(embedded())
    for name, count in ((CLASSICS, 20), (REPRINTS, 11)):
        assert synced("reference", "remove", name).out == f"{name}: {count} works were removed\n"
    assert synced("reindex").code == 0  # until then its buckets hold the numbers of the works, which lookups ignore
    after, before = state(synced), state(backfilled)
    assert [after.pop("index") != [], before.pop("index") != []] == [True, True]
    assert after == before
    assert_one_line(synced("reference", "remove", CLASSICS), 2, "no catalogue", CLASSICS)


def test_a_sync_that_is_killed_and_run_again_ends_equal(
    neardup: Neardup, backfilled: Neardup, first_sync: tuple[Neardup, dict[str, Any]]
) -> None:
    shutil.copytree(backfilled.folder, neardup.folder, dirs_exist_ok=True)
    killed = 0
    for listed in KILLED_AT:
        program = [sys.executable, "-m", "tests.support.signalled_command", "SIGKILL", str(listed)]
        arguments = ["--config", str(neardup.folder / "config.toml"), "reference", "sync"]
        ended = subprocess.run([*program, *arguments], env=neardup.env | {"NEARDUP_RUN__BATCH": "4"}, check=False)
        killed += ended.returncode == -signal.SIGKILL
    assert killed == len(KILLED_AT), "too few syncs were killed"
    assert neardup("reference", "sync").code == 0
    assert state(neardup) == state(first_sync[0])


def test_a_wrong_reference_gets_one_line(make_neardup: Callable[..., Neardup], tmp_path: Path) -> None:
    assert_one_line(make_neardup(embedded(), "none")("reference", "sync"), 2, "no [reference]")
    neardup = make_neardup(protected())
    (neardup.folder / "works").mkdir()
    (neardup.folder / "works.csv").write_text("id,language\n1,hi\n", encoding="utf-8")
    assert_one_line(neardup("reference", "sync"), 2, "no column catalogue")
    (neardup.folder / "works.csv").write_text("id,language,catalogue\n", encoding="utf-8")
    assert_one_line(neardup("reference", "sync"), 1, "[reference] lists no works")
