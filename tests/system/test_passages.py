"""A passage inside a longer work is found, in ten languages, in any order, by every command that finds copies."""

import csv
import json
import random
from pathlib import Path

import pytest

from tests.support.command import Neardup
from tests.support.generated_stories import Planted, configuration, plant


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    return plant(tmp_path_factory.mktemp("planted"))


@pytest.fixture(scope="module")
def backfilled(tmp_path_factory: pytest.TempPathFactory, planted: Planted) -> Neardup:
    """The planted stories after a backfill."""
    neardup = Neardup(tmp_path_factory.mktemp("backfilled"), {})
    neardup.configure(configuration(planted.folder))
    done = neardup("backfill")
    assert done.code == 0, done.err
    return neardup


def flagged(neardup: Neardup) -> dict[tuple[int, int], str]:
    """The flagged pairs, the lower id first, with their kinds."""
    done = neardup("export", "--format", "jsonl")
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in done.out.splitlines()]
    return {(min(pair), max(pair)): row["kind"] for row in rows for pair in [(row["story_id"], row["matched_id"])]}


def test_a_backfill_flags_the_planted_pairs_and_no_others(backfilled: Neardup, planted: Planted) -> None:
    found = flagged(backfilled).keys()
    assert planted.pairs <= found <= planted.pairs | planted.edited_pairs
    assert len(found & planted.edited_pairs) > 0.7 * len(planted.edited_pairs)


def test_the_order_of_the_stories_changes_nothing(tmp_path: Path, planted: Planted, backfilled: Neardup) -> None:
    header, *rows = (planted.folder / "manifest.csv").read_text(encoding="utf-8").splitlines()
    random.Random(3).shuffle(rows)
    shuffled = tmp_path / "manifest.csv"
    shuffled.write_text("\n".join([header, *rows]), encoding="utf-8")
    neardup = Neardup(tmp_path, {})
    neardup.configure(configuration(planted.folder).replace(str(planted.folder / "manifest.csv"), str(shuffled)))
    done = neardup("backfill", NEARDUP_RUN__BATCH="7")
    assert done.code == 0, done.err
    assert flagged(neardup) == flagged(backfilled)


def test_a_sweep_without_lookups_flags_the_same(tmp_path: Path, planted: Planted, backfilled: Neardup) -> None:
    neardup = Neardup(tmp_path, {})
    neardup.configure(configuration(planted.folder))
    done = neardup("backfill", "--fresh")
    assert done.code == 0, done.err
    assert flagged(neardup) == flagged(backfilled)
    assert not list(neardup.folder.glob("*-sweep-*")), "scratch files are left behind"


def test_check_finds_what_a_run_flags(backfilled: Neardup, planted: Planted) -> None:
    with (planted.folder / "manifest.csv").open(encoding="utf-8") as file:
        works = {int(row["id"]): row for row in csv.DictReader(file)}
    pairs = flagged(backfilled)
    host = 14  # of a run, in the first language
    page = planted.folder / "html" / works[host]["path"]
    done = backfilled("check", str(page), "--language", works[host]["language"], "--json")
    assert done.code == 0, done.err
    expected = {sum(pair) - host: kind for pair, kind in pairs.items() if host in pair}
    assert {
        match["story_id"]: match["kind"] for match in done.facts["matches"] if match["story_id"] != host
    } == expected
