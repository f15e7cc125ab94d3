"""Laws: what two sets share is counted as Python's sets do, by the native function and by its reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.verify.sets import count_shared, count_shared_apart

numbers = st.frozensets(st.integers(0, 90) | st.sampled_from([2**63, 2**64 - 1]), max_size=90)


@pytest.mark.native
@settings(deadline=None)
@given(numbers, numbers, st.sampled_from([1, 7, 40]))
def test_shared_hashes_are_counted(one: frozenset[int], other: frozenset[int], times: int) -> None:
    """Where a set is many times as large as the other, its elements are searched."""
    larger = other | frozenset(range(100, 100 * times))
    few, many = (np.array(sorted(hashes), np.uint64) for hashes in (one, larger))
    for counts in (count_shared, count_shared.reference):
        assert counts(few, many) == counts(many, few) == len(one & larger)


@pytest.mark.native
@settings(deadline=None)
@given(*[st.frozensets(st.integers(0, 50) | st.just(2**32 - 1), max_size=50)] * 3)
def test_shared_numbers_are_counted_apart_from_others(
    one: frozenset[int], other: frozenset[int], others: frozenset[int]
) -> None:
    a, b, apart = (np.array(sorted(numbers), np.uint32) for numbers in (one, other, others))
    for counts in (count_shared_apart, count_shared_apart.reference):
        assert counts(a, b, apart) == len((one & other) - others)
        assert counts(a, b, apart[:0]) == len(one & other)
