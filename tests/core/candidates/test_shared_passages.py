"""Law: the pairs are those that a comparison of all pairs finds."""

from collections import Counter
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.candidates.passage_groups import sharing_pairs
from neardup.core.fingerprint.passage_hashes import MIN_SHARED

stories = st.lists(st.sets(st.integers(0, 12) | st.integers(0, 2**32 - 1), max_size=8), max_size=12)


@given(stories, st.integers(1, 6))
def test_the_pairs_are_those_of_all_pairs(drawn: list[set[int]], common: int) -> None:
    holders = Counter(hash_ for hashes in drawn for hash_ in hashes)
    expected = {}
    for (left, one), (right, other) in combinations(enumerate(drawn), 2):
        shared = sum(holders[hash_] <= common for hash_ in one & other)
        if shared >= MIN_SHARED:
            expected[left, right] = shared
    pairs = sharing_pairs([np.array(sorted(one), np.uint32) for one in drawn], common)
    found = zip(*(column.tolist() for column in pairs), strict=True)
    assert {(left, right): shared for left, right, shared in found} == expected
