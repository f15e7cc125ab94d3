"""Laws of the statistics: they count what a plain reading of flags and verdicts counts, whenever each was given."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import combinations
from typing import NamedTuple

from hypothesis import example, given, settings
from hypothesis import strategies as st
from neardup.core.verify.tiers import SIMILAR
from neardup.ledger import case_queue, cases, moderation_statistics, runs
from neardup.ledger.case_queue import CaseSelection
from neardup.ledger.moderation_statistics import DAY_MS, Waiting
from neardup.records import DECIDING, Kind, Verdict

from tests.support.builders import flag_pair, ledger_in_memory
from tests.support.languages import HINDI

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


def decided(decisions: list[Given]) -> sqlite3.Connection:
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
    with closing(decided(decisions)) as db:
        given_last = {
            pair: [given for given in decisions if pair in given.pairs and not given.is_undone] for pair in PAIRS
        }
        latest = {pair: found[-1] for pair, found in given_last.items() if found and found[-1].verdict in DECIDING}
        expected = list(decided_of(decisions, latest, since, case_of(db)))
        decided_cases = moderation_statistics.count_decided(db, since)
        assert decided_cases == Counter((SIMILAR, moderator, at // DAY_MS) for moderator, at, _ in expected)
        assert Counter(moderation_statistics.list_waits(db, since)) == Counter(wait for *_, wait in expected)
        assert moderation_statistics.count_opened(db, since) == opened_of(since, case_of(db))


def test_what_was_opened_and_decided_is_read_from_indexes_alone() -> None:
    """The page of statistics would else read a row of every case of the last month."""
    with closing(ledger_in_memory()) as db:
        for count in (
            moderation_statistics.count_opened,
            moderation_statistics.count_decided,
            moderation_statistics.list_waits,
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
    found = moderation_statistics.measure_waiting(lengths)
    if not lengths:
        assert found is None
        return
    middle = max(length for length in lengths if sum(other < length for other in lengths) < len(lengths) / 2)
    most = next(n for n in sorted(lengths) if sum(other <= n for other in lengths) >= 0.9 * len(lengths))
    assert found == Waiting(len(lengths), middle, most)


@settings(deadline=None)
@given(st.lists(st.sampled_from(["open", "withdrawn", *DECIDING]), min_size=3, max_size=3), st.integers(0, 4))
def test_open_and_recent_flags(statuses: list[str], since_day: int) -> None:
    with closing(decided([])) as db:
        for pair, status in zip(PAIRS, statuses, strict=True):
            db.execute("UPDATE flags SET status = ? WHERE a = ? AND b = ?", (status, *pair))
        cases.refresh(db)
        waits = [n * DAY_MS for n, status in enumerate(statuses, 1) if status == "open"]
        oldest = moderation_statistics.find_oldest_open(db)
        assert (oldest and oldest[1]) == (waits[0] if waits else None)
        open_cases = case_queue.select_ids(db, CaseSelection(), limit=9, offset=0)
        assert oldest is None or oldest[0] in open_cases
        recent = sum(status != "withdrawn" and n >= since_day for n, status in enumerate(statuses, 1))
        assert moderation_statistics.count_flagged(db, since_day * DAY_MS) == Counter(
            {(HINDI, SIMILAR): recent} if recent else {}
        )


def test_runs_of_today_count() -> None:
    with closing(ledger_in_memory()) as db:
        assert moderation_statistics.count_fingerprinted(db, 0) == 0
        for n in (3, 4):
            runs.finish(db, runs.begin(db, "daily"), "done", counts={"fingerprinted": n})
        runs.begin(db, "daily")
        assert moderation_statistics.count_fingerprinted(db, 0) == 7
        assert moderation_statistics.count_fingerprinted(db, 2**62) == 0
