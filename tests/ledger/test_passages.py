"""Laws: every story's number is in the outbox of passage hashes until it is pruned; a removed story's is not live."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from neardup.ledger import passages, stories, versions
from neardup.ledger.passages import CommonPassage
from neardup.ledger.stories import remove_all
from neardup.records import Fingerprinted, Skip, Skipped, Story

from tests.support.builders import commit, fingerprinted, ledger_in_memory
from tests.support.languages import HINDI, TAMIL
from tests.support.sampling import count_examples


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    with closing(ledger_in_memory()) as db:
        yield db


def with_hashes(story_id: int, text: int, *hashes: int) -> Fingerprinted:
    made = fingerprinted(story_id, text)
    data = np.array(hashes, "<u4").tobytes()
    return replace(made, fingerprint=replace(made.fingerprint, passages=data))


def numbers_of(db: sqlite3.Connection) -> list[int]:
    return [row[0] for row in db.execute("SELECT number FROM stories ORDER BY number")]


steps = st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["write", "remove", "forget"])), max_size=12)


@settings(deadline=None, max_examples=count_examples(50))
@given(steps, st.integers(0, 12))
def test_outbox_holds_the_stories_after_the_last_segment(steps: list[tuple[int, str]], last: int) -> None:
    with closing(ledger_in_memory()) as db:
        ever = set[int]()
        for text, (story_id, step) in enumerate(steps, 1):
            match step:
                case "write":
                    commit(db, with_hashes(story_id, text, text, 2**32 - 1))
                    ever.update(numbers_of(db))
                case "remove":
                    commit(db, Skipped(Story(story_id, HINDI), Skip.EMPTY))
                case _:
                    stories.forget(db, story_id)
        numbers = numbers_of(db)
        assert [number for number, _ in passages.list_hashes(db, 0, 99)] == numbers
        assert np.flatnonzero(versions.mask_live_numbers(db)).tolist() == numbers
        assert passages.count_unflushed(db) == len(numbers)
        assert passages.count_gone(db) == len(ever) - len(numbers)
        passages.prune_hashes(db, last)
        assert [number for number, _ in passages.list_hashes(db, 0, 99)] == [n for n in numbers if n > last]


def test_outbox_returns_the_hashes_page_by_page(db: sqlite3.Connection) -> None:
    commit(db, *(with_hashes(n, n, n, 10 * n) for n in range(1, 6)))
    pages, number = [], 0
    while page := passages.list_hashes(db, number, 2):
        pages.append([np.frombuffer(data, "<u4").tolist() for _, data in page])
        number = page[-1][0]
    assert pages == [[[1, 10], [2, 20]], [[3, 30], [4, 40]], [[5, 50]]]


@given(steps, st.lists(st.integers(1, 12), max_size=6))
def test_missing_stories_are_those_of_no_segment_and_not_in_the_outbox(
    steps: list[tuple[int, str]], ends: list[int]
) -> None:
    held = [(n, n) for n in sorted(set(ends))]
    with closing(ledger_in_memory()) as db:
        for text, (story_id, step) in enumerate(steps, 1):
            outcome = fingerprinted(story_id, text) if step == "write" else Skipped(Story(story_id, HINDI), Skip.EMPTY)
            commit(db, outcome)
        in_outbox = {number for number, _ in passages.list_hashes(db, 0, 99)}
        db.execute("DELETE FROM passage_hashes WHERE number % 2")
        lacking = sorted(number for number in in_outbox if number % 2 and (number, number) not in held)
        found = [story for gap in passages.find_gaps(db, held) for story in passages.list_next_missing(db, *gap, 99)]
        assert [story.number for story in found] == lacking
        assert passages.count_missing(db, held) == len(lacking)
        known = stories.read_stored_versions(db, [story.story.id for story in found])
        assert {story.story.id: story.text_hash for story in found} == {
            n: story.text_hash for n, story in known.items()
        }


def test_a_missing_story_has_what_a_reader_needs(db: sqlite3.Connection) -> None:
    commit(db, replace(fingerprinted(7, 1), story=Story(7, TAMIL, "a/7.html")))
    db.execute("DELETE FROM passage_hashes")
    [missing] = passages.list_next_missing(db, 1, 1, 9)
    assert missing.story == Story(7, TAMIL, "a/7.html")


def test_common_passages_keep_the_largest_count_and_the_first_example(db: sqlite3.Connection) -> None:
    commit(db, fingerprinted(1, 1), fingerprinted(2, 2))
    passages.record_common(db, [CommonPassage(HINDI, 9, 51, None, 1), CommonPassage(HINDI, 2**32 - 1, 60, 2, 1)])
    passages.record_common(db, [CommonPassage(HINDI, 9, 40, 1, 1), CommonPassage(TAMIL, 3, 52, None, 1)])
    passages.record_common(db, [CommonPassage(HINDI, 9, 100, 2, 1)])
    assert passages.read_common(db, HINDI).tolist() == [9, 2**32 - 1]
    assert passages.read_common(db, HINDI).dtype == np.uint32
    assert passages.count_common(db) == {HINDI: 2, TAMIL: 1}
    assert passages.map_common_languages(db, np.array([3, 9, 10], np.uint32)) == {3: {TAMIL}, 9: {HINDI}}
    rows = [(row["language"], row["hash"], row["holders"], row["example"]) for row in passages.list_common(db, 2)]
    assert rows == [(HINDI, 9, 100, 1), (HINDI, 2**32 - 1, 60, 2)]


@pytest.mark.parametrize("leave", ["edit", "forget", "restart"])
def test_example_of_a_common_passage_leaves_with_its_text(db: sqlite3.Connection, leave: str) -> None:
    commit(db, with_hashes(1, 1, 9))
    passages.record_common(db, [CommonPassage(HINDI, 9, 51, 1, 1)])
    match leave:
        case "edit":
            commit(db, with_hashes(1, 2, 8))
        case "forget":
            stories.forget(db, 1)
        case _:
            remove_all(db, "v2", "")
    assert [row["example"] for row in passages.list_common(db, 9)] == ([] if leave == "restart" else [None])
    assert len(passages.list_hashes(db, 0, 9)) == (leave == "edit")
