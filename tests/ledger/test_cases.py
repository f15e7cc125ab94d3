"""Laws: each flag is in one case, as computed from scratch; no two moderators ever hold one case; the statistics count
what a plain reading of flags and verdicts counts, whenever each was given.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import combinations
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from neardup.core.verify.tiers import EXACT, PARTIAL, PASSAGE, SIMILAR
from neardup.errors import Conflict
from neardup.ledger import case_queue, cases, flags, runs, verdicts
from neardup.ledger.case_queue import CaseSelection
from neardup.ledger.cases import DAY_MS, OpenCases, Waiting
from neardup.records import DECIDING, Kind, Verdict

from tests.support.builders import flag_pair, ledger_in_memory, spans_of
from tests.support.changing_ledger import LATEST, WORDS, ChangingLedger, pairs
from tests.support.languages import HINDI
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
            assert flags.find_cluster_of_case(self.db, row["case_id"]) == flags.find_cluster_around(
                self.db, row["lead"]
            )


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


PAIRS = list(combinations(range(1, 4), 2))


class Given(NamedTuple):
    """A verdict on some pairs, `at` half days after the epoch."""

    pairs: set[tuple[int, int]]
    verdict: str
    moderator: str
    at: int
    is_undone: bool


decisions = st.lists(
    st.builds(
        Given,
        st.sets(st.sampled_from(PAIRS), min_size=1),
        st.sampled_from(list(Verdict)),
        st.sampled_from(["Asha", "Binu", "चित्रा"]),
        st.integers(0, 9),
        st.booleans(),
    ),
    max_size=8,
)


def make_decided(decisions: list[Given]) -> sqlite3.Connection:
    """A ledger with PAIRS, flagged on days 1, 2 and 3, and these decisions."""
    db = ledger_in_memory()
    for n, pair in enumerate(PAIRS, 1):
        flag_pair(db, *pair)
        db.execute("UPDATE flags SET flagged_at = ? WHERE a = ? AND b = ?", (n * DAY_MS, *pair))
    for number, decision in enumerate(decisions, 1):
        for pair in decision.pairs:
            db.execute(
                "INSERT INTO verdicts (a, b, kind, severity, joins_clusters, verdict, note, moderator, decided_at,"
                " decision, undone_at) VALUES (?, ?, 'near', 1, 1, ?, '', ?, ?, ?, ?)",
                (
                    *pair,
                    decision.verdict,
                    decision.moderator,
                    decision.at * DAY_MS // 2,
                    number,
                    1 if decision.is_undone else None,
                ),
            )
    db.execute(
        "UPDATE flags SET status = coalesce((SELECT verdict FROM active_verdicts v"
        " WHERE v.a = flags.a AND v.b = flags.b), 'open')"
    )
    cases.refresh(db)
    return db


@settings(deadline=None)
@given(decisions, st.integers(0, 5))
def test_statistics_count_the_verdicts_that_stand(decisions: list[Given], since_day: int) -> None:
    since = since_day * DAY_MS
    with closing(make_decided(decisions)) as db:
        given_last = {
            pair: [given for given in decisions if pair in given.pairs and not given.is_undone] for pair in PAIRS
        }
        latest = {pair: found[-1] for pair, found in given_last.items() if found and found[-1].verdict in DECIDING}
        expected = list(decided_of(decisions, latest, since, case_of(db)))
        decided_cases = cases.count_decided(db, since)
        assert decided_cases == Counter((SIMILAR, moderator, at // DAY_MS) for moderator, at, _ in expected)
        assert Counter(cases.list_waits(db, since)) == Counter(wait for *_, wait in expected)
        assert cases.count_opened(db, since) == opened_of(since, case_of(db))


def test_what_was_opened_and_decided_is_read_from_indexes_alone() -> None:
    """The page of statistics would else read a row of every case of the last month."""
    with closing(ledger_in_memory()) as db:
        for count in (
            cases.count_opened,
            cases.count_decided,
            cases.list_waits,
        ):
            asked = list[str]()
            db.set_trace_callback(asked.append)
            count(db, 0)
            db.set_trace_callback(None)
            plan = [row[3] for query in asked for row in db.execute(f"EXPLAIN QUERY PLAN {query}")]
            assert any("USING COVERING INDEX" in step for step in plan), f"{count.__name__}: {plan}"


def case_of(db: sqlite3.Connection) -> dict[tuple[int, int], int]:
    return {(a, b): case_id for a, b, case_id in db.execute("SELECT a, b, case_id FROM flags")}


def decided_of(
    decisions: list[Given], latest: dict[tuple[int, int], Given], since: int, case_of: dict[tuple[int, int], int]
) -> Iterator[tuple[str, int, int]]:
    """The moderator of each decided case, when it was decided and after how long, given the verdicts of pairs.

    The last verdict is the one given last, whatever a clock that was set back or stood still said of its time.
    """
    for case_id in set(case_of.values()):
        members = [pair for pair in PAIRS if case_of[pair] == case_id]
        if latest.keys() >= set(members):
            standing = [latest[pair] for pair in members]
            last = next(given for given in reversed(decisions) if given in standing)
            at = last.at * DAY_MS // 2
            opened = min(PAIRS.index(pair) + 1 for pair in members) * DAY_MS
            if at >= since:
                yield last.moderator, at, max(at - opened, 0)


def opened_of(since: int, case_of: dict[tuple[int, int], int]) -> Counter[tuple[Kind, int]]:
    first = {case_of[pair]: n for n, pair in reversed(list(enumerate(PAIRS, 1)))}
    return Counter((SIMILAR, day) for day in first.values() if day * DAY_MS >= since)


@example(list(range(9)))  # nine in ten of nine are all
@given(st.lists(st.integers(0, 50), max_size=30))
def test_waiting_times_are_quantiles(lengths: list[int]) -> None:
    found = cases.measure_waiting(lengths)
    if not lengths:
        assert found is None
        return
    middle = max(length for length in lengths if sum(other < length for other in lengths) < len(lengths) / 2)
    most = next(n for n in sorted(lengths) if sum(other <= n for other in lengths) >= 0.9 * len(lengths))
    assert found == Waiting(len(lengths), middle, most)


@settings(deadline=None)
@given(st.lists(st.sampled_from(["open", "withdrawn", *DECIDING]), min_size=3, max_size=3), st.integers(0, 4))
def test_open_and_recent_flags(statuses: list[str], since_day: int) -> None:
    with closing(make_decided([])) as db:
        for pair, status in zip(PAIRS, statuses, strict=True):
            db.execute("UPDATE flags SET status = ? WHERE a = ? AND b = ?", (status, *pair))
        cases.refresh(db)
        waits = [n * DAY_MS for n, status in enumerate(statuses, 1) if status == "open"]
        oldest = cases.find_oldest_open(db)
        assert (oldest and oldest[1]) == (waits[0] if waits else None)
        open_cases = case_queue.select_ids(db, CaseSelection(), limit=9, offset=0)
        assert oldest is None or oldest[0] in open_cases
        recent = sum(status != "withdrawn" and n >= since_day for n, status in enumerate(statuses, 1))
        assert cases.count_flagged(db, since_day * DAY_MS) == Counter({(HINDI, SIMILAR): recent} if recent else {})


def test_runs_of_today_count() -> None:
    with closing(ledger_in_memory()) as db:
        assert cases.count_fingerprinted(db, 0) == 0
        for n in (3, 4):
            runs.finish(db, runs.begin(db, "daily"), "done", counts={"fingerprinted": n})
        runs.begin(db, "daily")
        assert cases.count_fingerprinted(db, 0) == 7
        assert cases.count_fingerprinted(db, 2**62) == 0
