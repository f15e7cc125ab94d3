"""Meaning flags: each pair once, apart from all flags, with verdicts of their own."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from neardup.core.verify.tiers import RETOLD, SIMILAR, TRANSLATED
from neardup.errors import Conflict
from neardup.ledger import cases, flags, meaning_flags, similarities, stories, verdicts
from neardup.ledger.flags import Selection
from neardup.ledger.meaning_flags import ChunkPair, MeaningFlag
from neardup.records import Verdict

from tests.support.builders import commit, fingerprinted, flag_pair, ledger_in_memory
from tests.support.languages import HINDI, TAMIL
from tests.support.sampling import count_examples

STORIES = 6


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    with closing(ledger_in_memory()) as opened:
        commit(opened, *(fingerprinted(n, 100 + n, (HINDI, TAMIL)[n % 2]) for n in range(1, STORIES + 1)))
        yield opened


def found(db: sqlite3.Connection, a: int, b: int, margin: float = 0.4) -> MeaningFlag:
    hash_of = dict(db.execute("SELECT id, text_hash FROM stories"))
    kind = RETOLD if (a - b) % 2 == 0 else TRANSLATED
    return MeaningFlag(a, b, kind, margin, [ChunkPair(0, 0, 0.7)], hash_of[a], hash_of[b])


def queue(db: sqlite3.Connection, selection: Selection = flags.OPEN) -> list[tuple[int, int]]:
    pairs = [(row["a"], row["b"]) for row in meaning_flags.select(db, selection)]
    assert meaning_flags.count(db, selection) == len(pairs)
    return pairs


pairs = st.tuples(st.integers(1, STORIES), st.integers(1, STORIES)).filter(lambda pair: pair[0] < pair[1])


@settings(max_examples=count_examples(25))
@given(st.dictionaries(pairs, st.floats(0.1, 0.9), max_size=8), st.integers(0, 8))
def test_a_search_that_is_repeated_finds_nothing_new(margins: dict[tuple[int, int], float], done: int) -> None:
    with closing(ledger_in_memory()) as db:
        commit(db, *(fingerprinted(n, 100 + n, (HINDI, TAMIL)[n % 2]) for n in range(1, STORIES + 1)))
        every = [found(db, *pair, margin) for pair, margin in margins.items()]
        first = meaning_flags.put(db, every[:done], "m")
        ids = dict(db.execute("SELECT a || '-' || b, flag_id FROM meaning_flags"))
        assert (first + meaning_flags.put(db, every, "m")).total() == len(every)
        assert queue(db) == sorted(margins, key=lambda pair: (-margins[pair], pair)), "the widest margin comes first"
        again = dict(db.execute("SELECT a || '-' || b, flag_id FROM meaning_flags"))
        assert {key: again[key] for key in ids} == ids


def test_no_list_of_flags_and_no_count_has_them(db: sqlite3.Connection) -> None:
    meaning_flags.put(db, [found(db, 1, 2)], "m")
    cases.refresh(db)
    assert not list(flags.select(db))
    assert not list(similarities.select(db))
    assert not db.execute("SELECT * FROM cases").fetchall()
    assert not flags.count_open_flags(db)


def test_a_pair_leaves_the_queue_when_its_words_are_flagged_or_its_text_changes(db: sqlite3.Connection) -> None:
    meaning_flags.put(db, [found(db, 1, 3), found(db, 2, 4), found(db, 1, 2)], "m")
    flag_pair(db, 1, 3, SIMILAR)
    assert (1, 3) not in queue(db)
    assert meaning_flags.find_flagged_by_words(db, {3: [1, 2], 4: [2]}) == {(1, 3)}
    commit(db, fingerprinted(4, 999))
    assert queue(db) == [(1, 2)]
    assert meaning_flags.put(db, [found(db, 2, 4)], "m").total() == 1, "another text is another pair"
    stories.forget(db, 2)
    assert queue(db) == []
    assert not db.execute("SELECT 1 FROM meaning_flags WHERE 2 IN (a, b)").fetchall()


def test_a_verdict_takes_a_pair_out_of_the_queue_and_an_undo_brings_it_back(db: sqlite3.Connection) -> None:
    meaning_flags.put(db, [found(db, 1, 2)], "m")
    decision = meaning_flags.decide(db, 2, 1, Verdict.PLAGIARISM, "", "asha", meaning_flags.identify_state(db, 1, 2))
    assert queue(db) == []
    assert queue(db, Selection(statuses=("plagiarism",))) == [(1, 2)]
    with pytest.raises(Conflict, match="another moderator"):
        meaning_flags.decide(db, 1, 2, Verdict.NOT_SIMILAR, "", "ravi", 0)
    verdicts.undo(db, decision, "asha", verdicts.identify_state(db, verdicts.list_flags(db, decision)))
    assert queue(db) == [(1, 2)]
    with pytest.raises(Conflict, match="another moderator"):
        meaning_flags.decide(db, 1, 2, Verdict.NOT_SIMILAR, "", "ravi", 1)
    meaning_flags.decide(db, 1, 2, Verdict.UNSURE, "", "ravi", meaning_flags.identify_state(db, 1, 2))
    assert queue(db) == [(1, 2)], "a verdict that decides nothing leaves the pair in the queue"
    with pytest.raises(Conflict, match="not flagged"):
        meaning_flags.decide(db, 1, 3, Verdict.PLAGIARISM, "", "asha", 0)


def test_a_verdict_does_not_keep_copies_by_words_from_being_flagged(db: sqlite3.Connection) -> None:
    meaning_flags.put(db, [found(db, 1, 2), found(db, 1, 3)], "m")
    meaning_flags.decide(db, 1, 3, Verdict.NOT_SIMILAR, "", "asha", 0)
    meaning_flags.decide(db, 1, 2, Verdict.TEMPLATE, "", "asha", 0)
    flag_pair(db, 1, 3, SIMILAR)
    assert [(row["matched_id"], row["story_id"]) for row in flags.select(db)] == [(1, 3)]


def test_precision_counts_by_kind_and_bands_of_the_margin(db: sqlite3.Connection) -> None:
    given = {(1, 2): 0.41, (1, 4): 0.44, (1, 3): 0.44, (2, 3): 0.32, (3, 4): 0.31}
    meaning_flags.put(db, [found(db, *pair, margin) for pair, margin in given.items()], "m")
    for pair in ((1, 2), (1, 4), (1, 3)):
        meaning_flags.decide(db, *pair, Verdict.PLAGIARISM, "", "asha", 0)
    meaning_flags.decide(db, 2, 3, Verdict.NOT_SIMILAR, "", "asha", 0)
    rows = [tuple(row.values()) for row in meaning_flags.count_verdicts(db, 0.1)]
    assert rows == [
        (TRANSLATED, pytest.approx(0.4), 2, 2),
        (TRANSLATED, pytest.approx(0.3), 1, 0),
        (RETOLD, pytest.approx(0.4), 1, 1),
    ]


def test_filters_match_either_story(db: sqlite3.Connection) -> None:
    meaning_flags.put(db, [found(db, 1, 2), found(db, 1, 3, 0.3), found(db, 4, 5, 0.2)], "m")
    everything = Selection()
    assert queue(db, replace(everything, languages=(HINDI,))) == [(1, 2), (4, 5)]
    assert queue(db, replace(everything, kinds=(RETOLD,))) == [(1, 3)]
    assert queue(db, replace(everything, story=1)) == [(1, 2), (1, 3)]
    meaning_flags.mark_exported(db, [row["flag_id"] for row in meaning_flags.select(db, Selection(story=1))])
    assert queue(db, replace(everything, only_new=True)) == [(4, 5)]


def test_pairs_below_the_threshold_of_their_kind_are_removed_unless_they_have_a_verdict(db: sqlite3.Connection) -> None:
    retold, translated = [(1, 3), (2, 4), (3, 5)], [(1, 2), (2, 3), (3, 4)]
    margins = (0.4, 0.2, 0.1)
    for pairs_of_kind in (retold, translated):
        meaning_flags.put(db, [found(db, *ids, width) for ids, width in zip(pairs_of_kind, margins, strict=True)], "m")
    meaning_flags.decide(db, 3, 5, Verdict.PLAGIARISM, "", "asha", 0)
    assert meaning_flags.remove_below(db, {RETOLD: 0.3, TRANSLATED: 0.15}) == 2
    assert queue(db) == [(1, 2), (1, 3), (2, 3)]
    assert queue(db, Selection(statuses=("plagiarism",))) == [(3, 5)]


def test_new_pairs_of_one_author_count_where_they_are_kept(db: sqlite3.Connection) -> None:
    db.execute("UPDATE stories SET author_id = 'asha' WHERE id IN (1, 2)")
    every = [found(db, 1, 2), found(db, 1, 3)]
    assert meaning_flags.put(db, every, "m", same_author=False) == {RETOLD: 1}
    assert queue(db) == [(1, 3)]
    assert queue(db, Selection(same_author=True)) == [(1, 2), (1, 3)]
