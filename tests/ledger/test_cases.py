"""Laws: each flag is in one case, as computed from scratch; no two moderators ever hold one case."""

import json
import sqlite3
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from neardup.core.verify.tiers import EXACT, PARTIAL, PASSAGE
from neardup.errors import Conflict
from neardup.ledger import cases, clusters, verdicts
from neardup.ledger.cases import OpenCases
from neardup.records import Kind, Verdict

from tests.support.builders import flag_pair, ledger_in_memory
from tests.support.changing_ledger import LATEST, WORDS, ChangingLedger, pairs
from tests.support.copied_spans import spans_of
from tests.support.sampling import count_examples

JOINING = {"open", "plagiarism", "repost", "quotation", "template"}


def expected(db: sqlite3.Connection) -> dict[int, set[int]]:
    """The flags of each case, from the tables of stories and flags alone."""
    time = {n: (LATEST if at is None else at, n) for n, at in db.execute("SELECT id, published_at FROM stories")}
    found = db.execute("SELECT flag_id, a, b, status, joins_clusters FROM flags WHERE status <> 'withdrawn'").fetchall()
    joined = {story: {story} for story in time}

    def join(a: int, b: int) -> None:
        both = joined[a] | joined[b]
        for story in both:
            joined[story] = both

    for _, a, b, status, joins in found:
        if joins and status in JOINING:
            join(a, b)
    single = {story for story, others in joined.items() if len(others) == 1}
    for _, a, b, status, joins in found:
        if joins and status == "not_similar" and {a, b} <= single:
            join(a, b)
    want: dict[int, set[int]] = {}
    for flag_id, a, b, *_ in found:
        want.setdefault(min(joined[max(a, b, key=time.__getitem__)]), set()).add(flag_id)
    return want


def state(db: sqlite3.Connection) -> tuple[Any, ...]:
    return (
        db.execute("SELECT * FROM cases ORDER BY case_id").fetchall(),
        db.execute("SELECT flag_id, case_id FROM flags ORDER BY flag_id").fetchall(),
    )


class AnyOperations(ChangingLedger):
    """Operations on a ledger, in any order, with flags of three kinds."""

    @rule(pair=pairs, kind=st.sampled_from([EXACT, PARTIAL, PASSAGE]), words=st.integers(1, WORDS))
    def flag(self, pair: tuple[int, int], kind: Kind, words: int) -> None:
        self.flag_pair(pair, kind, spans_of((0, words)), spans_of((0, words)))

    @rule()
    def refresh(self) -> None:
        cases.refresh(self.db)

    @rule()
    def refresh_equals_computing_all_from_scratch(self) -> None:
        cases.refresh(self.db)
        refreshed = state(self.db)
        self.db.execute("UPDATE flags SET case_id = NULL")
        self.db.execute("DELETE FROM cases")
        self.db.execute("INSERT INTO due_flags SELECT flag_id FROM flags")
        cases.refresh(self.db)
        assert state(self.db) == refreshed

    @invariant()
    def every_flag_is_in_one_case(self) -> None:
        if self.texts % 2:  # else several changes come together
            return
        cases.refresh(self.db)
        want = expected(self.db)
        got: dict[int, set[int]] = {}
        for flag_id, case_id in self.db.execute("SELECT flag_id, case_id FROM flags WHERE case_id IS NOT NULL"):
            got.setdefault(case_id, set()).add(flag_id)
        assert got == want
        assert {row[0] for row in self.db.execute("SELECT case_id FROM cases")} == want.keys()

    @invariant()
    def a_case_sums_up_its_flags(self) -> None:
        if cases.is_due(self.db):
            return
        cursor = self.db.cursor()
        cursor.row_factory = sqlite3.Row
        for row in cursor.execute("SELECT * FROM cases").fetchall():
            counted = cases.list_flags(self.db, row["case_id"])
            query = "SELECT a, b, status, kind FROM flags WHERE flag_id IN (SELECT value FROM json_each(?))"
            facts = self.db.execute(query, (json.dumps(counted),)).fetchall()
            assert (row["flags"], row["open_flags"]) == (len(facts), sum(status == "open" for *_, status, _ in facts))
            assert row["stories"] == len({story for a, b, *_ in facts for story in (a, b)})
            assert {f",{kind}," for *_, kind in facts} == {f",{kind}," for kind in row["kinds"].strip(",").split(",")}
            assert cases.find_case(self.db, row["lead"]) == row["case_id"]
            assert clusters.find_of_case(self.db, row["case_id"]) == clusters.find_around(self.db, row["lead"])


TestAnyOperations = AnyOperations.TestCase
TestAnyOperations.settings = settings(deadline=None, max_examples=count_examples(100), stateful_step_count=30)


def rows(db: sqlite3.Connection) -> list[tuple[Any, ...]]:
    cases.refresh(db)
    return db.execute("SELECT case_id, flags, stories, statuses FROM cases ORDER BY case_id").fetchall()


def test_reposts_are_one_case_and_so_is_a_compilation_with_its_sources() -> None:
    db = ledger_in_memory()
    for n in range(2, 21):
        flag_pair(db, 1, n, EXACT)
    for n in range(101, 121):
        flag_pair(db, n, 200, PASSAGE)
    assert rows(db) == [(1, 19, 20, ",open,"), (200, 20, 21, ",open,")]
    assert cases.count_open_cases(db) == OpenCases(cases=2, pairs=39)


def test_a_case_found_in_many_parts_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "FLAGS_AT_ONCE", 3)
    db = ledger_in_memory()
    for n in range(1, 20):
        flag_pair(db, n, n + 1, EXACT)
    assert rows(db) == [(1, 19, 20, ",open,")]


def test_false_match_splits_a_case_and_a_verdict_on_all_of_it_does_not() -> None:
    db = ledger_in_memory()
    for a, b in ((1, 2), (3, 4), (2, 3)):
        flag_pair(db, a, b, EXACT)
    verdicts.decide(db, [3], Verdict.NOT_SIMILAR, "", "Asha", verdicts.identify_state(db, [3]))
    assert [row[0] for row in rows(db)] == [1, 3]
    verdicts.undo(db, 1, "Asha", verdicts.identify_state(db, [3]))
    verdicts.decide(db, [1, 2, 3], Verdict.NOT_SIMILAR, "", "Asha", verdicts.identify_state(db, [1, 2, 3]))
    assert rows(db) == [(1, 3, 4, ",not_similar,")]


MODERATORS = ("Asha", "Ravi", "കമല")
case_ids, lease_holders = st.integers(1, 3), st.sampled_from(MODERATORS)
steps = st.lists(
    st.tuples(st.just("take"), case_ids, lease_holders)
    | st.tuples(st.just("release"), case_ids, lease_holders)
    | st.tuples(st.just("wait"), st.integers(1, cases.LEASE_MS), st.just("")),
    max_size=20,
)


@settings(deadline=None)
@given(steps)
def test_no_two_moderators_hold_one_case(steps: list[tuple[str, int, str]]) -> None:
    db = ledger_in_memory()
    now, held = 0, dict[int, tuple[str, int]]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cases, "now_ms", lambda: now)
        for step, n, moderator in steps:
            match step:
                case "wait":
                    now += n
                case "release":
                    cases.release_leases(db, moderator, [n])
                    if held.get(n, ("", 0))[0] == moderator:
                        del held[n]
                case _:
                    if held.get(n, ("", 0))[1] <= now or held[n][0] == moderator:
                        held[n] = moderator, now + cases.LEASE_MS
                    lease = cases.take_lease(db, n, moderator)
                    assert (lease.moderator, lease.until) == held[n]
            want = {case: lease for case, lease in held.items() if lease[1] > now}
            assert {
                n: (lease.moderator, lease.until) for n, lease in cases.read_held_leases(db, range(1, 4)).items()
            } == want
    db.close()


def give(db: sqlite3.Connection, verdict: Verdict, moderator: str) -> int:
    return verdicts.decide(db, [1], verdict, "", moderator, verdicts.identify_state(db, [1]))


def test_verdict_on_a_case_that_another_holds_is_refused() -> None:
    db = ledger_in_memory()
    flag_pair(db, 1, 2, EXACT)
    cases.refresh(db)
    cases.take_lease(db, 1, "Asha")
    with pytest.raises(Conflict, match="Asha has this case open, until "):
        give(db, Verdict.TEMPLATE, "Ravi")
    give(db, Verdict.TEMPLATE, "Asha")
    cases.release_leases(db, "Asha", [1])
    give(db, Verdict.REPOST, "Ravi")
