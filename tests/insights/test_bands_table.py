"""Laws: similarities and shared bands are what comparing every two sets, and every two bands, gives; the table's rows
follow from them.
"""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.fingerprint.minhash import ROWS, signature
from neardup.core.fingerprint.word_hashes import Hashes
from neardup.core.text.normalize import tokens
from neardup.insights.evaluate import bands
from neardup.insights.evaluate.bands import BANDINGS, Tally, bands_shared, character_shingles, similarities, tallies
from neardup.records import Language

from tests.support.languages import SAMPLED, TEXTS

sets = st.lists(st.frozensets(st.integers(0, 40), min_size=1), min_size=1, max_size=8)
signatures = st.lists(st.binary(min_size=ROWS, max_size=ROWS).map(lambda b: bytes(byte % 3 for byte in b)), min_size=1)


def hashes(values: frozenset[int]) -> Hashes:
    return np.array(sorted(values), np.uint64)


@given(sets)
def test_similarities_are_those_of_the_sets(stories: list[frozenset[int]]) -> None:
    want = [[len(a & b) / len(a | b) for b in stories] for a in stories]
    assert similarities([hashes(story) for story in stories]).tolist() == want


def test_similarities_are_summed_over_all_the_shingles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bands, "COLUMNS", 7)
    chance = random.Random(1)
    stories = [frozenset(chance.sample(range(100), 40)) for _ in range(6)]
    want = [[len(a & b) / len(a | b) for b in stories] for a in stories]
    assert similarities([hashes(story) for story in stories]).tolist() == want


@pytest.mark.parametrize("banding", BANDINGS)
@given(signatures)
def test_shared_bands_are_those_whose_rows_all_agree(banding: tuple[int, int, int], made: list[bytes]) -> None:
    count, rows, _ = banding
    assert count * rows <= ROWS
    want = [
        [sum(a[n * rows : (n + 1) * rows] == b[n * rows : (n + 1) * rows] for n in range(count)) for b in made]
        for a in made
    ]
    assert bands_shared(np.array([list(one) for one in made], np.uint8), count, rows).tolist() == want


@pytest.mark.parametrize("language", SAMPLED)
def test_character_shingles_are_the_runs_of_five(language: Language) -> None:
    words = tokens(TEXTS[language])
    text = b" ".join(words).decode()
    assert len(character_shingles(words)) == len({text[n : n + 5] for n in range(len(text) - 4)})
    assert not len(character_shingles([b"abcd"])), "there is none in four characters"


def test_the_table_of_two_copies_and_a_stranger() -> None:
    chance = np.random.default_rng(1)
    story, stranger = (np.unique(chance.integers(0, 2**63, 400, np.uint64)) for _ in range(2))
    copy = np.union1d(story[:-4], chance.integers(0, 2**63, 4, np.uint64))
    short = story[:3]
    assert signature(short) is None
    table = tallies([story, copy, stranger, short], jaccard=0.5)
    assert list(table) == list(BANDINGS)
    assert table[16, 4, 1] == Tally(stories=3, alike=1, candidates=1, found=1), "the copy is found, and nothing else"


def test_a_row_of_the_table() -> None:
    tally = Tally(10, 4, 6, 3) + Tally(10, 2, 2, 2)
    assert tally == Tally(stories=20, alike=6, candidates=8, found=5)
    assert (tally.precision, tally.recall) == (5 / 8, 5 / 6)
    assert tally.f1 == pytest.approx(2 / (8 / 5 + 6 / 5))
    assert tally.candidates_per_lookup == 2 * 8 / 20
    nothing = Tally()
    assert (nothing.precision, nothing.recall, nothing.f1, nothing.candidates_per_lookup) == (None,) * 4
