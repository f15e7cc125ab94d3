"""All planted copies among the samples are flagged and nothing else, with every source, store and index."""

import csv
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from neardup.core.candidates.banding import cut_band_values
from neardup.ledger import connect, files, read
from neardup.query.search import open_words

from tests.support.command import COMMON, Neardup, embedded
from tests.support.languages import SAMPLED
from tests.support.paths import ROOT, SAMPLES
from tests.support.samples import PLANTED, ROWS, TRUTH, kinds
from tests.support.sampling import CHAOS
from tests.support.servers import REGION, Aws

RUNS = 12 if CHAOS > 1 else 2  # only some runs hung
CLOUD = """
[source]
kind = "athena"
database = "platform"
output = "s3://results/neardup/"
backfill_sql = "SELECT * FROM stories"
daily_sql = "SELECT * FROM stories WHERE updated_at >= from_iso8601_timestamp(?)"
[content]
url = "s3://stories/html"
endpoint = "{endpoint}"
region = "{region}"
path_style = true
"""


def test_the_samples_are_as_promised() -> None:
    assert {row["language"] for row in ROWS} == set(SAMPLED)
    assert len(ROWS) >= 60
    assert len(PLANTED) >= 12
    assert {"exact", "near", "similar", "partial"} == {pair["kind"] for pair in TRUTH}


def test_planted_copies_are_flagged_and_nothing_else(neardup: Neardup) -> None:
    first = neardup("backfill", "--json")
    assert first.code == 0, first.err
    facts = first.facts
    assert facts["listed"] == facts["fingerprinted"] == len(ROWS)
    assert sum(facts["flagged"].values()) == len(PLANTED)
    assert kinds(neardup) == PLANTED
    again = neardup("backfill", "--json").facts
    assert (again["fingerprinted"], again["flagged"], again["skipped"]) == (0, {}, {"unchanged": len(ROWS)})


def test_counts_add_up_and_the_last_line_is_the_object(neardup: Neardup) -> None:
    for command in ("backfill", "daily"):
        facts = neardup(command, "--json").facts
        assert list(facts) == [
            "status",
            "listed",
            "fingerprinted",
            "skipped",
            "dead_lettered",
            "flagged",
            "removed",
            "seconds",
            "stories_per_second",
            "warnings",
            "index",
            "unusual_texts",
        ]
        ends = facts["fingerprinted"] + sum(facts["skipped"].values()) + sum(facts["dead_lettered"].values())
        assert facts["listed"] == ends, command


def test_the_summary_lists_the_flags_and_the_export(make_neardup: Callable[[str], Neardup]) -> None:
    neardup = make_neardup(embedded() + '[export]\npath = "out/flags.csv"\n')
    ended = neardup("backfill")
    assert ended.code == 0, ended.err
    for words in (
        "backfill is done",
        "exact 8, near 6, partial 3, similar 4",
        "New flags (21)",
        "Seventh on",
        "flags.csv",
    ):
        assert words in ended.out, words
    with (neardup.folder / "out" / "flags.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == len(PLANTED)
    assert "No new flags" in neardup("backfill").out


@pytest.mark.parametrize("where", ["redis", "cluster"])
def test_cloud_and_embedded_runs_flag_the_same(
    where: str, request: pytest.FixtureRequest, aws: Aws, make_neardup: Callable[[str, str], Neardup]
) -> None:
    index = request.getfixturevalue(f"{where}_url")
    fill(aws)
    local = make_neardup(embedded(), "local")
    cloud = make_neardup((CLOUD + COMMON).format(endpoint=aws.endpoint, region=REGION, index=index), "cloud")
    assert local("backfill").code == 0
    done = cloud("backfill", "--json")
    assert done.code == 0, done.err
    assert done.facts["fingerprinted"] == len(ROWS)
    assert cloud.flagged_pairs() == local.flagged_pairs()
    assert_keys_agree(cloud, index, "{{{}}}" if where == "cluster" else "{}")
    queue(aws)
    daily = cloud("daily", "--json")
    assert daily.facts["skipped"] == {"unchanged": len(ROWS)}, daily.err
    probed = cloud("doctor")
    assert "FAIL index: set-max-intset-entries" in probed.out, "the doctor missed a setting of the server"


def fill(aws: Aws) -> None:
    for bucket in ("stories", "results"):
        aws.bucket(bucket)
    s3 = aws.client("s3")
    for page in (SAMPLES / "stories").rglob("*.html"):
        s3.put_object(Bucket="stories", Key=f"html/{page.parent.name}/{page.name}", Body=page.read_bytes())
    queue(aws)


def queue(aws: Aws) -> None:
    """Set moto's answer to the next query."""
    aws.queue_result([list(ROWS[0]), *(list(row.values()) for row in ROWS)])


def assert_keys_agree(neardup: Neardup, url: str, tag: str) -> None:
    """SMEMBERS and HGET, as the documented layout has them, against the ledger."""
    db = read(neardup.ledger)
    with redis.Redis.from_url(url, decode_responses=True) as client:
        for story_id, language, simhash in db.execute("SELECT id, language, simhash FROM described"):
            name = tag.format(language)
            assert client.hget(f"simhashes:{name}", str(story_id)) == simhash.hex()
            for band, value in enumerate(cut_band_values(simhash)):
                assert str(story_id) in client.smembers(f"{name}:{band}:{value}"), f"{name}:{band}:{value}"
    db.close()


@pytest.mark.usefixtures("flagged")
def test_check_lists_the_matches_and_stores_nothing(neardup: Neardup, tmp_path: Path) -> None:
    before = neardup.ledger.read_bytes()
    page = tmp_path / "new.html"
    page.write_bytes((SAMPLES / "stories" / "TAMIL" / "4104000.html").read_bytes())
    found = neardup("check", str(page), "--language", "ta", "--json")
    assert {(match["story_id"], match["kind"]) for match in found.facts["matches"]} == {
        (4104000, "exact"),
        (4104006, "exact"),
    }
    assert neardup.ledger.read_bytes() == before
    found = neardup("check", str(page), "--language", "HINDI", "--json")
    assert {(match["story_id"], match["kind"]) for match in found.facts["matches"]} == {
        (4104000, "transliterated"),
        (4104006, "transliterated"),
    }, "the kind of a copy under another language"


def test_check_finds_a_story_of_any_id(make_neardup: Callable[[str], Neardup], tmp_path: Path) -> None:
    row = ROWS[0]
    page = f"{row['language']}/{row['id']}.html"
    neardup = make_neardup(with_rows(tmp_path, [dict(row, id="0", path=page)]))
    assert neardup("backfill").code == 0
    (tmp_path / "new.html").write_bytes((SAMPLES / "stories" / page).read_bytes())
    found = neardup("check", str(tmp_path / "new.html"), "--language", row["language"], "--json")
    assert [match["story_id"] for match in found.facts["matches"]] == [0]


@pytest.mark.usefixtures("flagged")
def test_reindex_and_forget(neardup: Neardup) -> None:
    assert json.loads(neardup("reindex", "--json").out) == {"indexed": len(ROWS), "read_again": {}}
    gone = next(iter(PLANTED))[0]
    assert json.loads(neardup("forget", str(gone), "--json").out) == {"forgotten": True}
    assert all(gone not in pair for pair in neardup.flagged_pairs())
    status = neardup("status", "--json").facts
    assert sum(status["stories"].values()) == status["index"]["stories"] == len(ROWS) - 1
    assert status["index"]["lag"] == 0
    assert json.loads(neardup("forget", str(gone), "--json").out) == {"forgotten": False}
    assert neardup("backfill", "--json").facts["skipped"]["forgotten"] == 1, "the listing brought it back"
    assert json.loads(neardup("forget", str(gone), "--undo", "--json").out) == {"undone": True}
    assert neardup("backfill", "--json").facts["fingerprinted"] == 1


def test_the_doctor_finds_nothing_wrong(neardup: Neardup) -> None:
    connect(neardup.ledger).close()
    open_words(neardup.ledger, files.name_titles_file(neardup.ledger)).close()
    probed = neardup("doctor")
    assert probed.code == 0, probed.out
    assert "neardup.db.titles, complete" in probed.out
    parts = ("config", "ledger", "index", "passages", "titles", "submitted pages", "proofs", "source", "object store")
    assert [line.split(":")[0] for line in probed.out.splitlines()] == [
        f"ok   {part}" for part in (*parts, "reference", "meaning", "clock", "native core", "fingerprints")
    ]


@pytest.mark.usefixtures("flagged")
def test_new_flags_are_exported_once(neardup: Neardup) -> None:
    assert len(neardup("export", "--new").out.splitlines()) == 1 + len(PLANTED)
    assert len(neardup("export", "--new").out.splitlines()) == 1
    assert len(neardup("export").out.splitlines()) == 1 + len(PLANTED)


@pytest.mark.usefixtures("flagged")
def test_a_failed_export_marks_nothing_as_exported(neardup: Neardup) -> None:
    with Path("/dev/full").open("w") as full:
        command = neardup.command("export", "--new")
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert len(neardup("export", "--new").out.splitlines()) == 1 + len(PLANTED)


def with_rows(folder: Path, rows: list[dict[str, str]]) -> str:
    """A configuration that lists these rows."""
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return embedded(manifest=path)


def test_titles_are_shown_as_they_are(make_neardup: Callable[[str], Neardup], tmp_path: Path) -> None:
    rows = [dict(row, title=f"[/b] [bold]{row['title']}") for row in ROWS]
    ended = make_neardup(with_rows(tmp_path, rows))("backfill")
    assert ended.code == 0, ended.err
    assert "[/b] [bold]" in ended.out


def test_a_story_from_the_future_does_not_move_the_watermark(
    make_neardup: Callable[[str], Neardup], tmp_path: Path
) -> None:
    rows = [dict(row) for row in ROWS]
    newest = max(row["updated_at"] for row in rows)
    rows[0]["updated_at"] = "2099-01-01T00:00:00Z"
    neardup = make_neardup(with_rows(tmp_path, rows))
    assert neardup("backfill").code == 0
    assert neardup("status", "--json").facts["watermark"] == newest


def test_many_runs_over_redis_end_by_themselves(
    make_neardup: Callable[[str], Neardup], redis_or_valkey_url: str
) -> None:
    neardup = make_neardup(embedded(index=redis_or_valkey_url))
    for _ in range(RUNS):
        assert neardup("backfill").code == 0


@pytest.mark.usefixtures("flagged")
def test_refingerprint_fingerprints_everything_again(neardup: Neardup) -> None:
    before = neardup.flagged_pairs()
    facts = neardup("backfill", "--refingerprint", "--json").facts
    assert facts["fingerprinted"] == len(ROWS)
    assert neardup.flagged_pairs() == before
