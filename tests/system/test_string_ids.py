"""Stories may have ids that are no integers: every output shows them, every command accepts them, and Redis holds
integers all the same.
"""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from neardup.source.parse import id_of

from tests.support.command import Neardup, embedded
from tests.support.samples import PLANTED, ROWS

FOLDER = {row["id"]: f"{row['language']}/{row['id']}.html" for row in ROWS}


def name_of(story: object) -> str:
    return f"कथा {story}; one"


@pytest.fixture
def named(make_neardup: Callable[..., Neardup], tmp_path: Path, redis_or_valkey_url: str) -> Neardup:
    """The samples by names, semicolon-separated, after a backfill into Redis."""
    with (tmp_path / "list.csv").open("w", encoding="utf-8", newline="") as out:
        rows = csv.DictWriter(out, [*ROWS[0], "path"], delimiter=";")
        rows.writeheader()
        rows.writerows(row | {"id": name_of(row["id"]), "path": FOLDER[row["id"]]} for row in ROWS)
    neardup = make_neardup(embedded(manifest=tmp_path / "list.csv", index=redis_or_valkey_url))
    done = neardup("backfill")
    assert done.code == 0, done.err
    assert "कथा" in done.out, done.out
    return neardup


def test_names_work_wherever_ids_do(named: Neardup, redis_or_valkey_url: str) -> None:
    rows = [json.loads(line) for line in named("export", "--format", "jsonl").out.splitlines()]
    found = {(*sorted((row["story_name"], row["matched_name"])), row["kind"]) for row in rows}
    assert found == {(*sorted((name_of(a), name_of(b))), kind) for a, b, kind in PLANTED}
    assert all(row["story_id"] == id_of(row["story_name"]) for row in rows)

    a, b, _ = min(PLANTED)
    shown = named("show", name_of(b))
    assert shown.code == 0 and f"story {name_of(b)}" in shown.out, shown.out + shown.err
    compared = named("compare", name_of(a), name_of(b))
    assert compared.code == 0 and f"A: story {name_of(a)}" in compared.out, compared.out + compared.err
    exported = named("export", "--story", name_of(a), "--format", "html")
    assert f"story {name_of(a)}" in exported.out
    for options in ([], ["--by", "story"], ["--keep", "earliest"]):
        table = list(csv.DictReader(named("export", *options, "--format", "csv").out.splitlines()))
        ids = {row[column] for row in table for column in row if column in {"story_id", "matched_id", "top_source_id"}}
        assert ids and all(name.startswith("कथा ") for name in ids), f"{options}: {ids}"
    by_story = named("export", "--by", "story", "--format", "csv")
    assert name_of(b) in by_story.out or name_of(a) in by_story.out

    with redis.Redis.from_url(redis_or_valkey_url) as client:
        sets = [key for key in client.scan_iter(count=1000) if client.type(key) == b"set"]
        assert sets and {client.object("encoding", key) for key in sets} == {b"intset"}

    forgotten = named("forget", name_of(a))
    assert f"story {name_of(a)} is forgotten" in forgotten.out, forgotten.out + forgotten.err
    assert named("show", name_of(a)).code == 1


def test_a_dead_letter_has_the_name(make_neardup: Callable[..., Neardup], tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("id,language\nlost tale,hi\n4100000,HINDI\n", encoding="utf-8")
    neardup = make_neardup(embedded(manifest=tmp_path / "list.csv"))
    assert neardup("backfill").code == 0
    assert "lost tale" in neardup("dead-letters").out
    assert neardup("dead-letters", "lost tale", "--drop").out == "1 dead letters were deleted\n"
