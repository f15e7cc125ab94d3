"""Law: whatever moderators open, leave and decide, and whenever, no two of them hold one case."""

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.verify.tiers import EXACT
from neardup.errors import Conflict
from neardup.ledger import cases, verdicts
from neardup.records import Verdict

from tests.support.builders import flag_pair, ledger_in_memory

MODERATORS = ("Asha", "Ravi", "കമല")
case_ids, moderators = st.integers(1, 3), st.sampled_from(MODERATORS)
steps = st.lists(
    st.tuples(st.just("take"), case_ids, moderators)
    | st.tuples(st.just("release"), case_ids, moderators)
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
            assert {n: (one.moderator, one.until) for n, one in cases.leases_held(db, range(1, 4)).items()} == want
    db.close()


def give(db: sqlite3.Connection, verdict: Verdict, moderator: str) -> int:
    return verdicts.decide(db, [1], verdict, "", moderator, verdicts.state(db, [1]))


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
