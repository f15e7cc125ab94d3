"""`neardup plan`: the resources that a corpus will need."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Neardup, assert_one_line, embedded

Make = Callable[..., Neardup]
FULL = ["HINDI=4170000", "ml=2060000", "bn=1850000", "mr=1850000", "ta=1820000", "te=1540000", "gu=1120000"]


def stories(*counts: str) -> list[str]:
    return [word for count in counts for word in ("--stories", count)]


def planned(neardup: Neardup, *arguments: str) -> dict[str, Any]:
    ended = neardup("plan", "--json", *arguments)
    assert ended.code == 0, ended.err
    assert "Traceback" not in ended.err
    return ended.facts


def test_the_samples_are_listed_and_read(neardup: Neardup) -> None:
    facts = planned(neardup)
    backfilled = neardup("backfill", "--json").facts
    read = facts["sample"]
    assert (
        sum(language["listed"] for language in facts["languages"].values()) + read["bad_rows"] == backfilled["listed"]
    )
    assert read["fingerprinted"] == backfilled["fingerprinted"]
    assert facts["story"]["seconds"] > 0
    assert any("few stories sampled" in warning for warning in facts["warnings"])
    assert facts["languages"]["TAMIL"]["ledger_bytes"] > 0


def test_a_sample_has_its_size_and_leaves_no_ledger(neardup: Neardup) -> None:
    facts = planned(neardup, "--sample", "25")
    read = facts["sample"]
    assert read["fingerprinted"] + sum(read["not_fingerprinted"].values()) == 25
    assert not neardup.ledger.exists()


def test_pages_that_cannot_be_read_are_counted_by_reason(make_neardup: Make, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "good.html").write_text(f"<p>{'शब्द और वाक्य ' * 20}</p>", encoding="utf-8")
    (pages / "empty.html").write_bytes(b"")
    rows = ["1,hi,good.html", "2,hi,missing.html", "3,hi,empty.html", ",hi,good.html", "4,xx,good.html"]
    manifest = tmp_path / "manifest.csv"
    manifest.write_text("\n".join(["id,language,path", *rows]), encoding="utf-8")
    neardup = make_neardup(embedded(manifest, pages).replace('body = "article .story, div.post-body"', ""))
    facts = planned(neardup)
    assert facts["sample"] == {"fingerprinted": 1, "not_fingerprinted": {"missing": 1, "empty": 1}, "bad_rows": 2}
    assert facts["languages"]["HINDI"]["listed"] == 3
    assert facts["languages"]["HINDI"]["stories"] == 1.0
    assert any("missing 1" in warning for warning in facts["warnings"])


def test_nothing_to_list(make_neardup: Make, tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.csv"
    manifest.write_text("id,language\n", encoding="utf-8")
    neardup = make_neardup(embedded(manifest))
    assert planned(neardup)["languages"] == {}
    assert neardup("plan").code == 0


def test_counts_are_projected_without_reading_anything(make_neardup: Make) -> None:
    neardup = make_neardup(embedded(Path("/nowhere.csv"), Path("/nowhere")))
    facts = planned(neardup, *stories(*FULL, "HINDI=0"))
    assert facts["sample"] is None
    assert facts["languages"]["HINDI"]["listed"] == 4_170_000
    assert facts["index"]["compact"] < facts["index"]["documented"]
    assert facts["days_until_full"]["documented"] == 0
    assert facts["days_until_full"]["compact"] > 0
    assert any(warning.startswith('does not fit with index.layout = "documented"') for warning in facts["warnings"])
    box = facts["memory"]["compact"]
    assert sum(size for part, size in box.items() if part != "needed") == pytest.approx(box["needed"], abs=10)


def test_a_sweep_over_its_share_gives_a_warning(neardup: Neardup) -> None:
    warnings = planned(neardup, *stories("HINDI=16000000", "ta=16000000"), "--memory", "64GiB")["warnings"]
    assert any("a sweep takes" in warning for warning in warnings)


def test_a_box_that_is_full_soon_gives_a_warning(neardup: Neardup) -> None:
    warnings = planned(neardup, *stories(*FULL), "--daily", "100000")["warnings"]
    assert any(warning.startswith("the box is full in ") and "compact" in warning for warning in warnings)


def test_the_tables_name_languages_layouts_and_the_box(neardup: Neardup) -> None:
    ended = neardup("plan", *stories("hi=100000", "PUNJABI=5000"), "--daily", "100")
    assert ended.code == 0, ended.err
    for words in ("HINDI", "PUNJABI", "documented", "compact", "SQLite", "of 8.00 GiB of memory", "over ten years"):
        assert words in ended.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (stories("KLINGON=5"), ["--stories", "unknown language 'KLINGON'"]),
        (stories("HINDI"), ["--stories", "LANGUAGE=N"]),
        (stories("HINDI=-5"), ["--stories", "LANGUAGE=N"]),
        (stories("hi=" + "9" * 5000), ["--stories", "LANGUAGE=N"]),
        (["--memory", "plenty"], ["--memory", "'plenty' is not a size such as 8GiB"]),
    ],
)
def test_wrong_arguments(neardup: Neardup, arguments: list[str], words: list[str]) -> None:
    assert_one_line(neardup("plan", *arguments), 2, *words)


def test_no_manifest_and_no_pages(make_neardup: Make) -> None:
    assert_one_line(make_neardup(embedded(manifest=Path("/nowhere.csv")))("plan"), 2, "/nowhere.csv")
    assert_one_line(make_neardup(embedded(stories=Path("/nowhere")), "other")("plan"), 1, "no folder /nowhere")
