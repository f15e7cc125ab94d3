"""Law: those shared are what counting each number gives, whatever the buckets, and with or without chance meetings."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.candidates.shared_buckets import shared_by

numbers = st.one_of(st.integers(0, 30), st.integers(0, 2**32 - 1))
buckets = st.lists(st.sets(numbers, max_size=40), min_size=1, max_size=8)


@settings(deadline=None)
@given(buckets, st.integers(1, 4), st.data())
def test_those_who_stand_in_enough_of_the_buckets_are_found(
    buckets: list[set[int]], least: int, data: st.DataObject
) -> None:
    k = data.draw(st.integers(0, 5), "buckets a story")
    asked = data.draw(st.lists(st.permutations(range(len(buckets))).map(lambda order: order[:k]), max_size=4), "asked")
    k = min(k, len(buckets))
    members = np.array([number for bucket in buckets for number in sorted(bucket)], np.uint32)
    edges = np.cumsum([0, *map(len, buckets)])
    found, ends = shared_by(members, edges, np.array(asked, np.int64).reshape(len(asked), k), least)
    for story, mine in enumerate(asked):
        count = Counter(number for bucket in mine for number in buckets[bucket])
        want = sorted(number for number, n in count.items() if n >= least)
        assert found[ends[story] : ends[story + 1]].tolist() == want


@pytest.mark.parametrize("least", [1, 2, 3])
def test_large_buckets_are_counted_exactly(least: int) -> None:
    rng = np.random.default_rng(least)
    buckets = [rng.choice(20_000, 3000, replace=False).astype(np.uint32) for _ in range(12)]
    edges = np.arange(13) * 3000
    found, ends = shared_by(np.concatenate(buckets), edges, np.arange(12).reshape(2, 6), least)
    for story in range(2):
        count = np.bincount(np.concatenate(buckets[6 * story : 6 * story + 6]))
        assert found[ends[story] : ends[story + 1]].tolist() == np.flatnonzero(count >= least).tolist()
