"""Laws of the postings in memory: keys are found however unevenly hashes are spread, and no filter hides a hash."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.index.passages.tail import Run, find_keys, make_filter, may_hold, put_in_filter

from tests.support.sampling import EXAMPLES

LAST = 2**32 - 1
hashes = st.integers(0, 4) | st.integers(LAST - 4, LAST) | st.integers(0, LAST) | st.integers(2**31, 2**31 + 99)


@given(st.lists(st.tuples(hashes, st.integers(1, LAST)), max_size=60), st.lists(hashes, max_size=30))
def test_a_run_finds_the_keys_of_each_hash(postings: list[tuple[int, int]], wanted: list[int]) -> None:
    held = sorted(set(postings))
    run = Run(np.array([hash_ << 32 | number for hash_, number in held], np.uint64))
    places, counts = run.find(np.array(wanted, np.uint32))
    assert places.tolist() == [sum(other < passage for other, _ in held) for passage in wanted]
    assert counts.tolist() == [sum(other == passage for other, _ in held) for passage in wanted]
    expected = [number for passage in wanted for other, number in held if other == passage]
    assert run.numbers(places, counts).tolist() == expected


@given(st.lists(hashes, max_size=60), st.lists(hashes, max_size=60), st.lists(hashes, max_size=30))
def test_a_filter_may_hold_what_was_put_in_and_nothing_that_differs_much(
    first: list[int], second: list[int], others: list[int]
) -> None:
    filter_ = make_filter()
    for some in (first, second):
        put_in_filter(np.array(some, np.uint32), filter_)
    assert may_hold(filter_, np.array([*first, *second], np.uint32)).all()
    near = {passage >> 5 for passage in (*first, *second)}
    assert may_hold(filter_, np.array(others, np.uint32)).tolist() == [passage >> 5 in near for passage in others]


@pytest.mark.native
@settings(max_examples=EXAMPLES // 2, deadline=None)  # a filter has 16 MB
@given(st.lists(hashes, max_size=300), st.lists(hashes, max_size=60), st.sampled_from([0, 1, 5, 2**32 - 1]))
def test_the_native_core_searches_as_the_references_do(held: list[int], wanted: list[int], number: int) -> None:
    keys, sought = np.sort(np.array(held, np.uint64)) << np.uint64(32) | np.uint64(number), np.array(wanted, np.uint32)
    np.testing.assert_array_equal(find_keys(keys, sought), find_keys.reference(keys, sought))
    filter_, plain = make_filter(), make_filter()
    put_in_filter(np.array(held, np.uint32), filter_)
    put_in_filter.reference(np.array(held, np.uint32), plain)
    assert np.array_equal(filter_, plain), "another filter"
    np.testing.assert_array_equal(may_hold(filter_, sought), may_hold.reference(filter_, sought))
    with pytest.raises(ValueError, match="contradicts"):
        may_hold(filter_[1:], sought)
