"""Laws: the pairs, and the common hashes, are those that a comparison of all pairs finds; of all pairs of a story, the
best are those that share the most hashes, then have the lowest numbers.
"""

from collections import Counter
from itertools import combinations
from random import Random
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.candidates import passage_groups
from neardup.core.candidates.passage_groups import SharedHashes, choose_best_matches, join_stories
from neardup.core.fingerprint.word_hashes import MIN_SHARED

numbers = st.integers(0, 9)


@given(
    st.dictionaries(st.tuples(numbers, numbers).filter(lambda pair: pair[0] < pair[1]), st.integers(2, 4)),
    st.lists(st.integers(0, 3), min_size=10, max_size=10),
)
def test_the_best_matches(shared: dict[tuple[int, int], int], most: list[int]) -> None:
    pairs = SharedHashes(
        np.array([left for left, _ in shared], np.uint32),
        np.array([right for _, right in shared], np.uint32),
        np.array(list(shared.values()), np.int64),
    )
    limits = np.array([most[right] for _, right in shared], np.int64)
    best = choose_best_matches(pairs, limits)
    expected = [
        (left, story)
        for story in range(10)
        for left, _ in sorted((pair for pair in shared if pair[1] == story), key=lambda pair: (-shared[pair], pair))[
            : most[story]
        ]
    ]
    assert list(zip(pairs.left[best].tolist(), pairs.right[best].tolist(), strict=True)) == expected


stories = st.lists(st.sets(st.integers(0, 12) | st.integers(0, 2**32 - 1), max_size=8), max_size=12)


@given(stories, st.integers(1, 6), st.integers(1, 20), st.randoms())
def test_the_pairs_are_those_of_all_pairs(drawn: list[set[int]], common: int, at_a_time: int, random: Random) -> None:
    holders = Counter(hash_ for hashes in drawn for hash_ in hashes)
    keys = [random.randrange(9) for _ in drawn]  # which stories are copies of each other
    counted = Counter(
        hash_ for hash_, _ in {(hash_, key) for some, key in zip(drawn, keys, strict=True) for hash_ in some}
    )
    expected = {}
    for (left, first), (right, second) in combinations(enumerate(drawn), 2):
        shared = sum(counted[hash_] <= common for hash_ in first & second)
        if shared >= MIN_SHARED:
            expected[left, right] = shared
    hashes, languages = (
        [np.array(sorted(hashes_drawn), np.uint32) for hashes_drawn in drawn],
        random.choices(range(3), k=len(drawn)),
    )
    with patch.object(passage_groups, "PAIRS_AT_A_TIME", at_a_time):
        pairs, common_hashes = join_stories(hashes, np.array(languages, np.uint8), np.array(keys, np.uint32), common)
    found = zip(*(column.tolist() for column in pairs), strict=True)
    assert {(left, right): shared for left, right, shared in found} == expected
    held = {
        (hash_, language): holders[hash_]
        for hashes_drawn, language in zip(drawn, languages, strict=True)
        for hash_ in hashes_drawn
        if counted[hash_] > common
    }
    rows = list(zip(*(column.tolist() for column in common_hashes), strict=True))
    assert {(hash_, languages[example]): n for hash_, n, _, example in rows} == held
    assert all(surplus == counted[hash_] - common for hash_, _, surplus, _ in rows)
