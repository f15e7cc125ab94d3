"""Law: of all pairs of a story, the best are those that share the most hashes, then have the lowest ids."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.candidates.passage_groups import SharedHashes, best_matches

numbers = st.integers(0, 9)


@given(
    st.dictionaries(st.tuples(numbers, numbers).filter(lambda pair: pair[0] < pair[1]), st.integers(2, 4)),
    st.permutations(range(10)),
    st.lists(st.integers(0, 3), min_size=10, max_size=10),
)
def test_the_best_matches(shared: dict[tuple[int, int], int], ids: list[int], most: list[int]) -> None:
    pairs = SharedHashes(
        np.array([left for left, _ in shared], np.uint32),
        np.array([right for _, right in shared], np.uint32),
        np.array(list(shared.values()), np.int64),
    )
    limits = np.array([most[right] for _, right in shared], np.int64)
    best = best_matches(pairs, np.array(ids, np.int64), limits)
    expected = [
        (left, story)
        for story in range(10)
        for left, _ in sorted(
            (pair for pair in shared if pair[1] == story), key=lambda pair: (-shared[pair], ids[pair[0]])
        )[: most[story]]
    ]
    assert list(zip(pairs.left[best].tolist(), pairs.right[best].tolist(), strict=True)) == expected
