"""Law: what the ledger says of authors is what a plain count of its flags says, whatever was listed again."""

import sqlite3
from collections import Counter
from contextlib import closing
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from neardup.core.verify.tiers import PARTIAL
from neardup.ledger import authors, similarities, story_rows, verdicts
from neardup.records import DECIDING, Fingerprinted, Skip, Skipped, Story, Verdict

from tests.support.builders import commit, fingerprint_of, flag_spans, ledger_in_memory, spans_of
from tests.support.languages import HINDI
from tests.support.sampling import count_examples
from tests.support.verdicts import give_verdict

STORIES = 6
PAIRS = list(combinations(range(1, STORIES + 1), 2))
AUTHORS = ["7", "07", "लेखक", "x' OR 1"]
COPIED = {"open", "plagiarism", "quotation"}

facts = st.tuples(st.none() | st.sampled_from(AUTHORS), st.sampled_from([None, 1, 2, 3]))
listings = st.lists(facts, min_size=STORIES, max_size=STORIES)
flagged = st.dictionaries(st.sampled_from(PAIRS), st.none() | st.sampled_from(DECIDING))
relisted = st.dictionaries(st.integers(1, STORIES), facts, max_size=3)


class Seen(Struct, frozen=True):
    """A flag as the author of `story` sees it."""

    author: str
    story: int
    other: int
    other_author: str | None
    is_later: bool | None
    status: str


def listed(story_id: int, author: str | None, published_at: int | None) -> Story:
    return Story(story_id, HINDI, author_id=author, published_at=published_at, title=f"कहानी {story_id}")


def filled(
    listing: list[tuple[str | None, int | None]], pairs: dict[tuple[int, int], Verdict | None]
) -> sqlite3.Connection:
    db = ledger_in_memory()
    commit(
        db,
        *(Fingerprinted(listed(n, *about), fingerprint_of(n.to_bytes(16)), None) for n, about in enumerate(listing, 1)),
    )
    for pair, verdict in pairs.items():
        flag_spans(db, *pair, PARTIAL, spans_of((0, 10)), spans_of((0, 10)))
        if verdict is not None:
            give_verdict(db, [pair], verdict)
    return db


def seen_by_authors(db: sqlite3.Connection) -> list[Seen]:
    known = story_rows.describe(db, range(1, STORIES + 1))
    found = []
    for a, b, status in db.execute("SELECT a, b, status FROM flags WHERE status <> 'withdrawn'"):
        for story, other in ((a, b), (b, a)):
            author, published = known[story]["author_id"], known[story]["published_at"]
            before = known[other]["published_at"]
            is_later = None if None in (published, before) or published == before else published > before
            if author is not None:
                found.append(Seen(author, story, other, known[other]["author_id"], is_later, status))
    return found


@settings(deadline=None, max_examples=count_examples(60))
@given(listings, flagged, relisted)
def test_authors_are_counted_as_their_flags_are(
    listing: list[tuple[str | None, int | None]],
    pairs: dict[tuple[int, int], Verdict | None],
    again: dict[int, tuple[str | None, int | None]],
) -> None:
    with closing(filled(listing, pairs)) as db:
        commit(db, *(Skipped(listed(n, *about), Skip.UNCHANGED) for n, about in again.items()))
        seen = seen_by_authors(db)
        for author in AUTHORS:
            check_author(db, author, [entry for entry in seen if entry.author == author])
        check_offenders(db, [entry for entry in seen if entry.other_author != entry.author])


def check_author(db: sqlite3.Connection, author: str, seen: list[Seen]) -> None:
    found, foreign = (authors.read_author(db, author), [entry for entry in seen if entry.other_author != author])
    if found is None:
        assert not seen
        return
    later = [entry for entry in foreign if entry.is_later]
    assert found.history == authors.History(
        len({entry.story for entry in later if entry.status == "plagiarism"}),
        len({entry.story for entry in later if entry.status == "open"}),
        sum(entry.is_later is None and entry.status in COPIED for entry in foreign),
    )
    assert found.statuses == Counter(entry.status for entry in foreign)
    check_copies(db, author, foreign)
    own = authors.list_own_pairs(db, author, 99)
    assert found.own_pairs == len(own) == (len(seen) - len(foreign)) / 2
    assert {(row["a"], row["b"]) for row in own} == {
        (entry.story, entry.other) for entry in seen if entry.other_author == author and entry.story < entry.other
    }
    rows = authors.list_other_authors(db, author, 99)
    assert {row["other"]: tuple(row.values())[1:6] for row in rows} == {
        other: (
            sum(entry.other_author == other for entry in foreign),
            len({entry.story for entry in later if entry.other_author == other and entry.status in COPIED}),
            len({
                entry.other
                for entry in foreign
                if entry.other_author == other and entry.is_later is False and entry.status in COPIED
            }),
            sum(entry.other_author == other and entry.is_later is None and entry.status in COPIED for entry in foreign),
            sum(entry.other_author == other and entry.status == "plagiarism" for entry in foreign),
        )
        for other in {entry.other_author for entry in foreign}
    }  # fmt: skip
    for other in (None, *{entry.other_author for entry in foreign}):
        of_other = [entry for entry in foreign if other is None or entry.other_author == other]
        rows = authors.list_flagged_stories(db, author, other, limit=99)
        assert Counter({row["id"]: row["pairs"] for row in rows}) == Counter(entry.story for entry in of_other)
        assert all(row["stories"] == len(rows) for row in rows)
        assert sum(row["later"] for row in rows) == sum(entry.is_later is True for entry in of_other)
        assert sum(row["before"] for row in rows) == sum(entry.is_later is False for entry in of_other)


def check_copies(db: sqlite3.Connection, author: str, foreign: list[Seen]) -> None:
    """The record of an author: each copy counts once, by the worst that is said of it."""
    for is_later, found in zip((True, False), authors.read_copies(db, author), strict=True):
        said: dict[int, set[str]] = {}
        for entry in foreign:
            if entry.is_later is is_later:
                said.setdefault(entry.story if is_later else entry.other, set()).add(entry.status)
        upheld = {story for story, statuses in said.items() if "plagiarism" in statuses}
        undecided = {story for story, statuses in said.items() if "open" in statuses} - upheld
        assert found == authors.Copies(len(upheld), len(undecided), len(said) - len(upheld) - len(undecided))


@settings(deadline=None, max_examples=count_examples(40))
@given(listings, flagged, st.sampled_from(AUTHORS))
def test_undecided_stories_of_an_author_are_hidden_until_they_are_shown(
    listing: list[tuple[str | None, int | None]], pairs: dict[tuple[int, int], Verdict | None], author: str
) -> None:
    with closing(filled(listing, pairs)) as db:
        expected = {
            entry.story
            for entry in seen_by_authors(db)
            if entry.author == author
            and entry.other_author != author
            and entry.status == "open"
            and entry.is_later is not False
        }
        for _ in range(2):
            authors.hide(db, author, "कारण", "Asha")
            assert hidden(db) == expected
            authors.hide(db, author, "again", "Ravi")
            authors.show(db, author, "Ravi")
            assert hidden(db) == set()
            authors.show(db, author, "Asha")
        said = ("कारण", "Asha", "Ravi")
        assert [(row["note"], row["moderator"], row["shown_by"]) for row in authors.list_hidings(db, author)] == [
            said
        ] * 2
        log = [event for event in verdicts.list_events_since(db) if "author" in event]
        assert [(event["event"], event["by"], event["author"], event["note"]) for event in log] == 2 * [
            ("hide", "Asha", author, "कारण"),
            ("show", "Ravi", author, ""),
        ]


def hidden(db: sqlite3.Connection) -> set[int]:
    """The stories that an export and a service call hidden."""
    listed = {row["story_id"] for row in similarities.select(db) if row["hidden"]}
    shown = {n for n in range(1, STORIES + 1) if (found := similarities.read_similarity(db, n)) and found.is_hidden}
    assert listed == shown & {row["story_id"] for row in similarities.select(db)}
    return shown


def check_offenders(db: sqlite3.Connection, seen: list[Seen]) -> None:
    copying = [entry for entry in seen if entry.is_later and entry.status in ("open", "plagiarism")]
    expected = {}
    for author in {entry.author for entry in copying}:
        of_author = [entry for entry in copying if entry.author == author]
        copies = {entry.story for entry in of_author}
        decided = {entry.story for entry in of_author if entry.status == "plagiarism"}
        if len(copies) >= authors.REPEATED:
            expected[author] = (len(copies), len(of_author), len(decided))
    rows = authors.list_repeat_offenders(db, limit=99)
    assert {row["author_id"]: (row["stories"], row["pairs"], row["plagiarism"]) for row in rows} == expected
    order = [(-row["plagiarism"], -row["stories"]) for row in rows]
    assert order == sorted(order), "the most verdicts come first, then the most stories"
    assert all(row["authors"] == len(rows) for row in rows)


def test_edited_story_is_not_counted_until_it_is_flagged_again() -> None:
    with closing(filled([("7", 2), ("8", 1)] * 3, {(1, 2): None})) as db:
        assert authors.read_histories(db, ["7", None]) == {"7": authors.History(open=1)}
        commit(db, Fingerprinted(listed(1, "7", 2), fingerprint_of((99).to_bytes(16)), None))
        assert authors.read_histories(db, ["7"]) == {"7": authors.History()}
        assert authors.read_author(db, "7") is None
