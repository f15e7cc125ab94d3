"""Laws: matches by passages and matches of whole texts never displace each other, and nothing else differs."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from neardup.core.verify.tiers import EXACT, PARTIAL, PASSAGE
from neardup.ledger import candidates, cases, flags, similarities, transaction, verdicts, verification
from neardup.ledger.candidates import Matches
from neardup.ledger.flags import Selection
from neardup.ledger.verification import ALL_SIGNALS, STORY_COLUMNS
from neardup.pipeline.verifier import BEFORE_ALL
from neardup.records import Assessment, Fingerprinted, Kind, Signals, Skip, Skipped, Story, Verdict

from tests.support.builders import commit, fingerprint_of, fingerprinted, flag_spans, ledger_in_memory, spans_of
from tests.support.languages import HINDI
from tests.support.sampling import count_examples

MOST = 2


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    with closing(ledger_in_memory()) as db:
        commit(db, *(fingerprinted(n, n) for n in range(1, 9)))
        yield db


def nominate(db: sqlite3.Connection, story_id: int, whole: list[int], by_passages: list[int]) -> int:
    with transaction(db):
        return candidates.nominate(db, Matches(story_id, whole, MOST, by_passages))


def pending(db: sqlite3.Connection) -> dict[tuple[int, int], bool]:
    rows = db.execute("SELECT a, b, by_passages FROM candidates WHERE verified_at IS NULL")
    return {(a, b): bool(by_passages) for a, b, by_passages in rows}


def verify(db: sqlite3.Connection, kind: Kind | None) -> None:
    pairs = candidates.list_pending(db, BEFORE_ALL, 99)
    verification.record(db, [(pair, Assessment(kind, Signals(40, False, 0.4, 0.4, 0.4))) for pair in pairs], "v")


some = st.lists(st.sampled_from(range(2, 9)), max_size=4, unique=True)


@settings(deadline=None, max_examples=count_examples(60))
@given(st.lists(st.tuples(st.integers(1, 8), some, some), max_size=4), st.sampled_from([None, PARTIAL, EXACT]))
def test_whole_texts_match_as_if_there_were_no_passages(
    nominated: list[tuple[int, list[int], list[int]]], kind: Kind | None
) -> None:
    """Unless a pair is nominated by both, in which case its whole text counts."""
    with closing(ledger_in_memory()) as both, closing(ledger_in_memory()) as alone:
        for db in (both, alone):
            commit(db, *(fingerprinted(n, n) for n in range(1, 9)))
        whole = {(match, story) for story, ids, _ in nominated for match in ids}
        for story, matches, by_passages in nominated:
            ids = [match for match in matches if match < story]
            apart = [n for n in by_passages if n < story and (n, story) not in whole]
            assert nominate(both, story, ids, apart) == nominate(alone, story, ids, []) == 0
        found = pending(both)
        assert {pair for pair, by_passages in found.items() if not by_passages} == pending(alone).keys()
        verify(both, kind)
        verify(alone, kind)
        of_whole = both.execute("SELECT a, b, kind FROM flags WHERE NOT by_passages ORDER BY a, b").fetchall()
        assert of_whole == alone.execute("SELECT a, b, kind FROM flags ORDER BY a, b").fetchall()


WRITTEN = {
    "flags": f"SELECT a, b, kind, status, language, severity, strength, similarity, by_passages, fingerprint_version,"
    f" {ALL_SIGNALS}, {', '.join(STORY_COLUMNS)} FROM flags ORDER BY a, b",
    "near misses": f"SELECT a, b, by_passages, {ALL_SIGNALS} FROM candidates WHERE verified_at IS NOT NULL",
    "chapters": "SELECT * FROM chapters ORDER BY story_id",
    "similarities": "SELECT * FROM similarities ORDER BY story_id",
}
assessments = st.tuples(st.sampled_from([None, PARTIAL, EXACT]), st.sampled_from([0.25, 0.5]), st.booleans())


@settings(deadline=None, max_examples=count_examples(60))
@given(st.dictionaries(st.sampled_from([*combinations(range(1, 5), 2)]), assessments))
def test_the_first_flags_of_a_ledger_are_written_as_any_others(
    found: dict[tuple[int, int], tuple[Kind | None, float, bool]],
) -> None:
    with closing(ledger_in_memory()) as at_once, closing(ledger_in_memory()) as in_turn:
        for db in (at_once, in_turn):
            for number, author, series in ((1, "x", "9"), (2, "x", None), (3, None, "9"), (4, "y", "9")):
                story = Story(number, HINDI, author_id=author, series_id=series, published_at=5 - number)
                commit(db, Fingerprinted(story, fingerprint_of(number.to_bytes(16)), None))
            with transaction(db):
                for (a, b), (_, _, by_passages) in found.items():
                    candidates.nominate(db, Matches(b, [] if by_passages else [a], 9, [a] if by_passages else []))
        rows = []
        for pair in candidates.list_pending(in_turn, BEFORE_ALL, 99):
            kind, share, by_passages = found[pair.a.id, pair.b.id]
            rows.append((pair, Assessment(kind, Signals(40, False, share, share, 0.4)), by_passages))
        new = verification.record(in_turn, [row[:2] for row in rows], "v")
        with transaction(at_once):
            at_once.execute("DELETE FROM candidates")
            assert verification.put_first_flags(at_once, rows, "v") == new
            similarities.refresh(at_once)
        for name, query in WRITTEN.items():
            assert at_once.execute(query).fetchall() == in_turn.execute(query).fetchall(), name


def test_pair_nominated_both_ways_is_one_of_whole_texts(db: sqlite3.Connection) -> None:
    nominate(db, 1, [], [2])
    assert pending(db) == {(1, 2): True}
    nominate(db, 2, [1], [])
    assert pending(db) == {(1, 2): False}
    nominate(db, 1, [], [2])
    assert pending(db) == {(1, 2): False}


def test_near_miss_remembers_how_it_was_nominated(db: sqlite3.Connection) -> None:
    nominate(db, 1, [3], [2])
    verify(db, None)
    rows = db.execute("SELECT b, by_passages FROM candidates WHERE verified_at IS NOT NULL ORDER BY b").fetchall()
    assert rows == [(2, 1), (3, 0)]


def decide_case(db: sqlite3.Connection, case_id: int, verdict: Verdict) -> int:
    cases.refresh(db)
    chosen = cases.list_flags(db, case_id)
    return verdicts.decide(db, chosen, verdict, "", "Asha", verdicts.identify_state(db, chosen))


def test_verdict_on_a_case_decides_the_sources_of_its_story_and_no_copies_of_it(db: sqlite3.Connection) -> None:
    for a, b in ((1, 5), (2, 5), (5, 6)):
        flag_spans(db, a, b, PASSAGE, spans_of((0, 10)), spans_of((0, 10)))
    decision = decide_case(db, 5, Verdict.PLAGIARISM)
    statuses = dict(db.execute("SELECT (a, b) = (5, 6), status FROM flags"))
    assert statuses == {0: "plagiarism", 1: "open"}
    assert len(verdicts.list_of_decision(db, decision)) == 2
    verdicts.undo(db, decision, "Binu", verdicts.identify_state(db, verdicts.list_flags(db, decision)))
    assert flags.count(db) == 3


@pytest.mark.parametrize("verdict", [Verdict.NOT_SIMILAR, Verdict.TEMPLATE])
def test_verdict_on_a_case_suppresses_no_pair_of_two_sources(db: sqlite3.Connection, verdict: Verdict) -> None:
    for a, b in ((1, 5), (2, 5)):
        flag_spans(db, a, b, PASSAGE, spans_of((0, 10)), spans_of((0, 10)))
    decide_case(db, 5, verdict)
    flag_spans(db, 1, 2, PASSAGE, spans_of((0, 10)), spans_of((0, 10)))
    flag = flags.read_pair(db, 1, 2)
    assert flag is not None and flag["status"] == "open"


def test_flags_of_one_author_are_hidden_until_the_authors_differ(db: sqlite3.Connection) -> None:
    listed = [Story(n, HINDI, author_id="7") for n in (11, 12, 13)]
    commit(db, *(Fingerprinted(story, fingerprint_of(story.id.to_bytes(16)), None) for story in listed))
    flag_spans(db, 11, 12, PARTIAL)
    flag_spans(db, 11, 13, EXACT)
    asked_for = Selection(same_author=True)

    def hidden() -> int:
        assert flags.count(db) == len(list(flags.select(db)))
        assert flags.count_open_flags(db, same_author=True)[HINDI] == {EXACT: 1, PARTIAL: 1}
        assert sum(flags.count_open_flags(db)[HINDI].values()) == flags.count(db)
        return flags.count(db, asked_for) - flags.count(db)

    assert hidden() == 1
    assert {row["kind"] for row in flags.select(db)} == {EXACT}, "an exact copy is never hidden"
    commit(db, Skipped(replace(listed[1], author_id="8"), Skip.UNCHANGED))
    assert hidden() == 0
    commit(db, Skipped(replace(listed[1], author_id="7"), Skip.UNCHANGED))
    assert hidden() == 1
    for author in (None, None):
        commit(db, *(Skipped(replace(story, author_id=author), Skip.UNCHANGED) for story in listed))
    assert hidden() == 0, "authors who are not known are not one author"


def test_default_queue_is_read_from_its_index(db: sqlite3.Connection) -> None:
    plan = db.execute(
        "EXPLAIN QUERY PLAN SELECT flag_id FROM flags WHERE language IS NOT NULL AND status IN ('open')"
        " AND NOT same_author ORDER BY severity, strength DESC, a, b LIMIT 50"
    ).fetchall()
    assert "USING COVERING INDEX flags_queue" in plan[0][3] and len(plan) == 1, plan
