"""Law: the shared numbers are those that counting each number gives, with or without hash collisions."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.candidates.bucket_join import find_shared

numbers = st.one_of(st.integers(0, 30), st.integers(0, 2**32 - 1))
buckets = st.lists(st.sets(numbers, max_size=40), min_size=1, max_size=8)


@settings(deadline=None)
@given(buckets, st.integers(1, 4), st.data())
def test_numbers_in_enough_buckets_are_found(buckets: list[set[int]], least: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, 5), "buckets per lookup")
    lookups = data.draw(
        st.lists(st.permutations(range(len(buckets))).map(lambda order: order[:k]), max_size=4), "lookups"
    )
    k = min(k, len(buckets))
    members = np.array([number for bucket in buckets for number in sorted(bucket)], np.uint32)
    edges = np.cumsum([0, *map(len, buckets)])
    found, ends = find_shared(members, edges, np.array(lookups, np.int64).reshape(len(lookups), k), least)
    for n, lookup in enumerate(lookups):
        count = Counter(number for bucket in lookup for number in buckets[bucket])
        expected = sorted(number for number, times in count.items() if times >= least)
        assert found[ends[n] : ends[n + 1]].tolist() == expected


@pytest.mark.parametrize("least", [1, 2, 3])
def test_large_buckets_are_counted_exactly(least: int) -> None:
    rng = np.random.default_rng(least)
    buckets = [rng.choice(20_000, 3000, replace=False).astype(np.uint32) for _ in range(12)]
    edges = np.arange(13) * 3000
    found, ends = find_shared(np.concatenate(buckets), edges, np.arange(12).reshape(2, 6), least)
    for n in range(2):
        count = np.bincount(np.concatenate(buckets[6 * n : 6 * n + 6]))
        assert found[ends[n] : ends[n + 1]].tolist() == np.flatnonzero(count >= least).tolist()
