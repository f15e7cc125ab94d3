"""Laws: a signature holds the least hash of the set of word pairs under each permutation, and agreeing rows estimate
the Jaccard similarity of two such sets.
"""

import random
from itertools import pairwise

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.fingerprint.minhash import (
    ADDENDS,
    MIN_SHINGLES,
    MULTIPLIERS,
    ROWS,
    compute_signature,
    count_agreeing_rows,
    estimate_jaccard,
    hash_shingles,
    stack_signatures,
)
from neardup.core.fingerprint.word_hashes import hash_words
from neardup.core.text.normalize import tokenize
from neardup.records import Language

from tests.support.languages import SAMPLED, TEXTS

WORD = 2**64 - 1
alphabet = [word for text in TEXTS.values() for word in tokenize(text)]
stories = st.lists(st.one_of(st.sampled_from(alphabet), st.binary(min_size=1)), min_size=1, max_size=80)
unhurried = settings(deadline=None)


def mix(x: int) -> int:
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB & WORD
    return x ^ x >> 31


def word_hash(word: bytes) -> int:
    return int.from_bytes(xxhash.xxh3_128_digest(word)[:8], "little")


def shingles_one_by_one(words: list[bytes]) -> list[int]:
    if len(words) == 1:
        return [mix(word_hash(words[0]))]
    return sorted({mix(mix(word_hash(a)) + word_hash(b) & WORD) for a, b in pairwise(words)})


@unhurried
@given(stories)
def test_shingles_are_the_distinct_pairs_of_adjacent_words(words: list[bytes]) -> None:
    assert hash_shingles(hash_words(words).hashes).tolist() == shingles_one_by_one(words)


@unhurried
@given(stories)
def test_a_signature_is_the_least_hash_under_each_permutation(words: list[bytes]) -> None:
    hashes = shingles_one_by_one(words)
    result = compute_signature(hash_shingles(hash_words(words).hashes))
    if len(hashes) < MIN_SHINGLES:
        assert result is None, f"{len(hashes)} shingles are too few for a signature"
        return
    permutations = zip(MULTIPLIERS.tolist(), ADDENDS.tolist(), strict=True)
    expected = bytes(mix(min(a * h + b & WORD for h in hashes)) >> 56 for a, b in permutations)
    assert result == expected
    assert len(expected) == ROWS


def test_the_permutations_are_permutations() -> None:
    assert all(multiplier % 2 for multiplier in MULTIPLIERS.tolist()), "an even multiplier loses a bit"
    assert len(set(MULTIPLIERS.tolist())) == len(set(ADDENDS.tolist())) == ROWS


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_agreeing_rows_estimate_the_jaccard_similarity(share: float) -> None:
    """Over 300 pairs of sets the mean is within five standard errors of what the docstring says."""
    draw = np.random.default_rng(7)
    size, pairs = 400, 300
    common = round(2 * size * share / (1 + share))
    true = common / (2 * size - common)
    rows = []
    for _ in range(pairs):
        both, first, second = np.split(draw.integers(0, 2**64, 3 * size, np.uint64), [common, size + common])
        sets = [np.unique(np.concatenate([both, rest[: size - common]])) for rest in (first, second)]
        rows.append(count_agreeing_rows(*(stack_signatures([compute_signature(hashes)]) for hashes in sets))[0])
    error = 5 * (true * (1 - true) / (ROWS * pairs)) ** 0.5
    assert abs(np.mean([estimate_jaccard(int(n)) for n in rows]) - true) < error + 0.004


def test_estimates_rise_from_0_to_1() -> None:
    assert estimate_jaccard(0) == 0.0
    assert estimate_jaccard(ROWS) == 1.0
    estimates = [estimate_jaccard(n) for n in range(ROWS + 1)]
    assert estimates == sorted(estimates)


@pytest.mark.parametrize("language", SAMPLED)
def test_a_tenth_of_the_words_replaced_leaves_two_thirds_of_the_rows(language: Language) -> None:
    draw = random.Random(language)
    words = [draw.choice(tokenize(TEXTS[language])) + str(draw.randrange(90)).encode() for _ in range(600)]
    edited = [b"other" + word if draw.random() < 0.1 else word for word in words]
    rows = [
        stack_signatures([compute_signature(hash_shingles(hash_words(version).hashes))])
        for version in (words, edited, words[::-1])
    ]
    assert count_agreeing_rows(rows[0], rows[0])[0] == ROWS
    assert count_agreeing_rows(rows[0], rows[1])[0] > ROWS // 2
    assert count_agreeing_rows(rows[0], rows[2])[0] < ROWS // 4, "the order of the words counts"


def test_a_missing_signature_is_a_row_of_zeros() -> None:
    assert stack_signatures([]).shape == (0, ROWS)
    assert stack_signatures([None, b"\x07" * ROWS]).tolist() == [[0] * ROWS, [7] * ROWS]
