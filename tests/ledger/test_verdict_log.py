"""Law: the log has each verdict and each undo once, in the order of time, with all its pairs."""

import json
from collections.abc import Iterator
from contextlib import closing
from sqlite3 import Connection

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.ledger import verdicts
from neardup.records import Verdict, rfc3339

from tests.support.builders import flag_pair, ledger_in_memory

PAIRS = [(1, 2), (1, 3), (4, 5)]
steps = st.lists(st.tuples(st.booleans(), st.sampled_from([(1,), (1, 2), (3,), (1, 2, 3)])), max_size=8)


def filled() -> Connection:
    db = ledger_in_memory()
    for pair in PAIRS:
        flag_pair(db, *pair)
    return db


def clock(patch: pytest.MonkeyPatch) -> Iterator[int]:
    times = iter(range(1_000, 10**6, 1_000))
    last = [0]

    def tick() -> int:
        last[0] = next(times)
        return last[0]

    patch.setattr("neardup.ledger.verdicts.now_ms", tick)
    return iter(lambda: last[0], None)


@settings(deadline=None, max_examples=40)
@given(steps)
def test_log_is_what_happened(done: list[tuple[bool, tuple[int, ...]]]) -> None:
    with closing(filled()) as db, pytest.MonkeyPatch.context() as patch:
        now = clock(patch)
        expected: list[tuple[str, str | None, int, list[tuple[int, int]]]] = []
        standing: list[tuple[int, list[tuple[int, int]]]] = []
        for undoes, flag_ids in done:
            if undoes and standing:
                decision, pairs = standing.pop()
                verdicts.undo(db, decision, "Ravi", verdicts.state(db, verdicts.flags_of(db, decision)))
                expected.append(("undo", rfc3339(next(now)), decision, pairs))
            else:
                seen = verdicts.state(db, flag_ids)
                decision = verdicts.decide(db, flag_ids, Verdict.TEMPLATE, "नोट", "Asha", seen)
                pairs = sorted(PAIRS[n - 1] for n in flag_ids)
                standing.append((decision, pairs))
                expected.append(("verdict", rfc3339(next(now)), decision, pairs))
        log = [json.loads(verdicts.event_as_json(event)) for event in verdicts.events_since(db)]
        assert [
            (one["event"], one["at"], one["decision"], sorted((pair["a"], pair["b"]) for pair in one["pairs"]))
            for one in log
        ] == expected
        assert all(one["by"] == {"undo": "Ravi", "verdict": "Asha"}[one["event"]] for one in log)
        assert all((one["verdict"], one["note"]) == ("template", "नोट") for one in log)
        for time in range(0, 10_000, 1_000):
            later = [one for one in log if one["at"] >= (rfc3339(time) or "")]
            assert list(verdicts.events_since(db, time)) == later, "since is a time, inclusive"
