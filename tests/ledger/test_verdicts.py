"""Laws: a flag's status is the active verdict or open; the first verdict on a page counts; the log has each once; each
case chosen for a second review is judged once more by another moderator, and is open again where the two differ; a
suppressed pair is flagged again only as something more severe, and nothing else is lost.
"""

import sqlite3
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from enum import Enum, auto
from itertools import combinations
from pathlib import Path
from sqlite3 import Connection

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from neardup.core.languages import LANGUAGES
from neardup.core.verify.tiers import EXACT, NEAR, PARTIAL, list_kinds
from neardup.errors import Conflict
from neardup.ledger import candidates, case_queue, cases, connect, flags, stories, transaction, verdicts, verification
from neardup.ledger.case_queue import CaseSelection, Inbox
from neardup.ledger.flags import Selection
from neardup.ledger.stories import remove_all
from neardup.pipeline.verifier import BEFORE_ALL
from neardup.records import DECIDING, Kind, Skip, Skipped, Story, Verdict, format_time

from tests.support.builders import commit, fingerprinted, flag_pair, ledger_in_memory, verify_pending
from tests.support.languages import HINDI, TAMIL
from tests.support.sampling import count_examples
from tests.support.verdicts import add_copies, give_verdict, nominate

FLAGS = 4


class Verify(Enum):
    """All open flags are to be verified again, or what is to be verified is, and is no copy any more."""

    REQUEST = auto()
    RECORD = auto()


steps = st.lists(
    st.tuples(st.sets(st.integers(1, FLAGS), min_size=1), st.sampled_from(Verdict))
    | st.integers(0, 9)
    | st.sampled_from(Verify),
    max_size=12,
)


def copies(db: sqlite3.Connection) -> None:
    """Four flags: 2, 3, 4 and 5 copy 1."""
    commit(
        db,
        *(fingerprinted(n, 1, signature=None) for n in range(1, FLAGS + 2)),
        pairs={(1, n) for n in range(2, FLAGS + 2)},
    )
    verify_pending(db)


def judge(db: sqlite3.Connection, flag_ids: set[int], verdict: Verdict, who: str = "Asha", note: str = "") -> int:
    return verdicts.decide(db, sorted(flag_ids), verdict, note, who, verdicts.identify_state(db, flag_ids))


def undo(db: sqlite3.Connection, decision: int, who: str = "Asha") -> None:
    verdicts.undo(db, decision, who, verdicts.identify_state(db, verdicts.list_flags(db, decision)))


def statuses(db: sqlite3.Connection) -> dict[int, str]:
    return dict(db.execute("SELECT flag_id, status FROM flags"))


@settings(deadline=None)
@given(steps)
@example([Verify.REQUEST, ({1}, Verdict.PLAGIARISM), Verify.RECORD])
@example([({1}, Verdict.PLAGIARISM), ({1}, Verdict.REOPENED), 1, Verify.RECORD, 0])
def test_status_is_the_active_verdict_or_open(steps: list[tuple[set[int], Verdict] | int | Verify]) -> None:
    """A flag that is open again is verified again, and withdrawn if it is no copy any more; a decided one is not."""
    db = ledger_in_memory()
    copies(db)
    model: list[tuple[int, set[int], Verdict]] = []  # the decisions that stand
    decisions: list[int] = []
    want, pending, withdrawn = dict.fromkeys(range(1, FLAGS + 1), "open"), set[int](), set[int]()
    for step in steps:
        reopened = set[int]()
        if isinstance(step, Verify):
            if step is Verify.REQUEST:
                candidates.request_verification(db, [(1, n + 1) for n in want])
                pending |= {n for n in want if want[n] == "open"} - withdrawn
            else:
                verification.record(db, [(pair, None) for pair in candidates.list_pending(db, BEFORE_ALL, 99)], "v")
                withdrawn |= {n for n in pending if want[n] == "open"}
                pending = set()
        elif not isinstance(step, int):
            decisions.append(judge(db, *step))
            model.append((decisions[-1], *step))
            reopened = {n for n in step[0] if want[n] != "open"}
        elif step < len(decisions):
            own = {n for decision, judged, _ in model for n in judged if decision == decisions[step]}
            later = [judged for decision, judged, _ in model if decision > decisions[step] and judged & own]
            if later:
                before = statuses(db)
                with pytest.raises(Conflict, match=r"later, at .* Asha judged .*; undo that before"):
                    undo(db, decisions[step])
                assert statuses(db) == before
            elif own:
                undo(db, decisions[step])
                model = [event for event in model if event[0] != decisions[step]]
                reopened = own
            else:
                with pytest.raises(Conflict, match="undone before"):
                    undo(db, decisions[step])
        want = dict.fromkeys(range(1, FLAGS + 1), "open")
        for _, judged, verdict in model:
            want |= dict.fromkeys(judged, verdict.value if verdict in DECIDING else "open")
        pending |= {n for n in reopened if want[n] == "open"} - withdrawn
        assert statuses(db) == want | dict.fromkeys(withdrawn, "withdrawn"), steps
        assert {pair.b.id - 1 for pair in candidates.list_pending(db, BEFORE_ALL, 99)} == pending, steps
        counted = Counter(status for status in want.values() if status != "open")
        rows = verdicts.count_verdicts(db)
        assert [row["kind"] for row in rows] == [EXACT] * bool(counted)
        assert {verdict: row[verdict] for row in rows for verdict in DECIDING if row[verdict]} == counted
        assert sum(row["judged"] for row in rows) == counted.total()
    db.close()


@settings(deadline=None)
@given(st.sets(st.integers(1, FLAGS), min_size=1), st.sets(st.integers(1, FLAGS), min_size=1))
def test_second_verdict_on_an_outdated_page_is_refused(mine: set[int], theirs: set[int]) -> None:
    db = ledger_in_memory()
    copies(db)
    seen = verdicts.identify_state(db, theirs)
    judge(db, mine, Verdict.REPOST)
    before = list(db.iterdump())
    if mine & theirs:
        with pytest.raises(Conflict, match=r"Asha judged repost: stories 1 and [2-5]"):
            verdicts.decide(db, sorted(theirs), Verdict.PLAGIARISM, "", "Binu", seen)
        assert list(db.iterdump()) == before, "a refused verdict writes nothing"
    else:
        verdicts.decide(db, sorted(theirs), Verdict.PLAGIARISM, "", "Binu", seen)
        assert {statuses(db)[n] for n in theirs} == {Verdict.PLAGIARISM}
    db.close()


def test_of_concurrent_verdicts_one_succeeds(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    copies(db := connect(path))
    for _ in range(10):
        seen = verdicts.identify_state(db, [1, 2])
        replies: list[str] = []
        start = threading.Barrier(2)

        def moderate(
            who: str, seen: str = seen, start: threading.Barrier = start, replies: list[str] = replies
        ) -> None:
            mine = connect(path)
            start.wait()
            try:
                verdicts.decide(mine, [1, 2], Verdict.TEMPLATE, who, who, seen)
                replies.append("judged")
            except Conflict as conflict:
                replies.append(str(conflict))
            mine.close()

        moderators = [threading.Thread(target=moderate, args=(who,)) for who in ("Asha", "Binu")]
        for moderator in moderators:
            moderator.start()
        for moderator in moderators:
            moderator.join()
        winner = verdicts.list_of_pair(db, 2, 1)[0]["moderator"]
        assert min(replies) == "judged" and f"{winner} judged template" in max(replies), replies
    assert len(verdicts.list_of_pair(db, 1, 2)) == 10


def test_conflict_names_the_moderator_who_undid() -> None:
    db = ledger_in_memory()
    copies(db)
    decision = judge(db, {1, 2}, Verdict.QUOTATION)
    seen = verdicts.identify_state(db, [1, 2])
    undo(db, decision, "Binu")
    with pytest.raises(Conflict, match="Binu undid the verdict quotation on stories 1 and"):
        verdicts.undo(db, decision, "Asha", seen)


def test_conflict_by_the_program_names_no_moderator() -> None:
    db = ledger_in_memory()
    copies(db)
    judge(db, {1}, Verdict.QUOTATION)
    seen = verdicts.identify_state(db, [1])
    commit(db, fingerprinted(2, 99))  # edited
    with pytest.raises(Conflict, match="these flags have changed meanwhile"):
        verdicts.decide(db, [1], Verdict.REPOST, "", "Binu", seen)
    with pytest.raises(Conflict, match="flagged any more"):
        verdicts.decide(db, [99], Verdict.REPOST, "", "Binu", verdicts.identify_state(db, [99]))
    with pytest.raises(Conflict):
        verdicts.decide(db, [3], Verdict.REPOST, "", "Binu", "no state at all")


def test_history_of_a_pair_is_newest_first() -> None:
    db = ledger_in_memory()
    copies(db)
    first = judge(db, {1}, Verdict.PLAGIARISM, note="word by word")
    second = judge(db, {1, 2}, Verdict.REPOST, who="Binu")
    undo(db, second, "Chitra")
    history = verdicts.list_of_pair(db, 2, 1)
    assert [(row["verdict"], row["note"], row["moderator"], row["undone_by"]) for row in history] == [
        ("repost", "", "Binu", "Chitra"),
        ("plagiarism", "word by word", "Asha", None),
    ]
    assert [row["decision"] for row in history] == [second, first]
    assert history[0]["undone_at"] >= history[0]["decided_at"] >= history[1]["decided_at"]
    assert [row["decision"] for row in verdicts.list_of_pair(db, 1, 3)] == [second], "one decision, a row a pair"


def test_precision_is_by_language_and_decided_kind() -> None:
    db = ledger_in_memory()
    for place, language in enumerate(LANGUAGES):
        flag_pair(db, 10 * place + 1, 10 * place + 2, EXACT, language=language)
        flag_pair(db, 10 * place + 1, 10 * place + 3, PARTIAL, language=language)
    ids = list(statuses(db))
    judge(db, set(ids[::2]), Verdict.PLAGIARISM)
    judge(db, set(ids[1::2]), Verdict.NOT_SIMILAR)
    rows = verdicts.count_verdicts(db)
    assert [(row["language"], row["kind"]) for row in rows] == [
        (language, kind) for language in sorted(LANGUAGES) for kind in (EXACT, PARTIAL)
    ]
    assert {(row["judged"], row["not_similar"], row["plagiarism"]) for row in rows} == {(1, 0, 1), (1, 1, 0)}


def test_forgetting_a_story_removes_its_verdicts() -> None:
    db = ledger_in_memory()
    copies(db)
    judge(db, {1, 2}, Verdict.PLAGIARISM)
    assert stories.forget(db, 2)[0]
    assert verdicts.list_of_pair(db, 1, 2) == []
    assert len(verdicts.list_of_pair(db, 1, 3)) == 1


def test_decision_fails_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    db = ledger_in_memory()
    copies(db)
    before = list(db.iterdump())

    def fail(*_: object) -> None:
        raise RuntimeError("no more")

    monkeypatch.setattr(verdicts, "_update_dependents", fail)
    with pytest.raises(RuntimeError, match="no more"):
        judge(db, {1, 2}, Verdict.PLAGIARISM)
    assert list(db.iterdump()) == before
    with transaction(db):
        pass


def test_every_verdict_can_be_selected_as_status() -> None:
    db = ledger_in_memory()
    copies(db)
    judge(db, {1}, Verdict.NOT_SIMILAR)
    assert [row["flag_id"] for row in flags.select(db)] == [2, 3, 4], "a decided flag is not open"


PAIRS = [(1, 2), (1, 3), (4, 5)]
log_steps = st.lists(st.tuples(st.booleans(), st.sampled_from([(1,), (1, 2), (3,), (1, 2, 3)])), max_size=8)


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


@settings(deadline=None, max_examples=count_examples(40))
@given(log_steps)
def test_log_is_what_happened(done: list[tuple[bool, tuple[int, ...]]]) -> None:
    with closing(filled()) as db, pytest.MonkeyPatch.context() as patch:
        now = clock(patch)
        expected: list[tuple[str, str | None, int, list[tuple[int, int]]]] = []
        standing: list[tuple[int, list[tuple[int, int]]]] = []
        for undoes, flag_ids in done:
            if undoes and standing:
                decision, pairs = standing.pop()
                verdicts.undo(db, decision, "Ravi", verdicts.identify_state(db, verdicts.list_flags(db, decision)))
                expected.append(("undo", format_time(next(now)), decision, pairs))
            else:
                seen = verdicts.identify_state(db, flag_ids)
                decision = verdicts.decide(db, flag_ids, Verdict.TEMPLATE, "नोट", "Asha", seen)
                pairs = sorted(PAIRS[n - 1] for n in flag_ids)
                standing.append((decision, pairs))
                expected.append(("verdict", format_time(next(now)), decision, pairs))
        log = list(verdicts.list_events_since(db))
        assert [
            (entry["event"], entry["at"], entry["decision"], sorted((pair["a"], pair["b"]) for pair in entry["pairs"]))
            for entry in log
        ] == expected
        assert all(entry["by"] == {"undo": "Ravi", "verdict": "Asha"}[entry["event"]] for entry in log)
        assert all((entry["verdict"], entry["note"]) == ("template", "नोट") for entry in log)
        for time in range(0, 10_000, 1_000):
            later = [entry for entry in log if entry["at"] >= (format_time(time) or "")]
            assert list(verdicts.list_events_since(db, time)) == later, "since is a time, inclusive"


verdict_pairs = st.tuples(st.sampled_from(DECIDING[:3]), st.sampled_from(DECIDING[:3]))


@given(st.lists(verdict_pairs, max_size=30))
def test_kappa_follows_its_definition(judged: list[tuple[Verdict, Verdict]]) -> None:
    found = verdicts.compute_kappa(Counter(judged))
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
    found = verdicts.compute_kappa({(yes, yes): 20, (yes, no): 5, (no, yes): 10, (no, no): 15})
    assert found == pytest.approx(0.4), "50 grants, of which two readers agree on 35"


def make_decided_cases(n: int) -> sqlite3.Connection:
    """A ledger of n cases of a pair each, all decided by Asha, every other one in Tamil."""
    db = ledger_in_memory()
    for a in range(1, 2 * n, 2):
        flag_pair(db, a, a + 1, EXACT, language=TAMIL if a % 4 == 1 else HINDI)
        give_verdict(db, [(a, a + 1)], Verdict.PLAGIARISM)
    cases.refresh(db)
    return db


def test_share_of_the_decided_cases_waits_for_others() -> None:
    with closing(make_decided_cases(100)) as db:
        every, half, none = (verdicts.list_cases_to_review(db, share, "Ravi") for share in (1, 0.5, 0))
        assert (len(every), none) == (100, []) and set(half) < set(every)
        assert 35 <= len(half) <= 65, "the share is not that of the configuration"
        assert half == every[: len(half)], "a larger share drops cases"
        assert verdicts.list_cases_to_review(db, 1, "Asha") == [], "a moderator judges the own verdict"
        assert len(verdicts.list_cases_to_review(db, 1, "Ravi", [TAMIL])) == 50
        flag_pair(db, 1001, 1002, EXACT)
        cases.refresh(db)
        assert verdicts.list_cases_to_review(db, 1, "Ravi") == every, "an open case waits"


@settings(deadline=None, max_examples=count_examples(20))
@given(st.lists(st.sampled_from(DECIDING), min_size=4, max_size=4))
def test_cases_on_which_two_differ_are_open_for_a_third(second: list[Verdict]) -> None:
    with closing(make_decided_cases(4)) as db:
        for case_id, verdict in zip((1, 3, 5, 7), second, strict=True):
            seen = verdicts.identify_state(db, cases.list_flags(db, case_id))
            done = verdicts.record_review(db, case_id, verdict, "नोट", "Ravi", seen)
            assert (done is None) == (verdict == Verdict.PLAGIARISM)
            now = verdicts.identify_state(db, cases.list_flags(db, case_id))
            with pytest.raises(Conflict):
                verdicts.record_review(db, case_id, verdict, "", "Binu", now)
        cases.refresh(db)
        disputed = {case_id for case_id, verdict in zip((1, 3, 5, 7), second, strict=True) if verdict != "plagiarism"}
        assert {row[0] for row in db.execute("SELECT a FROM flags WHERE status = 'open'")} == disputed
        for moderator, found in (("Chitra", disputed), ("Asha", set()), ("Ravi", set())):
            inbox = CaseSelection(inbox=Inbox.THIRD, moderator=moderator)
            assert set(case_queue.select_ids(db, inbox, limit=9, offset=0)) == found
        assert verdicts.count_judged_twice(db) == Counter((Verdict.PLAGIARISM, verdict) for verdict in second)
        assert verdicts.list_cases_to_review(db, 1, "Chitra") == []
        stories.forget(db, 1)
        assert verdicts.read_review(db, 1) is None, "what was said of a forgotten story stays"


SEVERITY = list(list_kinds())
REMEMBERED = (Verdict.NOT_SIMILAR, Verdict.TEMPLATE)


@pytest.fixture
def db() -> Iterable[sqlite3.Connection]:
    db = ledger_in_memory()
    yield db
    db.close()


def statuses_of_pairs(db: sqlite3.Connection) -> dict[tuple[int, int], str]:
    return {(a, b): status for a, b, status in db.execute("SELECT a, b, status FROM flags")}


def edit(db: sqlite3.Connection, story_id: int) -> None:
    """Another text under the same id; nothing is nominated."""
    commit(db, fingerprinted(story_id, 2**64 + story_id))


def list_suppressed(db: sqlite3.Connection) -> set[tuple[int, int]]:
    return set(db.execute("SELECT a, b FROM suppressed_pairs"))


@settings(deadline=None)
@given(st.sampled_from(DECIDING), st.sampled_from(list_kinds()), st.sampled_from(list_kinds()))
def test_edit_reopens_a_decided_pair_only_as_more_severe(verdict: Verdict, before: Kind, after: Kind) -> None:
    db = ledger_in_memory()
    flag_pair(db, 1, 2, before)
    give_verdict(db, {(1, 2)}, verdict)
    edit(db, 2)
    assert statuses_of_pairs(db) == {(1, 2): "withdrawn"}
    flag_pair(db, 1, 2, after)
    worse = SEVERITY.index(after) < SEVERITY.index(before)
    assert statuses_of_pairs(db) == {(1, 2): "open" if worse else verdict}
    assert list_suppressed(db) == ({(1, 2)} if verdict in REMEMBERED and not worse else set())
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
    assert statuses_of_pairs(db) == {(1, 2): "open"}
    assert verification.count_suppressed(db) == {}
    assert candidates.count_pending(db) == 1, "the flag is verified again: other passages may have become common"


def test_undo_does_not_revive_verdict_on_less_severe_kind(db: sqlite3.Connection) -> None:
    flag_pair(db, 1, 2, PARTIAL)
    give_verdict(db, {(1, 2)}, Verdict.TEMPLATE)
    edit(db, 2)
    flag_pair(db, 1, 2, EXACT)
    undo(db, give_verdict(db, {(1, 2)}, Verdict.PLAGIARISM))
    assert statuses_of_pairs(db) == {(1, 2): "open"}, "no verdict calls the exact copy a template"


@pytest.mark.parametrize("verdict", REMEMBERED)
def test_stories_of_a_decided_cluster_are_not_flagged_together(db: sqlite3.Connection, verdict: Verdict) -> None:
    flag_pair(db, 1, 2)
    flag_pair(db, 2, 3, NEAR)
    decision = give_verdict(db, {(1, 2), (2, 3)}, verdict)
    flag_pair(db, 1, 3, NEAR)
    assert (1, 3) not in statuses_of_pairs(db) and list_suppressed(db) == {(1, 3)}
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
    assert statuses_of_pairs(db)[1, 3] == "open" and not list_suppressed(db)


def test_single_verdicts_do_not_suppress_other_pairs(db: sqlite3.Connection) -> None:
    flag_pair(db, 1, 2)
    flag_pair(db, 2, 3)
    for pair in ((1, 2), (2, 3)):
        give_verdict(db, {pair}, Verdict.NOT_SIMILAR)
    flag_pair(db, 1, 3)
    assert statuses_of_pairs(db)[1, 3] == "open", "1 and 3 were each compared with 2 only"


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
    assert list_suppressed(db) == {(2, 4), (3, 4)}
    nominate(db, 4, [1, 2, 3])
    assert candidates.count_pending(db) == 0, "looked for again, nothing comes of it"


def test_forgotten_story_suppresses_nothing(db: sqlite3.Connection) -> None:
    add_copies(db, 1, 2, 3)
    give_verdict(db, [(1, 2)], Verdict.TEMPLATE)
    assert stories.forget(db, 3)[0]
    add_copies(db, 4)
    assert list_suppressed(db) == {(2, 4)}
    assert stories.forget(db, 1)[0]
    verify_pending(db)
    assert statuses_of_pairs(db) == {(2, 4): "open"}, "a story that matched it alone is flagged with another copy"
    assert not list_suppressed(db)


def test_refingerprinting_restores_all_statuses(db: sqlite3.Connection) -> None:
    add_copies(db, 1, 2, 3)
    give_verdict(db, combinations((1, 2, 3), 2), Verdict.TEMPLATE)
    add_copies(db, 4, 5)
    give_verdict(db, {(1, 4)}, Verdict.PLAGIARISM)
    before = statuses_of_pairs(db), list_suppressed(db)
    remove_all(db, "v2", "")
    assert set(statuses_of_pairs(db).values()) == {"withdrawn"}
    add_copies(db, *range(1, 6))
    assert statuses_of_pairs(db) == before[0]
    assert list_suppressed(db) >= before[1]
    assert flags.count(db, Selection(only_new=True)) == flags.count(db)


def test_decided_pairs_are_nominated_again(db: sqlite3.Connection) -> None:
    add_copies(db, 1, 2, 3)
    give_verdict(db, [(1, 2), (1, 3)], Verdict.QUOTATION)
    commit(db, fingerprinted(1, 1))
    assert nominate(db, 1, [2, 3], most=1) == 0
    verify_pending(db)
    assert statuses_of_pairs(db)[1, 2] == statuses_of_pairs(db)[1, 3] == "quotation"


def test_verdict_outlives_the_text_of_its_pair(db: sqlite3.Connection) -> None:
    add_copies(db, 1, 2)
    give_verdict(db, {(1, 2)}, Verdict.REPOST)
    commit(db, Skipped(Story(2, HINDI), Skip.EMPTY))
    assert statuses_of_pairs(db) == {(1, 2): "withdrawn"}
    [counted] = verdicts.count_verdicts(db)
    assert (counted["judged"], counted["repost"]) == (1, 1), "a verdict counts even after the text is gone"
    add_copies(db, 2)
    assert statuses_of_pairs(db) == {(1, 2): "repost"}
