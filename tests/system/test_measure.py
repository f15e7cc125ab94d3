"""`evaluate`, `plan` and `audit` on the samples: copies in each language, labelled pairs, wrong inputs; what a corpus
will need; and what the index misses, each pair with its reason.
"""

import csv
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from neardup.insights.copies import make_copies_tables
from neardup.insights.corpus import COPIES
from neardup.insights.edits import EDITS
from neardup.records import Language

from tests.support.command import Neardup, assert_one_line, embedded
from tests.support.faults.index_damage import DamagedIndex, share_of_buckets
from tests.support.languages import MALAYALAM, ODIA, SAMPLED, TAMIL
from tests.support.paths import SAMPLES
from tests.support.samples import PLANTED
from tests.support.sampling import sample_cases

FEW = ("--sample", "2", "--min-words", "60")


def some_samples(folder: Path, *languages: Language) -> Path:
    """A manifest of the samples of some languages."""
    with (SAMPLES / "manifest.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    manifest = folder / "some.csv"
    with manifest.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, rows[0])
        out.writeheader()
        out.writerows(row for row in rows if row["language"] in languages)
    return manifest


def test_copies_are_measured_in_each_language(make_neardup: Callable[..., Neardup], tmp_path: Path) -> None:
    languages = sample_cases(SAMPLED, 5)
    neardup = make_neardup(embedded(some_samples(tmp_path, *languages)))
    (temporary := tmp_path / "temporary").mkdir()
    done = neardup("evaluate", *FEW, "--json", TMPDIR=str(temporary))
    assert done.code == 0, done.err
    facts = done.facts
    assert set(facts["stories"]) == set(languages)
    recall = {(row["language"], row["edit"]): row for row in facts["recall"]}
    for language in languages:
        assert recall[language, "10% of words replaced"]["all"]["share"] == 1, language
        assert recall[language, "paragraphs reordered"]["near"]["share"] == 1, f"{language}: the words are the same"
    for (language, name), row in recall.items():
        if name in {edit.name for edit in EDITS if edit.same_words}:
            assert row["exact"]["share"] == 1, f"{language}: {name}"
    assert {row["language"]: row["false"] for row in facts["false_flags"]} == dict.fromkeys([*languages, "all"], 0)
    assert not list(temporary.iterdir()), "the temporary corpus was left behind"
    assert not neardup.ledger.exists(), "evaluate created a ledger"


def test_the_same_seed_gives_the_same_figures(make_neardup: Callable[..., Neardup], tmp_path: Path) -> None:
    neardup = make_neardup(embedded(some_samples(tmp_path, MALAYALAM)))
    first, again = (neardup("evaluate", *FEW, "--json") for _ in range(2))
    assert (first.code, again.code) == (0, 0), first.err + again.err
    assert first.facts == again.facts
    titles = [table.title for table in make_copies_tables(first.facts)]
    for title in ("Recall, all kinds together", "False flags", "Thresholds"):
        assert any(title in shown for shown in titles), titles
    names = [row["edit"] for row in first.facts["recall"] if row["language"] == "all"]
    assert names == [copy.name for copy in COPIES if copy.name in names], "in this order"
    assert "run of 100 words" in names


def test_the_users_thresholds_are_measured(make_neardup: Callable[..., Neardup], tmp_path: Path) -> None:
    strict = "[detection.MALAYALAM]\nhamming = 0\njaccard = 0.99\ncontainment = 1.0\npassage_words = 9999\n"
    neardup = make_neardup(embedded(some_samples(tmp_path, MALAYALAM)) + strict)
    done = neardup("evaluate", *FEW, "--json")
    assert done.code == 0, done.err
    recall = {row["edit"]: row for row in done.facts["recall"]}
    by_thresholds = {kind: recall["20% of words replaced"][kind]["share"] for kind in ("near", "similar", "partial")}
    assert by_thresholds == {"near": 0, "similar": 0, "partial": 0}, "what these thresholds do not decide is rewritten"
    assert recall["other markup"]["all"]["share"] == 1


def test_false_flags_are_counted(make_neardup: Callable[..., Neardup], tmp_path: Path) -> None:
    loose = "[detection]\nshared_bands = 1\nagreeing_rows = 0\njaccard = 0.01\ncontainment = 0.01\n"
    neardup = make_neardup(embedded(some_samples(tmp_path, TAMIL)) + loose)
    done = neardup("evaluate", "--sample", "5", "--min-words", "60", "--json")
    assert done.code == 0, done.err
    facts = done.facts
    assert facts["stories"][TAMIL]["copies"] == sum(row["n"] for row in facts["recall"] if row["language"] == TAMIL)
    chapters = {row["edit"]: row["n"] for row in facts["recall"] if row["edit"].startswith("chapter")}
    assert chapters == {"chapter of a work of 3": 3, "chapter of a work of 5": 5}
    [counted, _] = facts["false_flags"]
    assert counted["false"] == len(facts["false_pairs"]) > 0
    assert counted["flagged"] > counted["false"], "a story that another was copied into is no false flag"
    assert counted["per_million"] == pytest.approx(1e6 * counted["false"] / counted["pairs"])
    assert counted["low"] < counted["per_million"] < counted["high"]
    alike = [max(pair["jaccard"], pair["containment"]) for pair in facts["false_pairs"]]
    assert alike == sorted(alike), "worst first"
    assert alike[-1] < 0.45


@pytest.mark.usefixtures("flagged")
def test_the_samples_are_found_as_labelled(neardup: Neardup) -> None:
    done = neardup("evaluate", "--truth", str(SAMPLES / "truth.jsonl"), "--json")
    assert done.code == 0, done.err
    facts = done.facts
    assert facts["false_flags"] == []
    for row in facts["recall"]:
        if row["kind"] in ("exact", "near", "similar"):
            assert row["share"] == 1, row
    shown = neardup("evaluate", "--truth", str(SAMPLES / "truth.jsonl"))
    assert shown.code == 0, shown.err
    assert "False flags (0), worst first" in shown.out


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["--min-words", "5000"], 1, "no language has two readable stories of at least 5000 words"),
        (["--sample", "1"], 2, "--sample"),
        (["--truth", "none.jsonl"], 2, "cannot read the labelled pairs none.jsonl: No such file or directory"),
        (["--truth", "bad.jsonl"], 2, "bad.jsonl, line 2: no b"),
        (["--truth", "good.jsonl"], 1, "no ledger at"),
    ],
    ids=lambda value: str(value[-1]) if isinstance(value, list) else "",
)
def test_a_mistake_is_one_clear_line(
    make_neardup: Callable[..., Neardup], tmp_path: Path, arguments: list[str], code: int, why: str
) -> None:
    neardup = make_neardup(embedded(some_samples(tmp_path, ODIA)))
    (neardup.folder / "good.jsonl").write_text(json.dumps({"a": 1, "b": 2}), encoding="utf-8")
    (neardup.folder / "bad.jsonl").write_text('{"a": 1, "b": 2}\n{"a": 1}\n', encoding="utf-8")
    done = neardup("evaluate", *arguments)
    assert done.code == code
    assert why in done.err
    assert "Traceback" not in done.err


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


ALL = "all"


def audited(neardup: Neardup, *options: str) -> dict[str, Any]:
    done = neardup("audit", "--json", *options)
    assert done.code == 0, done.err
    return dict(done.facts)


def recall_of(facts: dict[str, Any], tier: str) -> tuple[int, int]:
    [row] = [row for row in facts["recall"] if (row["language"], row["tier"]) == (ALL, tier)]
    return row["found"], row["n"]


def test_lost_pairs_are_named_with_their_reason_and_damage_is_seen(flagged: Neardup) -> None:
    whole = audited(flagged)
    assert (whole["stories"], whole["unreadable"], whole["misses"]) == (61, 0, [])
    assert recall_of(whole, ALL) == (2 * len(PLANTED), 2 * len(PLANTED)), "each pair is that of two sampled stories"
    assert recall_of(whole, "index entries") == (61, 61)
    with closing(sqlite3.connect(flagged.ledger)) as db, db:
        [(a, b), (c, d), (e, f)] = db.execute("SELECT a, b FROM flags WHERE kind = 'exact' LIMIT 3").fetchall()
        db.execute("DELETE FROM flags WHERE (a, b) IN (VALUES (?, ?), (?, ?), (?, ?))", (a, b, c, d, e, f))
        db.execute("INSERT INTO candidates (a, b) VALUES (?, ?)", (a, b))
        db.execute("INSERT INTO suppressed_pairs VALUES (?, ?, 1, 1)", (c, d))
    facts = audited(flagged)
    reasons = {(miss["story_id"], miss["matched_id"]): miss["reason"] for miss in facts["misses"]}
    assert reasons == {
        **dict.fromkeys([(a, b), (b, a)], "it waits for verification"),
        **dict.fromkeys([(c, d), (d, c)], "a verdict suppresses it"),
        **dict.fromkeys([(e, f), (f, e)], "it was not nominated when it was written; `neardup sweep` finds it"),
    }
    found, total = recall_of(facts, ALL)
    assert (found, total) == (2 * len(PLANTED) - 6, 2 * len(PLANTED) - 2), "a verdict is no miss"
    share_of_buckets(0.05)(DamagedIndex("sqlite", flagged.ledger, ""))
    damaged = audited(flagged)
    found, total = recall_of(damaged, "index entries")
    assert found < total == 61, "the loss of a twentieth of the buckets was not seen"
    reason = {(miss["story_id"], miss["matched_id"]): miss["reason"] for miss in damaged["misses"]}[e, f]
    assert reason.startswith(("the index lacks entries", "it was not nominated"))
    status = flagged("status")
    assert f"index entries {found} of 61" in " ".join(status.out.split())


@pytest.mark.parametrize("layout", ["documented", "compact"])
def test_damage_of_redis_is_seen_the_same_night_and_healed_the_next(
    make_neardup: Callable[[str], Neardup], redis_url: str, layout: str
) -> None:
    neardup = make_neardup(embedded(index=redis_url).replace("[ledger]", f'layout = "{layout}"\n[ledger]'))
    assert neardup("backfill").code == 0
    share_of_buckets(0.05)(DamagedIndex(layout, neardup.ledger, redis_url))
    found, total = recall_of(audited(neardup), "index entries")
    assert found < total == 61, "the loss of a twentieth of the keys was not seen"
    assert neardup("daily").code == 0
    assert recall_of(audited(neardup), "index entries") == (61, 61), "the daily run did not heal the index"


def test_options_of_an_audit(flagged: Neardup) -> None:
    few = audited(flagged, "--sample", "5")
    assert few["stories"] == 5
    assert audited(flagged, "--since", "2999-01-01T00:00:00Z")["stories"] == 0
    shown = flagged("audit", "--sample", "5")
    assert shown.code == 0
    assert "Recall" in shown.out
    assert flagged("audit", "--since", "yesterday").code == 2
