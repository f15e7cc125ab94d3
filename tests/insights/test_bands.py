"""Laws: similarities and counts of shared bands equal those of brute-force comparison; the table derives from them."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.fingerprint.minhash import ROWS, signature
from neardup.core.fingerprint.word_hashes import Hashes
from neardup.core.text.normalize import tokens
from neardup.insights.evaluate import bands
from neardup.insights.evaluate.bands import (
    BANDINGS,
    BandingCounts,
    bands_shared,
    character_shingles,
    count_by_banding,
    similarities,
)
from neardup.records import Language

from tests.support.languages import SAMPLED, TEXTS

sets = st.lists(st.frozensets(st.integers(0, 40), min_size=1), min_size=1, max_size=8)
signatures = st.lists(st.binary(min_size=ROWS, max_size=ROWS).map(lambda b: bytes(byte % 3 for byte in b)), min_size=1)


def hashes(values: frozenset[int]) -> Hashes:
    return np.array(sorted(values), np.uint64)


@given(sets)
def test_similarities_are_those_of_the_sets(stories: list[frozenset[int]]) -> None:
    expected = [[len(a & b) / len(a | b) for b in stories] for a in stories]
    assert similarities([hashes(story) for story in stories]).tolist() == expected


def test_similarities_add_up_over_chunks_of_shingles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bands, "COLUMNS", 7)
    rng = random.Random(1)
    stories = [frozenset(rng.sample(range(100), 40)) for _ in range(6)]
    expected = [[len(a & b) / len(a | b) for b in stories] for a in stories]
    assert similarities([hashes(story) for story in stories]).tolist() == expected


@pytest.mark.parametrize("banding", BANDINGS)
@given(signatures)
def test_bands_are_shared_if_all_their_rows_agree(banding: tuple[int, int, int], drawn: list[bytes]) -> None:
    count, rows, _ = banding
    assert count * rows <= ROWS
    expected = [
        [sum(a[n * rows : (n + 1) * rows] == b[n * rows : (n + 1) * rows] for n in range(count)) for b in drawn]
        for a in drawn
    ]
    assert bands_shared(np.array([list(one) for one in drawn], np.uint8), count, rows).tolist() == expected


@pytest.mark.parametrize("language", SAMPLED)
def test_character_shingles_are_runs_of_five_characters(language: Language) -> None:
    words = tokens(TEXTS[language])
    text = b" ".join(words).decode()
    assert len(character_shingles(words)) == len({text[n : n + 5] for n in range(len(text) - 4)})
    assert not len(character_shingles([b"abcd"])), "four characters have no shingle"


def test_the_table_of_two_copies_and_an_unrelated_story() -> None:
    rng = np.random.default_rng(1)
    story, unrelated = (np.unique(rng.integers(0, 2**63, 400, np.uint64)) for _ in range(2))
    copy = np.union1d(story[:-4], rng.integers(0, 2**63, 4, np.uint64))
    short = story[:3]
    assert signature(short) is None
    table = count_by_banding([story, copy, unrelated, short], jaccard=0.5)
    assert list(table) == list(BANDINGS)
    assert table[16, 4, 1] == BandingCounts(stories=3, similar=1, candidates=1, found=1), "only the copy must be found"


def test_a_row_derives_its_measures_from_its_counts() -> None:
    tally = BandingCounts(10, 4, 6, 3) + BandingCounts(10, 2, 2, 2)
    assert tally == BandingCounts(stories=20, similar=6, candidates=8, found=5)
    assert (tally.precision, tally.recall) == (5 / 8, 5 / 6)
    assert tally.f1 == pytest.approx(2 / (8 / 5 + 6 / 5))
    assert tally.candidates_per_lookup == 2 * 8 / 20
    empty = BandingCounts()
    assert (empty.precision, empty.recall, empty.f1, empty.candidates_per_lookup) == (None,) * 4
