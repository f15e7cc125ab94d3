"""Laws of blind second reviews: kappa is what its definition says, each chosen case is judged once more by another
moderator, and is open again where the two differ.
"""

import sqlite3
from collections import Counter
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.verify.tiers import EXACT
from neardup.errors import Conflict
from neardup.ledger import case_queue, cases, second_reviews, stories, verdicts
from neardup.ledger.case_queue import CaseSelection, Inbox
from neardup.records import DECIDING, Verdict

from tests.support.builders import flag_pair, ledger_in_memory
from tests.support.languages import HINDI, TAMIL
from tests.support.sampling import count_examples
from tests.support.verdicts import give_verdict

verdict_pairs = st.tuples(st.sampled_from(DECIDING[:3]), st.sampled_from(DECIDING[:3]))


@given(st.lists(verdict_pairs, max_size=30))
def test_kappa_follows_its_definition(judged: list[tuple[Verdict, Verdict]]) -> None:
    found = second_reviews.compute_kappa(Counter(judged))
    n = len(judged)
    agreeing = sum(first == second for first, second in judged)
    chance = sum(first == other for first, _ in judged for _, other in judged)  # of all n * n draws of two cases
    if chance == n * n:
        assert found is None
    else:
        assert found is not None
        assert abs(found - (agreeing / n - chance / n**2) / (1 - chance / n**2)) < 1e-9
        assert found <= 1 and (found == 1) == (agreeing == n)


def test_kappa_of_the_standard_example() -> None:
    yes, no = Verdict.PLAGIARISM, Verdict.NOT_SIMILAR
    found = second_reviews.compute_kappa({(yes, yes): 20, (yes, no): 5, (no, yes): 10, (no, no): 15})
    assert found == pytest.approx(0.4), "50 grants, of which two readers agree on 35"


def decided(n: int) -> sqlite3.Connection:
    """A ledger of n cases of a pair each, all decided by Asha, every other one in Tamil."""
    db = ledger_in_memory()
    for a in range(1, 2 * n, 2):
        flag_pair(db, a, a + 1, EXACT, language=TAMIL if a % 4 == 1 else HINDI)
        give_verdict(db, [(a, a + 1)], Verdict.PLAGIARISM)
    cases.refresh(db)
    return db


def test_share_of_the_decided_cases_waits_for_others() -> None:
    with closing(decided(100)) as db:
        every, half, none = (second_reviews.list_waiting(db, share, "Ravi") for share in (1, 0.5, 0))
        assert (len(every), none) == (100, []) and set(half) < set(every)
        assert 35 <= len(half) <= 65, "the share is not that of the configuration"
        assert half == every[: len(half)], "a larger share drops cases"
        assert second_reviews.list_waiting(db, 1, "Asha") == [], "a moderator judges the own verdict"
        assert len(second_reviews.list_waiting(db, 1, "Ravi", [TAMIL])) == 50
        flag_pair(db, 1001, 1002, EXACT)
        cases.refresh(db)
        assert second_reviews.list_waiting(db, 1, "Ravi") == every, "an open case waits"


@settings(deadline=None, max_examples=count_examples(20))
@given(st.lists(st.sampled_from(DECIDING), min_size=4, max_size=4))
def test_cases_on_which_two_differ_are_open_for_a_third(second: list[Verdict]) -> None:
    with closing(decided(4)) as db:
        for case_id, verdict in zip((1, 3, 5, 7), second, strict=True):
            seen = verdicts.identify_state(db, cases.list_flags(db, case_id))
            done = second_reviews.record(db, case_id, verdict, "नोट", "Ravi", seen)
            assert (done is None) == (verdict == Verdict.PLAGIARISM)
            now = verdicts.identify_state(db, cases.list_flags(db, case_id))
            with pytest.raises(Conflict):
                second_reviews.record(db, case_id, verdict, "", "Binu", now)
        cases.refresh(db)
        disputed = {case_id for case_id, verdict in zip((1, 3, 5, 7), second, strict=True) if verdict != "plagiarism"}
        assert {row[0] for row in db.execute("SELECT a FROM flags WHERE status = 'open'")} == disputed
        for moderator, found in (("Chitra", disputed), ("Asha", set()), ("Ravi", set())):
            inbox = CaseSelection(inbox=Inbox.THIRD, moderator=moderator)
            assert set(case_queue.select_ids(db, inbox, limit=9, offset=0)) == found
        assert second_reviews.count_verdicts(db) == Counter((Verdict.PLAGIARISM, verdict) for verdict in second)
        assert second_reviews.list_waiting(db, 1, "Chitra") == []
        stories.forget(db, 1)
        assert second_reviews.read_of_case(db, 1) is None, "what was said of a forgotten story stays"
