"""Which text of a story counts as common: what stands between the samples of common passages, but no lone phrase."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.fingerprint.word_hashes import GRAM, WINDOW, sample_grams
from neardup.ledger import passages
from neardup.ledger.passages import CommonPassage
from neardup.moderation.evidence.story_report import common_text

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
        passages.record_common(db, [CommonPassage(HINDI, int(gram), 60, None) for gram in sample_grams(PRAYER)[0]])
        yield db


@settings(deadline=None)
@given(before=st.integers(0, 100), after=st.integers(0, 100), seed=st.integers(2, 99))
def test_prayer_within_a_story_is_common(db: sqlite3.Connection, before: int, after: int, seed: int) -> None:
    own = story(seed, before + after)
    words = np.concatenate((own[:before], PRAYER, own[before:]))
    found = np.flatnonzero(common_text(db, HINDI, words))
    assert before <= found[0] < before + REACH
    assert before + 200 - REACH <= found[-1] < before + 200
    assert len(found) == found[-1] - found[0] + 1
    assert not common_text(db, TAMIL, words).any(), "a passage is common in its language"


def test_lone_phrase_is_not_common(db: sqlite3.Connection) -> None:
    _, places = sample_grams(PRAYER)
    phrase = PRAYER[places[3] : places[3] + GRAM]
    words = np.concatenate((story(5, 60), phrase, story(6, 60)))
    assert not common_text(db, HINDI, words).any()


def test_short_text_has_no_common_passage(db: sqlite3.Connection) -> None:
    for words in range(GRAM + 1):
        assert not common_text(db, HINDI, PRAYER[:words]).any()
