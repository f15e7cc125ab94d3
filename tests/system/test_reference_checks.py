"""A sync, `doctor` and `status` say in one line what is wrong with [reference]; `check` shows catalogues."""

import json
import os
import shutil
from collections.abc import Callable

import pytest

from tests.support.command import Neardup, embedded
from tests.support.paths import SAMPLES
from tests.support.reference_works import CLASSICS, LICENCE, make_works, protected
from tests.support.servers import Aws

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
