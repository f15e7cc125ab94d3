"""Laws: planted pairs are counted apart from unrelated pairs; flags are scored by the labels."""

import json
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.verify.tiers import EXACT, NEAR, PARTIAL, SIMILAR
from neardup.errors import Fatal, Misuse
from neardup.insights.evaluate import report, tally, verdict_tables
from neardup.insights.evaluate.edits import EDITS
from neardup.insights.evaluate.passages import WORKS, Work
from neardup.insights.evaluate.plant import COPIES, Copy, Corpus, PlantedStory, plant
from neardup.insights.evaluate.sample import Original
from neardup.insights.evaluate.tally import Pair
from neardup.insights.evaluate.truth import read_labels, score_flags
from neardup.languages import LANGUAGES
from neardup.ledger import connect, verdicts
from neardup.records import Verdict
from selectolax.lexbor import LexborHTMLParser

from tests.support.languages import ENGLISH, HINDI, ODIA, TAMIL

FIRST, SECOND, RUN, THREE = EDITS[0], EDITS[1], EDITS[-1], WORKS[0]


def corpus(
    *copies: tuple[int | tuple[int, ...], Copy], donors: dict[int, set[int]] | None = None, originals: int = 3
) -> Corpus:
    stories = [PlantedStory((n,), None) for n in range(originals)]
    stories += [PlantedStory((origin,) if isinstance(origin, int) else origin, copy) for origin, copy in copies]
    donors_of = [frozenset((donors or {}).get(n, ())) for n in range(originals)]
    return Corpus([Original(100 + n, ODIA, "") for n in range(originals)], stories, donors_of)


def test_a_copy_is_found_only_with_its_own_original() -> None:
    planted = corpus((0, FIRST), (1, FIRST), (1, SECOND))
    pairs = [Pair(0, 3, NEAR, 0.9, 0.9), Pair(0, 4, EXACT, 1, 1), Pair(1, 5, None, 0.4, 0.4)]
    assert tally.flagged_as(planted, pairs) == {
        FIRST.name: Counter({NEAR: 1, None: 1}),
        SECOND.name: Counter({None: 1}),
    }
    assert tally.cross_flags(planted, pairs) == [pairs[1]]


def test_related_originals_are_left_out_of_precision() -> None:
    planted = corpus((0, FIRST), donors={0: {1}}, originals=5)
    own, donor, like_donor, like_own, unrelated = (Pair(n, 5, SIMILAR, 0.6, 0.7) for n in (0, 1, 2, 3, 4))
    overlaps = [Pair(1, 2, None, 0.1, 0.3), Pair(0, 3, PARTIAL, 0.2, 0.6)]
    scored = tally.scored(planted, [own, donor, like_donor, like_own, unrelated, *overlaps])
    assert list(scored.planted) == [(0.6, 0.7)]
    assert list(scored.unrelated) == [(0.6, 0.7)]
    assert (scored.left_out, scored.copies) == (3, 1)


def test_each_chapter_of_a_work_is_found_by_itself() -> None:
    planted = corpus((1, RUN), ((2, 0, 1), THREE), originals=3)
    pairs = [Pair(0, 4, PARTIAL, 0.3, 0.9), Pair(2, 4, None, 0.1, 0.4), Pair(1, 3, SIMILAR, 0.6, 0.7)]
    assert tally.flagged_as(planted, pairs) == {
        RUN.name: Counter({SIMILAR: 1}),
        THREE.name: Counter({PARTIAL: 1, None: 2}),
    }
    scored = tally.scored(planted, pairs)
    assert (scored.copies, scored.planted, scored.unrelated) == (0, [], []), "the scores are of whole copies"


origins = st.integers(0, 3) | st.sets(st.integers(0, 3), min_size=2).map(lambda some: tuple(sorted(some)))


@given(st.lists(origins, max_size=12))
def test_pairs_of_different_origin_are_counted(copies: list[int | tuple[int, ...]]) -> None:
    planted = corpus(*((origin, FIRST) for origin in copies), originals=4)
    stories = planted.stories
    expected = sum(not set(a.origins) & set(b.origins) for n, a in enumerate(stories) for b in stories[:n])
    assert tally.count_cross_pairs(planted) == expected


def test_the_seed_determines_the_planted_copies() -> None:
    originals = [Original(n, ENGLISH, " ".join(f"word{n} of{k}" for k in range(40))) for n in range(3)]
    assert plant(originals, COPIES, 1) == plant(originals, COPIES, 1)
    assert plant(originals, COPIES, 1)[1] != plant(originals, COPIES, 2)[1]


def test_each_original_precedes_its_copies_and_works_come_last() -> None:
    planted, texts = plant([Original(n, ENGLISH, f"word{n} of " * 40) for n in range(7)], COPIES, 1, first=50)
    assert planted.ids == range(50, 50 + len(texts))
    works = [story for story in planted.stories if isinstance(story.copy, Work)]
    others = planted.stories[: -len(works)]
    assert [story.origins for story in others] == sorted(story.origins for story in others)
    first = [next(story for story in others if story.origins == (n,)) for n in range(7)]
    assert [story.copy for story in first] == [None] * 7
    assert sum(story.copy is None for story in planted.stories) == 7
    assert Counter(len(story.origins) for story in works) == {3: 2, 5: 1}, "no work has too few chapters"
    for story, text in zip(planted.stories, texts, strict=True):
        assert all(f"word{n} of" in text for n in story.origins) or not isinstance(story.copy, Work)


def test_the_longest_story_takes_text_from_several_donors() -> None:
    texts = ["a " * 500, "b " * 20, "c " * 30]
    planted, _ = plant([Original(n, TAMIL, text) for n, text in enumerate(texts)], COPIES, 1)
    assert planted.donors[0] == {1, 2}
    assert planted.donors[1] < {0, 2}


def labels(folder: Path, *lines: object) -> Path:
    path = folder / "pairs.jsonl"
    path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{\n", "Expecting property name"),
        ("[1, 2]\n", "not an object"),
        ({"a": 1}, "no b"),
        ({"a": 1, "b": "2"}, "b is '2', not an integer"),
        ({"a": True, "b": 2}, "a is True, not an integer"),
        ({"a": 1, "b": 1}, "a and b are the same story"),
        ({"a": 1, "b": 2, "j": 1.5}, "j is 1.5, not a number from 0 to 1"),
        ({"a": 1, "b": 2, "c": "x"}, "c is 'x', not a number"),
        ({"a": 1, "b": 2, "kind": 7}, "kind and lang are strings"),
        ("[" * 100_000 + "\n", ""),
        (b"\xff\n".decode("latin-1"), ""),
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
            "INSERT INTO stories (id, language, text_hash, simhash, words, shingles) VALUES (?, ?, x'', x'', 1, 1)",
            (n, list(LANGUAGES).index(HINDI if n < 5 else ODIA)),
        )
    for a, b, kind, jaccard, containment, status in flagged:
        db.execute(
            "INSERT INTO flags (a, b, kind, hamming, jaccard, containment_a, containment_b, status,"
            " flagged_at, fingerprint_version, severity, strength, joins_clusters)"
            " VALUES (?, ?, ?, 0, ?, ?, ?, ?, 0, '', 0, 0, 1)",
            (
                a,
                b,
                kind,
                jaccard,
                0.0 if containment is not None else None,
                containment,
                status,
            ),
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


def test_the_page_of_labelled_pairs_escapes_text(tmp_path: Path) -> None:
    facts = scored(tmp_path, [(1, 2, "<b>", 0.7, 0.8, "open")], {"a": 1, "b": 3})
    report.write_truth(tmp_path / "new" / "truth.html", facts)
    page = LexborHTMLParser((tmp_path / "new" / "truth.html").read_text(encoding="utf-8"))
    assert [h2.text() for h2 in page.css("h2")] == [
        "Recall",
        "Precision",
        "Misses (1), worst first",
        "False flags (1), worst first",
    ]
    assert "<b>" in page.css("table")[-1].text(), "text from the ledger must be escaped"
    with pytest.raises(Fatal, match="cannot write the page"):
        report.write_truth(tmp_path / "l.db" / "truth.html", facts)


def test_verdicts_give_a_table_of_precision(tmp_path: Path) -> None:
    pairs: list[Flagged] = [(n, n + 1, "similar", 0.7, 0.8, "open") for n in (1, 2, 3, 6, 7)]
    db = ledger(tmp_path, pairs)
    db.execute("UPDATE flags SET language = (SELECT language FROM stories WHERE id = a)")
    assert verdict_tables.tables(verdict_tables.precision_by_verdicts(db)) == [], "no verdicts, no table"
    for flag_ids, verdict in (([1, 2], Verdict.PLAGIARISM), ([3, 4], Verdict.NOT_SIMILAR)):
        verdicts.decide(db, flag_ids, verdict, "", "Asha", verdicts.state(db, flag_ids))
    db.close()
    assert verdict_tables.precision_on_record(tmp_path / "none.db") == []
    facts = verdict_tables.precision_on_record(tmp_path / "l.db")
    assert [(row["language"], row["kind"], row["judged"], row["precision"]) for row in facts] == [
        ("HINDI", "similar", 3, 2 / 3),
        ("ODIA", "similar", 1, 0),
        ("all", "all", 4, 1 / 2),
    ]
    [table] = verdict_tables.tables(facts)
    assert table.columns[5:] == ("plagiarism", "repost", "quotation", "template", "not similar")
    assert table.rows[0] == ("HINDI", "similar", "3", "0.666", "0.207 - 0.938", "2", "0", "0", "0", "1")
    db = connect(tmp_path / "l.db")
    report.write_truth(tmp_path / "truth.html", score_flags(db, read_labels(labels(tmp_path, {"a": 1, "b": 2}))))
    db.close()
    page = LexborHTMLParser((tmp_path / "truth.html").read_text(encoding="utf-8"))
    assert "Precision by moderators' verdicts" in [h2.text() for h2 in page.css("h2")]
