"""Laws: flags are scored by the scores of labelled pairs; verdicts give a precision."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from neardup.core.languages import LANGUAGES
from neardup.errors import Misuse
from neardup.insights.tables import format_cell
from neardup.insights.truth import (
    make_label_tables,
    make_precision_tables,
    measure_precision,
    measure_precision_on_record,
    read_labels,
    score_flags,
)
from neardup.ledger import connect, verdicts
from neardup.records import Verdict

from tests.support.languages import HINDI, ODIA


def labels(folder: Path, *lines: object) -> Path:
    path = folder / "pairs.jsonl"
    path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{\n", "no JSON such as"),
        ("[1, 2]\n", "not an object"),
        ({"a": 1}, "no b"),
        ({"a": 1, "b": 2.5}, "b is 2.5, neither an integer nor a name"),
        ({"a": True, "b": 2}, "a is True, neither an integer nor a name"),
        ({"a": 1, "b": 1}, "a and b are the same story"),
        ({"a": 1, "b": 2, "j": 1.5}, "j is 1.5, not a number from 0 to 1"),
        ({"a": 1, "b": 2, "c": "x"}, "c is 'x', not a number"),
        ({"a": 1, "b": 2, "kind": 7}, "kind and lang are strings"),
        ("[" * 100_000 + "\n", "no JSON such as"),
        (b"\xff\n".decode("latin-1"), "no JSON such as"),
    ],
)
def test_an_invalid_line_is_named_with_the_reason(tmp_path: Path, line: object, reason: str) -> None:
    with pytest.raises(Misuse, match=r"pairs.jsonl, line 3: ") as caught:
        read_labels(labels(tmp_path, {"a": 1, "b": 2}, "\n", line))
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_or_empty_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match=r"cannot read the labelled pairs .*No such file"):
        read_labels(tmp_path / "none.jsonl")
    with pytest.raises(Misuse, match="holds no pairs"):
        read_labels(labels(tmp_path, "\n"))


Flagged = tuple[int, int, str, float | None, float | None, str]


def ledger(folder: Path, flagged: list[Flagged]) -> sqlite3.Connection:
    db = connect(folder / "l.db")
    for n in range(1, 10):
        db.execute(
            "INSERT INTO stories (id, language, text_hash, simhash, words, shingles, known_since)"
            " VALUES (?, ?, x'', x'', 1, 1, 0)",
            (n, list(LANGUAGES).index(HINDI if n < 5 else ODIA)),
        )
    for a, b, kind, jaccard, containment, status in flagged:
        db.execute(
            "INSERT INTO flags (a, b, kind, similarity, hamming, jaccard, containment_a, containment_b, status,"
            " flagged_at, fingerprint_version, severity, strength, joins_clusters)"
            " VALUES (?, ?, ?, 0, 0, ?, ?, ?, ?, 0, '', 0, 0, 1)",
            (a, b, kind, jaccard, 0.0 if containment is not None else None, containment, status),
        )
    return db


def scored(folder: Path, flagged: list[Flagged], *lines: object) -> dict[str, Any]:
    db = ledger(folder, flagged)
    try:
        return score_flags(db, read_labels(labels(folder, *lines)))
    finally:
        db.close()


def test_flags_are_scored_by_the_scores_of_the_labels(tmp_path: Path) -> None:
    facts = scored(
        tmp_path,
        [
            (1, 2, "similar", 0.7, 0.8, "open"),
            (1, 3, "partial", 0.2, 0.5, "open"),  # labelled with middling scores: neither wanted nor false
            (1, 4, "partial", 0.2, 0.6, "open"),  # labelled with low scores: false
            (5, 6, "similar", 0.9, 0.9, "open"),  # not labelled: false
            (5, 7, "similar", 0.9, 0.9, "withdrawn"),
        ],
        {"b": 1, "a": 2, "lang": "hi", "j": 0.7, "c": 0.8},
        {"a": 1, "b": 3, "j": 0.2, "c": 0.5},
        {"a": 1, "b": 4, "j": 0.1, "c": 0.2},
        {"a": 5, "b": 7, "j": 0.3, "c": 0.9},
        {"a": 5, "b": 8, "j": 0.8, "c": 0.95},
        {"a": 98, "b": 99, "lang": "te", "j": 0.6, "c": 0.6},
    )
    assert (facts["labelled"], facts["wanted"], facts["flagged"]) == (6, 4, 4)
    found = {(row["language"], row["kind"]): (row["found"], row["n"]) for row in facts["recall"]}
    assert found == {
        ("HINDI", "similar"): (1, 1),
        ("ODIA", "similar"): (0, 1),
        ("ODIA", "partial"): (0, 1),
        ("te", "similar"): (0, 1),
    }
    assert (facts["recall_of_all"]["found"], facts["recall_of_all"]["n"]) == (1, 4)
    assert [(miss["a"], miss["b"]) for miss in facts["misses"]] == [(5, 8), (5, 7), (98, 99)], "most alike first"
    assert facts["misses"][-1]["not_in_ledger"] == [98, 99]
    assert [(flag["a"], flag["b"]) for flag in facts["false_flags"]] == [(1, 4), (5, 6)], "least alike first"
    assert {row["language"]: (row["found"], row["n"]) for row in facts["precision"]} == {
        "HINDI": (2, 3),
        "ODIA": (0, 1),
    }
    assert (facts["precision_of_all"]["found"], facts["precision_of_all"]["n"]) == (2, 4)


def test_without_scores_every_labelled_pair_is_wanted(tmp_path: Path) -> None:
    facts = scored(
        tmp_path,
        [(1, 2, "near", None, None, "open")],
        {"a": 1, "b": 2, "kind": "near", "how": "a word changed"},
        {"a": 3, "b": 4, "kind": "partial"},
        {"a": 2, "b": 3, "kind": "exact"},
        {"a": 6, "b": 7},
    )
    assert (facts["wanted"], facts["recall_of_all"]["found"], facts["false_flags"]) == (4, 1, [])
    assert [miss["kind"] for miss in facts["misses"]] == ["exact", "partial", "unlabelled"]
    assert [row["flagged_as"] for row in facts["recall"] if row["kind"] == "near"] == [{"near": 1}]


def test_the_tables_show_misses_and_false_flags(tmp_path: Path) -> None:
    facts = scored(tmp_path, [(1, 2, "similar", 0.7, 0.8, "open")], {"a": 1, "b": 3})
    assert [table.title for table in make_label_tables(facts)] == [
        "Recall",
        "Precision",
        "Misses (1), worst first",
        "False flags (1), worst first",
    ]


def test_verdicts_give_a_table_of_precision(tmp_path: Path) -> None:
    pairs: list[Flagged] = [(n, n + 1, "similar", 0.7, 0.8, "open") for n in (1, 2, 3, 6, 7)]
    db = ledger(tmp_path, pairs)
    db.execute("UPDATE flags SET language = (SELECT language FROM stories WHERE id = a)")
    assert make_precision_tables(measure_precision(db)) == [], "no verdicts, no table"
    for flag_ids, verdict in (([1, 2], Verdict.PLAGIARISM), ([3, 4], Verdict.NOT_SIMILAR)):
        verdicts.decide(db, flag_ids, verdict, "", "Asha", verdicts.identify_state(db, flag_ids))
    db.close()
    assert measure_precision_on_record(tmp_path / "none.db") == []
    facts = measure_precision_on_record(tmp_path / "l.db")
    assert [(row["language"], row["kind"], row["judged"], row["precision"]) for row in facts] == [
        ("HINDI", "similar", 3, 2 / 3),
        ("ODIA", "similar", 1, 0),
        ("all", "all", 4, 1 / 2),
    ]
    [table] = make_precision_tables(facts)
    assert table.columns[5:] == ("plagiarism", "repost", "quotation", "template", "not similar")
    shown = ["HINDI", "similar", "3", "0.666", "0.207 - 0.938", "2", "0", "0", "0", "1"]
    assert list(map(format_cell, table.rows[0])) == shown
    db = connect(tmp_path / "l.db")
    tables = make_label_tables(score_flags(db, read_labels(labels(tmp_path, {"a": 1, "b": 2}))))
    db.close()
    assert "Precision by moderators' verdicts" in [table.title for table in tables]
