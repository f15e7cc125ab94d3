"""Laws: a flag without a verdict is permitted if and only if a permission covers the copy now, whatever came first."""

import sqlite3
from contextlib import closing
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.verify.tiers import TRANSLATED
from neardup.ledger import (
    authors,
    candidates,
    cases,
    meaning_flags,
    now_ms,
    permissions,
    serials,
    stories,
    transaction,
    webhook_events,
)
from neardup.ledger.flags import Selection
from neardup.ledger.meaning_flags import MeaningFlag
from neardup.ledger.permissions import Grant, PermissionFilter, PermissionRefused, Refusal
from neardup.moderation.webhook import LINES
from neardup.records import Fingerprinted, Skip, Skipped, Story, Verdict

from tests.support.builders import commit, fingerprint_of, flag_spans, ledger_in_memory, spans_of
from tests.support.languages import HINDI
from tests.support.sampling import count_examples
from tests.support.verdicts import give_verdict, undo

DAY_MS = 86_400_000
WORK = -(2**62 + 1)
LISTED = {  # by id: the author, when it was published, and its title
    1: ("asha", 10, "The House by the River, part 5"),
    2: ("ravi", 20, "Tale"),
    3: ("meera", 30, None),
    4: ("17", None, "भाग ३"),
    WORK: (None, None, None),
}
PAIRS = [(1, 2), (1, 3), (2, 3), (1, 4), (WORK, 2)]
GRANTS = {  # and the flags that each covers
    Grant("asha"): {(1, 2), (1, 3), (1, 4)},
    Grant("asha", granted_to="ravi"): {(1, 2)},
    Grant("asha", story_id=1, granted_to="17"): {(1, 4)},
    Grant("17", granted_to="asha"): {(1, 4)},  # the order is not known: either may be the copy
    Grant("ravi", granted_to="asha"): set(),  # the earlier story copies nothing
    Grant("ravi", story_id=2): {(2, 3)},
    Grant("asha", serial="the house, by the RIVER", granted_to="ravi"): {(1, 2)},
    Grant("asha", serial="The House"): set(),
    Grant("ravi", serial="77"): {(2, 3)},
    Grant("17", serial="भाग"): {(1, 4)},
    Grant("17", serial="#"): set(),
    Grant(catalogue="old"): {(WORK, 2)},
    Grant(catalogue="old", granted_to="meera"): set(),
}


def listed(story_id: int) -> Story:
    author, published, title = LISTED[story_id]
    catalogue, series = "old" if story_id < 0 else None, "77" if author == "ravi" else None
    return Story(
        story_id, HINDI, author_id=author, title=title, published_at=published, catalogue=catalogue, series_id=series
    )


def filled() -> sqlite3.Connection:
    db = ledger_in_memory()
    commit(db, *(Fingerprinted(listed(n), fingerprint_of(abs(n).to_bytes(16)), None) for n in LISTED))
    return db


def flag_all(db: sqlite3.Connection) -> None:
    for a, b in PAIRS:
        flag_spans(db, a, b, spans_a=spans_of((0, 60)), spans_b=spans_of((0, 60)))


def statuses(db: sqlite3.Connection) -> dict[tuple[int, int], str]:
    return {(a, b): status for a, b, status in db.execute("SELECT a, b, status FROM flags")}


def similar(db: sqlite3.Connection) -> dict[int, float]:
    return dict(db.execute("SELECT story_id, similarity FROM similarities").fetchall())


@settings(deadline=None, max_examples=count_examples(40))
@given(st.lists(st.sampled_from(list(GRANTS)), max_size=3, unique=True), st.sampled_from([None, *PAIRS]))
def test_the_order_of_flags_permissions_and_verdicts_means_nothing(
    granted: list[Grant], judged: tuple[int, int] | None
) -> None:
    def judge(db: sqlite3.Connection) -> None:
        if judged is not None:
            give_verdict(db, [judged], Verdict.PLAGIARISM)

    def permit(db: sqlite3.Connection) -> None:
        for grant in granted:
            permissions.enter(db, grant, "Asha")

    covered = set().union(*(GRANTS[grant] for grant in granted))
    expected = {pair: "permitted" if pair in covered else "open" for pair in PAIRS}
    if judged is not None:
        expected[judged] = "plagiarism"
    shares = set()
    for order in permutations((flag_all, judge, permit)):
        if order.index(flag_all) > order.index(judge):
            continue  # a verdict is on a flag
        with closing(filled()) as db:
            for step in order:
                step(db)
            assert statuses(db) == expected, [step.__name__ for step in order]
            shares.add(tuple(sorted(similar(db).items())))
            for row in permissions.select(db, PermissionFilter(), now_ms()):
                permissions.revoke(db, row["permission_id"], "Ravi")
            assert "permitted" not in statuses(db).values(), "a revoked permission covers a copy"
    assert len(shares) == 1, "the similarity depends on the order"


def test_a_term_is_followed_and_a_permitted_copy_opens_no_case() -> None:
    now = now_ms()
    with closing(filled()) as db:
        flag_all(db)
        permissions.enter(db, Grant("asha", granted_to="ravi", until=now + DAY_MS), "Asha")
        permissions.enter(db, Grant(catalogue="old", since=now + 2 * DAY_MS), "Asha")
        found = {}
        for day in (0, 1, 2, 0):
            permissions.refresh(db, now + day * DAY_MS + 1)
            assert not permissions.is_due(db, now + day * DAY_MS + 1)
            found[day] = [statuses(db)[pair] for pair in ((1, 2), (WORK, 2))]
            cases.refresh(db)
            copies = authors.read_copies(db, "asha")[1]
            assert copies.dismissed == 0, "a permitted copy counts as one with another verdict"
            open_pairs = list(statuses(db).values()).count("open")
            assert cases.count_open_cases(db).pairs == open_pairs, "a permitted pair is open in its case"
        assert found == {0: ["permitted", "open"], 1: ["open", "open"], 2: ["open", "permitted"]}


def test_a_permission_outlives_what_happens_to_its_stories_and_a_verdict_goes_before_it() -> None:
    with closing(filled()) as db:
        permissions.enter(db, Grant("asha", story_id=1, granted_to="ravi"), "Asha")
        flag_all(db)
        decision = give_verdict(db, [(1, 2)], Verdict.PLAGIARISM)
        assert statuses(db)[1, 2] == "plagiarism"
        undo(db, decision)
        assert statuses(db)[1, 2] == "permitted"
        with transaction(db):
            candidates.request_verification(db, PAIRS)
        pending = db.execute("SELECT a, b FROM candidates WHERE verified_at IS NULL").fetchall()
        assert (1, 2) in pending, "a permitted flag is not verified again"
        by_another = Story(1, HINDI, author_id="meera", published_at=10)
        commit(db, Skipped(by_another, Skip.UNCHANGED))
        assert statuses(db)[1, 2] == "open", "an author permits what is another's now"
        commit(db, Skipped(listed(1), Skip.UNCHANGED))
        assert statuses(db)[1, 2] == "permitted"
        commit(db, Skipped(Story(1, HINDI, author_id="asha", published_at=25), Skip.UNCHANGED))
        assert statuses(db)[1, 2] == "open", "the author of the copy needs the permission of the other one"
        stories.forget(db, 1)
        assert not permissions.select(db, PermissionFilter(), now_ms()), "a forgotten story is named still"


def test_the_permission_of_a_serial_follows_its_chapters_and_ends_with_its_term() -> None:
    now = now_ms()
    with closing(filled()) as db:
        permissions.enter(db, Grant("asha", serial="River tales", until=now + DAY_MS), "Asha")
        flag_all(db)
        assert statuses(db)[1, 2] == "open", "a chapter of another serial"
        renamed = Story(1, HINDI, author_id="asha", title="River Tales 7", published_at=10)
        commit(db, Skipped(renamed, Skip.UNCHANGED))
        serials.refresh(db)
        assert statuses(db)[1, 2] == "permitted", "what makes it a chapter was listed later"
        new = Story(5, HINDI, author_id="asha", title="River Tales 8", published_at=5)
        commit(db, Fingerprinted(new, fingerprint_of(bytes(16)), None))
        flag_spans(db, 3, 5)
        assert statuses(db)[3, 5] == "permitted", "a new chapter"
        source = permissions.Source(9, "asha", serial="river tales")
        assert permissions.find_covering(db, source, "ravi", now) and not permissions.find_covering(
            db, source, "asha", now
        )
        webhook_events.subscribe(db, [webhook_events.VERDICTS])
        permissions.refresh(db, now + DAY_MS)
        assert "permitted" not in statuses(db).values()
        posted = webhook_events.claim(db, now_ms())
        assert posted is not None
        event = posted.event
        assert (event["event"], event["serial"], event["stories"]) == ("permission_ended", "River tales", [2, 3, 4])
        said = "neardup: permission 1 of author asha has ended; 3 stories are open again"
        assert LINES[event["event"]](event) == said


@pytest.mark.parametrize(
    ("grant", "reason"),
    [
        (Grant(), Refusal.UNCLEAR),
        (Grant("asha", catalogue="old"), Refusal.UNCLEAR),
        (Grant(story_id=1), Refusal.UNCLEAR),
        (Grant("asha", story_id=1, serial="The House"), Refusal.UNCLEAR),
        (Grant("asha", story_id=99), Refusal.UNKNOWN_STORY),
        (Grant(catalogue="new"), Refusal.UNKNOWN_CATALOGUE),
        (Grant("ravi", story_id=1, granted_to="ravi"), Refusal.NOT_RIGHTS_HOLDER),
        (Grant("asha", granted_to="asha"), Refusal.OWN_TEXT),
        (Grant("a" * 2_001), Refusal.TOO_LONG),
        (Grant("asha", note="a" * 2_001), Refusal.TOO_LONG),
        (Grant("asha", until=1), Refusal.ENDED_TERM),
        (Grant("asha", since=2**42, until=2**42), Refusal.WRONG_TERM),
        (Grant("17", granted_to="asha"), Refusal.DUPLICATE),
        (Grant("17", granted_to="asha", since=2**42), Refusal.DUPLICATE),
    ],
)
def test_a_permission_that_cannot_hold_is_refused_by_name(grant: Grant, reason: Refusal) -> None:
    with closing(filled()) as db:
        flag_all(db)
        kept = permissions.enter(db, Grant("17", granted_to="asha"), "Asha")
        with pytest.raises(PermissionRefused) as refused:
            permissions.enter(db, grant, "Asha")
        assert refused.value.reason == reason
        assert [row["permission_id"] for row in permissions.select(db, PermissionFilter(), now_ms())] == [kept]
        permissions.revoke(db, kept, "Ravi")
        for number, why in ((kept, Refusal.REVOKED), (99, Refusal.UNKNOWN_PERMISSION)):
            with pytest.raises(PermissionRefused) as refused:
                permissions.revoke(db, number, "Ravi")
            assert refused.value.reason == why
        assert permissions.enter(db, Grant("17", granted_to="asha"), "Asha") > kept, "revoked is not the same"


def test_no_query_reads_all_flags_or_permissions() -> None:
    with closing(ledger_in_memory()) as db:
        for query in (
            "SELECT permission_id FROM pairs WHERE flag_id = 1",
            "DELETE FROM permissions WHERE story_id = 1",
        ):
            plan = db.execute(f"EXPLAIN QUERY PLAN {query}").fetchall()
            assert not [step for *_, step in plan if step.startswith("SCAN")], query


@pytest.mark.parametrize("grant", GRANTS)
def test_a_translation_is_permitted_as_a_copy_is(grant: Grant) -> None:
    with closing(filled()) as db:
        hash_of = dict(db.execute("SELECT id, text_hash FROM stories"))
        pairs = [MeaningFlag(a, b, TRANSLATED, 0.4, [], hash_of[a], hash_of[b]) for a, b in PAIRS]
        meaning_flags.put(db, pairs, "m")
        permissions.enter(db, grant, "Asha")
        permitted = meaning_flags.select(db, Selection(statuses=("permitted",)))
        assert {(row["a"], row["b"]) for row in permitted} == GRANTS[grant]
