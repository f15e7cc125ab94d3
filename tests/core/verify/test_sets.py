"""Laws: what two sets share is counted as Python's sets do, by the native function and by its reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.verify.sets import count_shared

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
