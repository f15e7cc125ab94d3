"""Law: a story is known since neardup recorded it, whatever happens to its text, until it is forgotten."""

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.ledger import stories
from neardup.ledger.stories import remove_all
from neardup.records import Skip, Skipped, Story

from tests.support.builders import commit, fingerprinted, ledger_in_memory
from tests.support.languages import HINDI
from tests.support.sampling import count_examples

RECORDED = 1_000


def known_since(db: sqlite3.Connection) -> int | None:
    row = stories.describe(db, [1]).get(1)
    return None if row is None else row["known_since"]


EVENTS = {
    "edited": lambda db: commit(db, fingerprinted(1, 2), fingerprinted(2, 3)),
    "retitled": lambda db: commit(db, Skipped(Story(1, HINDI, title="new"), Skip.UNCHANGED)),
    "emptied": lambda db: commit(db, Skipped(Story(1, HINDI), Skip.EMPTY)),
    "refingerprinted": lambda db: remove_all(db, "v", "e"),
}


@settings(deadline=None, max_examples=count_examples(30))
@given(st.lists(st.sampled_from(sorted(EVENTS)), max_size=5))
def test_known_since_survives_every_change_of_the_story(events: list[str]) -> None:
    with closing(ledger_in_memory()) as db, pytest.MonkeyPatch.context() as patch:
        patch.setattr("neardup.ledger.stories.now_ms", lambda: RECORDED)
        commit(db, fingerprinted(1, 1))
        patch.setattr("neardup.ledger.stories.now_ms", lambda: RECORDED + 7)
        for event in events:
            EVENTS[event](db)
        commit(db, fingerprinted(1, 9), fingerprinted(5, 9))
        assert known_since(db) == RECORDED, events
        assert stories.describe(db, [5])[5]["known_since"] == RECORDED + 7, "a new story is known since it was recorded"
        assert db.execute("SELECT count(*) FROM known_before WHERE story_id = 1").fetchone() == (0,)


def test_forgotten_story_leaves_no_time() -> None:
    with closing(ledger_in_memory()) as db:
        commit(db, fingerprinted(1, 1))
        stories.forget(db, 1)
        assert db.execute("SELECT count(*) FROM known_before").fetchone() == (0,)
