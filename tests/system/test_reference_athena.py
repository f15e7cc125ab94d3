"""Works listed by Athena, with their pages in S3, are those of a list in a file: moto is Athena and the object store.

A query that fails, or a result that lacks a column, removes no work.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.command import Neardup, embedded
from tests.support.languages import SAMPLED
from tests.support.reference_works import CLASSICS, make_works, protected, read_works
from tests.support.servers import REGION, Aws

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
