"""Law: keys are found where numpy's binary search finds them, however unevenly hashes are spread."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from neardup.index.passages.run_lookup import find_keys

LAST = 2**32 - 1
hashes = st.integers(0, 4) | st.integers(LAST - 4, LAST) | st.integers(0, LAST) | st.integers(2**31, 2**31 + 99)


@given(st.lists(st.tuples(hashes, st.integers(1, LAST)), max_size=60), st.lists(hashes, max_size=30))
def test_keys_are_found_where_a_binary_search_finds_them(postings: list[tuple[int, int]], wanted: list[int]) -> None:
    keys = np.array(sorted({hash_ << 32 | number for hash_, number in postings}), np.uint64)
    places, counts = np.empty(len(wanted), np.int64), np.empty(len(wanted), np.int64)
    find_keys(keys, np.array(wanted, np.uint32), places, counts)
    of_keys = keys >> np.uint64(32)
    assert places.tolist() == np.searchsorted(of_keys, wanted).tolist()
    assert counts.tolist() == [int((of_keys == one).sum()) for one in wanted]
