"""Laws of queues of cases: they hold what their filters say, and the counts beside filters are of what is shown."""

import json
import sqlite3
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from neardup.core.verify.tiers import EXACT, NEAR, PASSAGE
from neardup.ledger import case_queue, cases, verdicts
from neardup.ledger.case_queue import EVERY, JUDGED, OPEN, Authors, CaseSelection, Inbox, Order
from neardup.records import DECIDING, Fingerprinted, Story, Verdict

from tests.support.builders import commit, fingerprint_of, flag_pair, ledger_in_memory
from tests.support.languages import HINDI, TAMIL

KINDS = (EXACT, NEAR, PASSAGE)
STATUSES = (OPEN, *DECIDING)
CATALOGUES = ("classics", "first editions", "editions")
columns = st.fixed_dictionaries(
    {
        "language": st.sampled_from([HINDI, TAMIL]),
        "kinds": st.sets(st.sampled_from(KINDS), min_size=1),
        "statuses": st.sets(st.sampled_from(STATUSES), min_size=1, max_size=3),
        "catalogues": st.sets(st.sampled_from(CATALOGUES)),
        "similarity": st.sampled_from([0.0, 0.5, 0.91, 1.0]),
        "history": st.integers(0, 2),
        "stories": st.integers(2, 4),
        "flagged_at": st.integers(0, 3),
        "same_author": st.booleans(),
        "hidden": st.booleans(),
    }
).filter(lambda row: row["same_author"] or not row["hidden"])
selections = st.builds(
    CaseSelection,
    languages=st.sampled_from([(), (HINDI,), (TAMIL,)]),
    kind=st.none() | st.sampled_from(KINDS),
    status=st.sampled_from([OPEN, JUDGED, EVERY, *DECIDING]),
    similarity=st.sampled_from([None, 0.5, 1.0]),
    authors=st.none() | st.sampled_from(Authors),
    catalogue=st.none() | st.sampled_from(CATALOGUES),
    since=st.none() | st.integers(0, 3),
    until=st.none() | st.integers(0, 3),
    hidden=st.booleans(),
)


@pytest.fixture(scope="module")
def db() -> sqlite3.Connection:
    db = ledger_in_memory()
    commit(
        db,
        *(
            Fingerprinted(Story(n, HINDI if n % 2 else TAMIL), fingerprint_of(bytes([n] * 16)), None)
            for n in range(1, 21)
        ),
    )
    return db


def put(db: sqlite3.Connection, rows: list[dict[str, Any]]) -> None:
    number = {name: n for n, name in db.execute("SELECT number, name FROM languages")}
    db.execute("DELETE FROM cases")
    for n, row in enumerate(rows):
        listed = {name: f",{','.join(sorted(row[name]))}," for name in ("kinds", "statuses", "catalogues")}
        story = 2 * n + (1 if row["language"] == HINDI else 2)
        facts = row | listed | {"language": number[row["language"]], "case_id": story, "lead": story, "unsure": "[]"}
        facts |= {"severity": 100, "flags": 3, "open_flags": int(OPEN in row["statuses"])}
        facts |= {"is_ordered": True, "opened_at": 0}
        db.execute(
            f"INSERT INTO cases ({', '.join(facts)}) VALUES ({', '.join('?' * len(facts))})", list(facts.values())
        )


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(columns, max_size=8), selections, st.sampled_from(Order))
def test_counts_beside_filters_are_of_what_they_show(
    db: sqlite3.Connection, rows: list[dict[str, Any]], selection: CaseSelection, order: Order
) -> None:
    put(db, rows)
    shown = case_queue.select(db, selection, order)
    keys = [tuple(-row[key] for key in (case_queue.FIRST_KEYS[order], "similarity")) for row in shown]
    assert keys == sorted(keys)
    assert [row["case_id"] for row in shown] == case_queue.select_ids(db, selection, order, limit=99, offset=0)
    counts = case_queue.count_by_filter(db, selection)
    assert counts.total == len(shown) == case_queue.count(db, selection)
    for language in (HINDI, TAMIL):
        assert counts.languages[language] == case_queue.count(db, replace(selection, languages=(language,)))
    for kind in KINDS:
        assert counts.kinds[kind] == case_queue.count(db, replace(selection, kind=kind))
    for status in (OPEN, JUDGED, EVERY, *DECIDING):
        assert counts.statuses[status] == case_queue.count(db, replace(selection, status=status))
    for authors in Authors:
        assert counts.authors[authors] == case_queue.count(db, replace(selection, authors=authors))
    for catalogue in CATALOGUES:
        assert counts.catalogues[catalogue] == case_queue.count(db, replace(selection, catalogue=catalogue))
    if selection.authors is None:
        db.execute("UPDATE cases SET hidden = 0")
        assert counts.hidden == case_queue.count(db, selection) - counts.total


def test_author_matches_either_side() -> None:
    db = ledger_in_memory()
    listed = [Story(n, HINDI, author_id=author, published_at=n) for n, author in ((1, "७"), (2, "8"), (3, "9"))]
    commit(db, *(Fingerprinted(story, fingerprint_of(bytes([story.id] * 16)), None) for story in listed))
    flag_pair(db, 1, 2, EXACT)
    cases.refresh(db)
    assert [case_queue.count(db, CaseSelection(author=author)) for author in ("७", "8", "9")] == [1, 1, 0]


def decide(db: sqlite3.Connection, case_id: int, verdict: Verdict, moderator: str) -> int:
    cases.refresh(db)
    chosen = cases.list_flags(db, case_id)
    done = verdicts.decide(db, chosen, verdict, "why", moderator, verdicts.identify_state(db, chosen))
    cases.refresh(db)
    return done


def test_unsure_asks_the_others_until_one_decides() -> None:
    db = ledger_in_memory()
    flag_pair(db, 1, 2, EXACT)
    inbox = {name: CaseSelection(inbox=Inbox.SECOND, moderator=name) for name in ("Asha", "Ravi")}
    done = decide(db, 1, Verdict.UNSURE, "Asha")
    assert [case_queue.count(db, inbox[name]) for name in inbox] == [0, 1]
    assert json.loads(case_queue.select(db, inbox["Ravi"])[0]["unsure"]) == ["Asha"]
    verdicts.undo(db, done, "Asha", verdicts.identify_state(db, verdicts.list_flags(db, done)))
    cases.refresh(db)
    assert case_queue.count(db, inbox["Ravi"]) == 0
    decide(db, 1, Verdict.UNSURE, "Asha")
    decide(db, 1, Verdict.REPOST, "Ravi")
    assert case_queue.count(db, replace(inbox["Ravi"], status=EVERY)) == 0
    assert case_queue.count(db, CaseSelection(status=Verdict.REPOST)) == 1
    decide(db, 1, Verdict.REOPENED, "Asha")
    assert case_queue.count(db, CaseSelection()) == 1
    assert [row["verdict"] for row in verdicts.list_of_pair(db, 1, 2)] == ["reopened", "repost", "unsure", "unsure"]


def test_cases_are_found_by_who_decided_them() -> None:
    db = ledger_in_memory()
    for a, b in ((1, 2), (3, 4)):
        flag_pair(db, a, b, EXACT)
    undone = decide(db, 1, Verdict.REPOST, "Asha")
    decide(db, 3, Verdict.PLAGIARISM, "Asha")
    verdicts.undo(db, undone, "Asha", verdicts.identify_state(db, verdicts.list_flags(db, undone)))
    decide(db, 1, Verdict.PLAGIARISM, "Ravi")
    by = {name: CaseSelection(status=EVERY, decided_by=name) for name in ("Asha", "Ravi", "Meera")}
    found = {name: case_queue.select_ids(db, selection, limit=9, offset=0) for name, selection in by.items()}
    assert found == {"Asha": [3], "Ravi": [1], "Meera": []}


def test_held_cases_are_mine_or_not_free() -> None:
    db = ledger_in_memory()
    for a, b in ((1, 2), (3, 4)):
        flag_pair(db, a, b, EXACT)
    cases.refresh(db)
    cases.take_lease(db, 1, "Asha")
    found = {
        (inbox, name): case_queue.select_ids(db, CaseSelection(inbox=inbox, moderator=name), limit=9, offset=0)
        for inbox in (Inbox.MINE, Inbox.FREE)
        for name in ("Asha", "Ravi")
    }
    assert found == {
        (Inbox.MINE, "Asha"): [1],
        (Inbox.MINE, "Ravi"): [],
        (Inbox.FREE, "Asha"): [3],
        (Inbox.FREE, "Ravi"): [3],
    }
