"""Laws of the statistics: they count what a plain reading of flags and verdicts counts, whenever each was given."""

import sqlite3
from collections import Counter
from contextlib import closing
from itertools import combinations
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.verify.tiers import SIMILAR
from neardup.ledger import case_queue, cases, moderation_statistics, runs
from neardup.ledger.case_queue import CaseSelection
from neardup.ledger.moderation_statistics import DAY_MS, Agreement, Waiting
from neardup.records import DECIDING, Verdict

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
).map(lambda found: sorted(found, key=lambda decision: decision.at))


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
    return db


@settings(deadline=None)
@given(decisions, st.integers(0, 5))
def test_statistics_count_the_verdicts_that_stand(decisions: list[Given], since_day: int) -> None:
    since = since_day * DAY_MS
    standing = [decision for decision in decisions if not decision.is_undone and decision.verdict in DECIDING]
    with closing(decided(decisions)) as db:
        assert moderation_statistics.count_decisions(db, since) == Counter(
            (decision.moderator, decision.at // 2) for decision in standing if decision.at // 2 >= since_day
        )
        assert moderation_statistics.waiting_times(db, since) == waiting_of(standing, since)
        assert moderation_statistics.agreement(db, since) == agreement_of(standing, since)


def waiting_of(standing: list[Given], since: int) -> Waiting | None:
    lengths = []
    for n, pair in enumerate(PAIRS, 1):
        times = [
            time
            for decision in standing
            if pair in decision.pairs and (time := decision.at * DAY_MS // 2) >= n * DAY_MS
        ]
        if times and times[0] >= since:
            lengths.append(times[0] - n * DAY_MS)
    lengths.sort()
    if not lengths:
        return None
    middle = max(length for length in lengths if sum(other < length for other in lengths) < len(lengths) / 2)
    most = next(length for length in lengths if sum(other <= length for other in lengths) >= 0.9 * len(lengths))
    return Waiting(len(lengths), middle, most)


def agreement_of(standing: list[Given], since: int) -> Agreement:
    same = []
    for pair in PAIRS:
        on_pair = [decision for decision in standing if pair in decision.pairs]
        second = next((decision for decision in on_pair if decision.moderator != on_pair[0].moderator), None)
        if second is not None and second.at * DAY_MS // 2 >= since:
            same.append(second.verdict == on_pair[0].verdict)
    return Agreement(len(same), sum(same))


@settings(deadline=None)
@given(st.lists(st.sampled_from(["open", "withdrawn", *DECIDING]), min_size=3, max_size=3), st.integers(0, 4))
def test_open_and_recent_flags(statuses: list[str], since_day: int) -> None:
    with closing(decided([])) as db:
        for pair, status in zip(PAIRS, statuses, strict=True):
            db.execute("UPDATE flags SET status = ? WHERE a = ? AND b = ?", (status, *pair))
        cases.refresh(db)
        waits = [n * DAY_MS for n, status in enumerate(statuses, 1) if status == "open"]
        oldest = moderation_statistics.oldest_open(db)
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
