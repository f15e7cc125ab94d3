"""Laws: packing spans loses nothing; a union has the same words, each once."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from neardup.ledger.similarities import pack_spans, union_of_spans, unpack_spans, words_in
from neardup.records import Spans

bounds = st.tuples(st.integers(0, 2**20), st.integers(1, 400)).map(lambda run: (run[0], run[0] + run[1]))
many = st.lists(bounds, max_size=30).map(lambda spans: np.array(spans, np.int32).reshape(-1, 2))
few_words = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), max_size=12).map(
    lambda runs: np.array([(start, start + words) for start, words in runs], np.int32).reshape(-1, 2)
)


def words_of(spans: Spans) -> set[int]:
    return {word for start, end in spans.tolist() for word in range(start, end)}


@given(many)
def test_packing_loses_nothing_in_any_order(spans: Spans) -> None:
    data = pack_spans(spans)
    assert np.array_equal(unpack_spans(data), spans) and unpack_spans(data).dtype == np.int32
    assert (data is None) == (not len(spans)) and len(data or b"") <= 7 * len(spans)


@given(few_words)
def test_union_has_the_same_words_once(spans: Spans) -> None:
    joined = union_of_spans(spans)
    assert words_of(joined) == words_of(spans)
    flat = joined.ravel().tolist()
    assert flat == sorted(set(flat)), "spans of a union neither overlap nor touch"
    assert words_in(spans) == len(words_of(spans))
