"""Laws: what two sets share is counted as Python's sets do, by the native function and by its reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.sets import count_shared_of_pairs, count_uncommon_of_pairs

numbers = st.frozensets(st.integers(0, 90) | st.sampled_from([2**63, 2**64 - 1]), max_size=90)


@pytest.mark.native
@settings(deadline=None)
@given(st.lists(numbers, min_size=2, max_size=4), st.sampled_from([1, 7, 40]))
def test_shared_hashes_of_pairs_are_counted(some: list[frozenset[int]], times: int) -> None:
    """Where a set is many times as large as the other, its elements are searched."""
    sets = [*some[1:], some[0] | frozenset(range(100, 100 * times))]
    pairs = [(a, b, 0) for a in range(len(sets)) for b in range(len(sets))]
    hashes = [np.array(sorted(members), np.uint64) for members in sets]
    for counts in (count_shared_of_pairs, count_shared_of_pairs.reference):
        found = counts(hashes, np.array(pairs, np.int32))
        assert found.tolist() == [len(sets[a] & sets[b]) for a, b, _ in pairs]


@pytest.mark.native
@settings(deadline=None)
@given(*[st.frozensets(st.integers(0, 50) | st.just(2**32 - 1), max_size=50)] * 3)
def test_shared_numbers_are_counted_apart_from_common_ones(
    first: frozenset[int], second: frozenset[int], others: frozenset[int]
) -> None:
    a, b, common = (np.array(sorted(numbers), np.uint32) for numbers in (first, second, others))
    pairs = np.array([[0, 1, 0], [1, 1, 0]], np.int32)
    for counts in (count_uncommon_of_pairs, count_uncommon_of_pairs.reference):
        assert counts([a, b], pairs, common).tolist() == [len((first & second) - others), len(second - others)]
        assert counts([a, b], pairs, common[:0]).tolist() == [len(first & second), len(second)]
