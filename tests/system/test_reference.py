"""`neardup reference`: copies of works are flagged in ten languages, whatever the dates and the kind; a sync that is
killed at any instant and run again ends as one that was not; and a catalogue that is removed leaves no trace.

Works listed by Athena, with their pages in S3, are those of a list in a file: moto is Athena and the object store.  A
sync, `doctor` and `status` say in one line what is wrong with [reference]; `check` shows catalogues.
"""

import json
import os
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
from tests.support.languages import SAMPLED
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
from tests.support.samples import state
from tests.support.servers import REGION, Aws

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


SECTION = """
[reference]
kind = "athena"
database = "platform"
output = "s3://results/works/"
sql = "SELECT * FROM works"
[reference.content]
url = "s3://works/html"
endpoint = "{endpoint}"
region = "{region}"
path_style = true
[reference.extract]
body = "main"
"""

NO_SERVER = "http://127.0.0.1:9"
ONE_ATTEMPT = "import stamina; stamina.set_testing(True, attempts=1)"


def flagged(neardup: Neardup) -> list[dict[str, Any]]:
    """The open flags of copies of works, in the columns that depend on no store."""
    rows = [json.loads(line) for line in neardup("export", "--format", "jsonl").out.splitlines()]
    return [{name: row[name] for name in SHOWN} for row in rows if row["catalogue"] is not None]


SHOWN = ("story_id", "matched_id", "kind", "hamming", "containment", "catalogue", "licence", "publication_order")


def fill(aws: Aws, folder: Path) -> None:
    """Put the pages of the works below a folder into the bucket of SECTION."""
    for bucket in ("works", "results"):
        aws.bucket(bucket)
    for page in (folder / "works").rglob("*.html"):
        key = f"html/{page.relative_to(folder / 'works').as_posix()}"
        aws.client("s3").put_object(Bucket="works", Key=key, Body=page.read_bytes())


def queue(aws: Aws, rows: list[dict[str, str]]) -> None:
    aws.queue_result([list(rows[0]), *(list(row.values()) for row in rows)])


def test_works_from_athena_are_those_of_a_file(make_neardup: Callable[..., Neardup], aws: Aws) -> None:
    local = make_neardup(protected(), "local")
    copies = make_works(local.folder)
    fill(aws, local.folder)
    section = SECTION.format(endpoint=aws.endpoint, region=REGION)
    cloud, rows = make_neardup(embedded() + section, "cloud"), read_works(local.folder)
    for neardup in (local, cloud):
        assert neardup("backfill").code == 0
    assert local("reference", "sync").code == 0
    queue(aws, rows)
    synced = cloud("reference", "sync", "--json")
    assert synced.code == 0, synced.err
    assert synced.facts["added"] == len(rows)
    expected = flagged(local)
    assert flagged(cloud) == expected
    assert copies <= {(row["story_id"], row["matched_id"]) for row in expected}
    assert {row["language"] for row in rows} == set(SAMPLED), "the works are not in every language"

    queue(aws, rows)
    assert "ok   reference: Athena lists the columns id, language, catalogue" in cloud("doctor").out

    queue(aws, [{name: value for name, value in row.items() if name != "catalogue"} for row in rows])
    ended = cloud("reference", "sync")
    assert (ended.code, "Traceback" in ended.err) == (2, False), ended.err
    assert "the result of the Athena query: no column catalogue" in ended.err.splitlines()[-1]
    (cloud.folder / "sitecustomize.py").write_text(ONE_ATTEMPT, encoding="utf-8")
    ended = cloud("reference", "sync", AWS_ENDPOINT_URL_ATHENA=NO_SERVER, PYTHONPATH=str(cloud.folder))
    assert (ended.code, "Traceback" in ended.err) == (75, False), ended.err
    assert "Athena does not answer" in ended.err.splitlines()[-1]
    assert flagged(cloud) == expected, "a sync that could not list the works changed their flags"

    queue(aws, [row for row in rows if row["catalogue"] == CLASSICS])
    assert cloud("reference", "sync", "--json").facts["removed"] == sum(row["catalogue"] != CLASSICS for row in rows)
    assert {row["catalogue"] for row in flagged(cloud)} == {CLASSICS}


Make = Callable[..., Neardup]
HEAD = "id,language,catalogue\n"
WORKS = HEAD + "1,hi,A\n2,hi,A\n"
PAGE = "<main>" + (SAMPLES / "stories" / "HINDI" / "4100000.html").read_text(encoding="utf-8") + "</main>"
S3 = 'url = "s3://works"\nendpoint = "{endpoint}"\npath_style = true\nregion = "us-east-1"'


def in_folder(neardup: Neardup, works: str | None, page: str | None) -> Neardup:
    """Write the list of works and the page of the works 1 and 2, unless they are None."""
    if works is not None:
        (neardup.folder / "works.csv").write_text(works, encoding="utf-8")
    if page is not None:
        (neardup.folder / "works" / "HINDI").mkdir(parents=True)
        for number in (1, 2):
            (neardup.folder / "works" / "HINDI" / f"{number}.html").write_text(page, encoding="utf-8")
    return neardup


@pytest.mark.parametrize(
    ("works", "page", "code", "words"),
    [
        (None, PAGE, 2, ["cannot read the list of works ", "/works.csv", "No such file"]),
        ("id,language\n1,hi\n", PAGE, 2, ["works.csv: no column catalogue", "id, language"]),
        (HEAD, PAGE, 1, ["[reference] lists no works", "reference.manifest"]),
        (WORKS, None, 1, ["reference.content.url: no folder ", "/works"]),
        (WORKS, "", 1, ["none of 2 works", "empty 2", "reference.content.url, reference.extract.body"]),
        (WORKS, "<p>शब्द</p>", 1, ["none of 2 works", "no_body 2", "look at reference.extract.body"]),
        (HEAD + "3,hi,A\n", PAGE, 1, ["none of 1 works", "missing 1", "/works/HINDI/3.html", "reference.content.key"]),
        (HEAD + "3,hi,A/B\n", PAGE, 1, ["none of 1 works", "bad_row 1", "look at the listing that [reference] names"]),
    ],
)
def test_a_sync_names_the_wrong_setting(
    make_neardup: Make, works: str | None, page: str | None, code: int, words: list[str]
) -> None:
    neardup = in_folder(make_neardup(protected()), works, page)
    ended = neardup("reference", "sync")
    assert (ended.code, "Traceback" in ended.err) == (code, False), ended.err
    for word in words:
        assert word in ended.err.splitlines()[-1], ended.err


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        (None, ["none of 2 works", "missing 2", "s3://works/HINDI/", "look at reference.content.url"]),
        ("http://127.0.0.1:9", ["none of 2 works", "store_error 2", "reference.content.endpoint"]),
    ],
)
def test_a_sync_names_the_store_of_the_works(
    make_neardup: Make, aws: Aws, endpoint: str | None, words: list[str]
) -> None:
    aws.bucket("works")
    store = S3.format(endpoint=endpoint or aws.endpoint)
    neardup = in_folder(make_neardup(protected().replace('url = "file:works"', store)), WORKS, None)
    ended = neardup("reference", "sync")
    assert (ended.code, "Traceback" in ended.err) == (1, False), ended.err
    for word in words:
        assert word in ended.err.splitlines()[-1], ended.err


def checked(neardup: Neardup) -> tuple[str, str]:
    """The level and the message of doctor's check of [reference]."""
    ended = neardup("doctor", "--json")
    [found] = [event for line in ended.out.splitlines() if (event := json.loads(line))["part"] == "reference"]
    assert ended.code == {"ok": 0, "warn": 3, "fail": 1}[found["level"]], ended.out
    return found["level"], found["said"]


def test_the_doctor_says_what_a_reference_needs(neardup: Neardup) -> None:
    assert checked(neardup) == ("ok", "no [reference], 0 works on record")
    neardup.configure(protected())
    (neardup.folder / "works").mkdir()
    level, said = checked(neardup)
    assert level == "fail" and "cannot read the list of works" in said, said
    (neardup.folder / "works").rmdir()
    in_folder(neardup, HEAD + "3,hi,A\n", PAGE)
    level, said = checked(neardup)
    assert level == "fail" and "has no object" in said and "/works/HINDI/3.html" in said, said

    in_folder(neardup, WORKS, None)
    assert checked(neardup) == ("warn", "the works were never listed: run `neardup reference sync`")
    assert neardup("reference", "sync").code == 0
    level, said = checked(neardup)
    assert level == "ok" and "/works/HINDI/1.html, " in said and "2 works on record" in said, said
    os.utime(neardup.folder / "works.csv")
    assert checked(neardup)[1].endswith("works.csv has changed since the last sync: run `neardup reference sync`")
    shutil.move(neardup.folder / "works" / "HINDI", neardup.folder / "elsewhere")
    assert neardup("reference", "sync").code == 1
    shutil.move(neardup.folder / "elsewhere", neardup.folder / "works" / "HINDI")
    level, said = checked(neardup)
    assert level == "warn" and "on record as failed (none of 2 works could be read" in said, said
    assert neardup("reference", "sync").code == 0
    assert checked(neardup)[0] == "ok"
    assert neardup("backfill", "--refingerprint").code == 0
    assert checked(neardup) == ("warn", "2 works have no fingerprint: run `neardup reference sync`, which says why")

    neardup.configure(embedded())
    level, said = checked(neardup)
    assert level == "warn" and said.startswith("2 works are on record, but the configuration has no [reference]"), said
    assert neardup("status", "--json").facts["reference_warning"] == said
    assert "warning: 2 works are on record" in neardup("status").out
    assert neardup("reference", "remove", "A").code == 0
    assert checked(neardup)[0] == "ok"
    assert neardup("status", "--json").facts["reference_warning"] is None


def test_a_check_shows_the_catalogue_and_the_licence(neardup: Neardup) -> None:
    page = [str(SAMPLES / "stories" / "HINDI" / "4100000.html"), "--language", "hi"]
    assert neardup("backfill").code == 0
    assert "catalogue" not in neardup("check", *page).out, "a column that is empty"
    neardup.configure(protected())
    make_works(neardup.folder)
    assert neardup("reference", "sync").code == 0
    header, *rows = [
        [cell.strip() for cell in line.strip("┃│").replace("┃", "│").split("│")]
        for line in neardup("check", *page).out.splitlines()
        if line.startswith(("┃", "│"))
    ]
    joined = {name: "".join(row[n] for row in rows).replace(" ", "") for n, name in enumerate(header)}
    assert CLASSICS in joined["catalogue"], joined
    assert LICENCE.replace(" ", "") in joined["licence"], joined
