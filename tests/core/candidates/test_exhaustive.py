"""Law: the exhaustive comparison finds every pair that is close in Hamming distance or agrees in enough rows."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.candidates.all_pairs import LEAST_ROWS, compare
from neardup.core.candidates.banding import FingerprintArrays

from tests.support.languages import NAMES
from tests.support.sampling import count_examples

HAMMING = 3
# Few values, so that rows and bits of unrelated stories are often equal.
hashes = st.lists(st.sampled_from([0, 1, 128, 255]), min_size=16, max_size=16).map(bytes)
signatures = st.none() | st.integers(0, 12).flatmap(
    lambda n: st.binary(min_size=64 - n, max_size=64 - n).map(lambda rest: bytes(n) + rest)
)
stories = st.lists(st.tuples(hashes, signatures), max_size=12)
Story = tuple[bytes, bytes | None]


def arrays(some: list[Story]) -> FingerprintArrays:
    return FingerprintArrays.of(((n, n, 0, *story) for n, story in enumerate(some)), NAMES)


def agreeing(first: Story, second: Story) -> int:
    a, b = first[1], second[1]
    return 0 if a is None or b is None else sum(x == y for x, y in zip(a, b, strict=True))


@settings(max_examples=count_examples(60))
@given(stories, stories)
def test_every_close_pair_is_found(some: list[Story], others: list[Story]) -> None:
    found = compare(arrays(some), arrays(others), HAMMING)
    expected = {
        (i, k, agreeing(left_story, other))
        for i, left_story in enumerate(some)
        for k, other in enumerate(others)
        if (int.from_bytes(left_story[0]) ^ int.from_bytes(other[0])).bit_count() <= HAMMING
        or agreeing(left_story, other) >= LEAST_ROWS
    }
    columns = (column.tolist() for column in found)
    assert set(zip(*columns, strict=True)) == expected
    assert all(np.issubdtype(column.dtype, np.int64) for column in found)
