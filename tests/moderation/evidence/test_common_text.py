"""Which text of a story is shown as common: the words that verification leaves out."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.fingerprint.word_hashes import GRAM, WINDOW, sample_grams
from neardup.core.verify.alignment import find_copied
from neardup.ledger import passages
from neardup.ledger.passages import CommonPassage
from neardup.moderation.evidence.story_report import find_common_words

from tests.support.builders import ledger_in_memory
from tests.support.languages import HINDI, TAMIL

REACH = WINDOW + GRAM  # words: more than lie between two samples


def story(seed: int, words: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**64, words, np.uint64)


PRAYER = story(1, 200)


@pytest.fixture(scope="module")
def db() -> Iterator[sqlite3.Connection]:
    """A ledger in which a prayer of 200 words is common in Hindi."""
    with closing(ledger_in_memory()) as db:
        passages.record_common(db, [CommonPassage(HINDI, int(gram), 60, None, 1) for gram in sample_grams(PRAYER)[0]])
        yield db


@settings(deadline=None)
@given(before=st.integers(0, 100), after=st.integers(0, 100), seed=st.integers(2, 99))
def test_prayer_within_a_story_is_common(db: sqlite3.Connection, before: int, after: int, seed: int) -> None:
    own = story(seed, before + after)
    words = np.concatenate((own[:before], PRAYER, own[before:]))
    found = np.flatnonzero(find_common_words(db, HINDI, words))
    assert abs(found[0] - before) < REACH
    assert abs(found[-1] - before - 199) < REACH
    assert len(found) == found[-1] - found[0] + 1
    assert not find_common_words(db, TAMIL, words).any(), "a passage is common in its language"


@given(st.integers(0, 9), st.integers(0, 90), st.integers(0, 90))
def test_text_of_a_span_is_common_where_its_copied_words_are_left_out(
    db: sqlite3.Connection, seed: int, before: int, after: int
) -> None:
    own = story(seed + 9, before + after)
    words = np.concatenate((own[:before], PRAYER, own[before:]))
    found = find_copied(words, words.copy(), passages.read_common(db, HINDI))
    left = np.ones(len(words), bool)
    for start, end in found.spans_a.tolist():
        left[start:end] = False
    assert left.tolist() == find_common_words(db, HINDI, words).tolist()


def test_short_text_has_no_common_passage(db: sqlite3.Connection) -> None:
    for words in range(GRAM):
        assert not find_common_words(db, HINDI, PRAYER[:words]).any()
