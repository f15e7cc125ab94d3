"""`neardup evaluate` on the samples: copies in each language, labelled pairs, wrong inputs."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from neardup.insights.copies import make_copies_tables
from neardup.insights.corpus import COPIES
from neardup.insights.edits import EDITS
from neardup.records import Language

from tests.support.command import Neardup, embedded
from tests.support.languages import MALAYALAM, ODIA, SAMPLED, TAMIL
from tests.support.paths import SAMPLES
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
