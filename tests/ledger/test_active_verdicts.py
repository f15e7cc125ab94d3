"""Laws: a suppressed pair is flagged again only as something more severe; nothing else is lost."""

import sqlite3
from collections.abc import Iterable
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.verify.tiers import EXACT, NEAR, PARTIAL, list_kinds
from neardup.ledger import candidates, flags, stories, verdicts, verification
from neardup.ledger.flags import Selection
from neardup.ledger.stories import remove_all
from neardup.pipeline.verifier import BEFORE_ALL
from neardup.records import DECIDING, Kind, Skip, Skipped, Story, Verdict

from tests.support.builders import commit, fingerprinted, flag_pair, ledger_in_memory, verify_pending
from tests.support.languages import HINDI
from tests.support.verdicts import add_copies, give_verdict, nominate, undo

SEVERITY = list(list_kinds())
REMEMBERED = (Verdict.NOT_SIMILAR, Verdict.TEMPLATE)


@pytest.fixture
def db() -> Iterable[sqlite3.Connection]:
    db = ledger_in_memory()
    yield db
    db.close()


def statuses(db: sqlite3.Connection) -> dict[tuple[int, int], str]:
    return {(a, b): status for a, b, status in db.execute("SELECT a, b, status FROM flags")}


def edit(db: sqlite3.Connection, story_id: int) -> None:
    """Another text under the same id; nothing is nominated."""
    commit(db, fingerprinted(story_id, 2**64 + story_id))


def kept(db: sqlite3.Connection) -> set[tuple[int, int]]:
    return set(db.execute("SELECT a, b FROM suppressed_pairs"))


@settings(deadline=None)
@given(st.sampled_from(DECIDING), st.sampled_from(list_kinds()), st.sampled_from(list_kinds()))
def test_edit_reopens_a_decided_pair_only_as_more_severe(verdict: Verdict, before: Kind, after: Kind) -> None:
    db = ledger_in_memory()
    flag_pair(db, 1, 2, before)
    give_verdict(db, {(1, 2)}, verdict)
    edit(db, 2)
    assert statuses(db) == {(1, 2): "withdrawn"}
    flag_pair(db, 1, 2, after)
    worse = SEVERITY.index(after) < SEVERITY.index(before)
    assert statuses(db) == {(1, 2): "open" if worse else verdict}
    assert kept(db) == ({(1, 2)} if verdict in REMEMBERED and not worse else set())
    assert [row["context"] for row in flags.select(db)] == [verdict] * worse, (
        "a flag that is shown again has its context"
    )
    [row] = flags.select(db, Selection(statuses=()))
    assert (row["kind"], row["flagged_at"] > 0) == (after, True)
    flags.mark_exported(db, [row["flag_id"]])
    edit(db, 2)
    flag_pair(db, 1, 2, after)
    assert flags.count(db, Selection(statuses=(), only_new=True)) == worse, "what stays judged is no news"
    db.close()


def test_undone_verdict_suppresses_nothing(db: sqlite3.Connection) -> None:
    flag_pair(db, 1, 2)
    decision = give_verdict(db, {(1, 2)}, Verdict.NOT_SIMILAR)
    edit(db, 2)
    flag_pair(db, 1, 2)
    assert verification.count_suppressed(db) == {("HINDI", "not_similar"): 1}
    undo(db, decision)
    assert statuses(db) == {(1, 2): "open"}
    assert verification.count_suppressed(db) == {}
    assert candidates.count_pending(db) == 1, "the flag is verified again: other passages may have become common"


def test_undo_does_not_revive_verdict_on_less_severe_kind(db: sqlite3.Connection) -> None:
    flag_pair(db, 1, 2, PARTIAL)
    give_verdict(db, {(1, 2)}, Verdict.TEMPLATE)
    edit(db, 2)
    flag_pair(db, 1, 2, EXACT)
    undo(db, give_verdict(db, {(1, 2)}, Verdict.PLAGIARISM))
    assert statuses(db) == {(1, 2): "open"}, "no verdict calls the exact copy a template"


@pytest.mark.parametrize("verdict", REMEMBERED)
def test_stories_of_a_decided_cluster_are_not_flagged_together(db: sqlite3.Connection, verdict: Verdict) -> None:
    flag_pair(db, 1, 2)
    flag_pair(db, 2, 3, NEAR)
    decision = give_verdict(db, {(1, 2), (2, 3)}, verdict)
    flag_pair(db, 1, 3, NEAR)
    assert (1, 3) not in statuses(db) and kept(db) == {(1, 3)}
    nominate(db, 1, [3])
    assert candidates.count_pending(db) == 0, "a suppressed pair is not verified again"
    undo(db, decision)
    waiting = [(candidate.a.id, candidate.b.id) for candidate in candidates.list_pending(db, BEFORE_ALL, 9)]
    assert waiting == [(1, 2), (1, 3), (2, 3)], "what is undone is verified again, as is what it suppressed"


def test_copy_more_severe_than_decided_cluster_is_flagged(db: sqlite3.Connection) -> None:
    flag_pair(db, 1, 2)
    flag_pair(db, 2, 3, PARTIAL)
    give_verdict(db, {(1, 2), (2, 3)}, Verdict.TEMPLATE)
    flag_pair(db, 1, 3, NEAR)
    assert statuses(db)[1, 3] == "open" and not kept(db)


def test_single_verdicts_do_not_suppress_other_pairs(db: sqlite3.Connection) -> None:
    flag_pair(db, 1, 2)
    flag_pair(db, 2, 3)
    for pair in ((1, 2), (2, 3)):
        give_verdict(db, {pair}, Verdict.NOT_SIMILAR)
    flag_pair(db, 1, 3)
    assert statuses(db)[1, 3] == "open", "1 and 3 were each compared with 2 only"


def test_new_flag_has_latest_verdict_on_its_stories_as_context(db: sqlite3.Connection) -> None:
    flag_pair(db, 1, 2)
    flag_pair(db, 3, 4)
    first = give_verdict(db, {(1, 2)}, Verdict.PLAGIARISM)
    second = give_verdict(db, {(3, 4)}, Verdict.REPOST)
    flag_pair(db, 2, 3)
    flag_pair(db, 5, 6)
    contexts = {row["story_id"]: (row["context"], row["context_by"]) for row in flags.select(db)}
    assert contexts == {3: ("repost", "Asha"), 6: (None, None)}
    assert verification.count_in_context(db) == {("HINDI", "repost"): 1}
    undo(db, second)
    third = give_verdict(db, {(3, 4)}, Verdict.QUOTATION)
    assert verification.count_in_context(db) == {("HINDI", "plagiarism"): 1}, "an undone verdict is no context"
    undo(db, third)
    undo(db, first)
    assert verification.count_in_context(db) == {}


def test_new_copy_of_a_template_costs_one_flag(db: sqlite3.Connection) -> None:
    add_copies(db, 1, 2, 3)
    give_verdict(db, combinations((1, 2, 3), 2), Verdict.TEMPLATE)
    assert add_copies(db, 4) == 0
    assert [(row["matched_id"], row["story_id"], row["context"]) for row in flags.select(db)] == [(1, 4, "template")]
    assert kept(db) == {(2, 4), (3, 4)}
    nominate(db, 4, [1, 2, 3])
    assert candidates.count_pending(db) == 0, "looked for again, nothing comes of it"


def test_forgotten_story_suppresses_nothing(db: sqlite3.Connection) -> None:
    add_copies(db, 1, 2, 3)
    give_verdict(db, [(1, 2)], Verdict.TEMPLATE)
    assert stories.forget(db, 3)[0]
    add_copies(db, 4)
    assert kept(db) == {(2, 4)}
    assert stories.forget(db, 1)[0]
    verify_pending(db)
    assert statuses(db) == {(2, 4): "open"}, "a story that matched it alone is flagged with another copy"
    assert not kept(db)


def test_refingerprinting_restores_all_statuses(db: sqlite3.Connection) -> None:
    add_copies(db, 1, 2, 3)
    give_verdict(db, combinations((1, 2, 3), 2), Verdict.TEMPLATE)
    add_copies(db, 4, 5)
    give_verdict(db, {(1, 4)}, Verdict.PLAGIARISM)
    before = statuses(db), kept(db)
    remove_all(db, "v2", "")
    assert set(statuses(db).values()) == {"withdrawn"}
    add_copies(db, *range(1, 6))
    assert statuses(db) == before[0]
    assert kept(db) >= before[1]
    assert flags.count(db, Selection(only_new=True)) == flags.count(db)


def test_decided_pairs_are_nominated_again(db: sqlite3.Connection) -> None:
    add_copies(db, 1, 2, 3)
    give_verdict(db, [(1, 2), (1, 3)], Verdict.QUOTATION)
    commit(db, fingerprinted(1, 1))
    assert nominate(db, 1, [2, 3], most=1) == 0
    verify_pending(db)
    assert statuses(db)[1, 2] == statuses(db)[1, 3] == "quotation"


def test_verdict_outlives_the_text_of_its_pair(db: sqlite3.Connection) -> None:
    add_copies(db, 1, 2)
    give_verdict(db, {(1, 2)}, Verdict.REPOST)
    commit(db, Skipped(Story(2, HINDI), Skip.EMPTY))
    assert statuses(db) == {(1, 2): "withdrawn"}
    [counted] = verdicts.count_verdicts(db)
    assert (counted["judged"], counted["repost"]) == (1, 1), "a verdict counts even after the text is gone"
    add_copies(db, 2)
    assert statuses(db) == {(1, 2): "repost"}
