"""The alignment of chunks is monotone, the same both ways, and the best there is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.meaning.codes import Vectors, unit
from neardup.meaning.margins import WEIGHTS, aligned_similarities, chunk_pairs

lengths = st.integers(1, 3)


def chunks(seed: int, n: int) -> Vectors:
    return unit(np.random.default_rng(seed).standard_normal((n, 24)).astype(np.float32))


def best_by_dynamic_programming(cosines: Vectors) -> float:
    best = cosines[0]
    for row in cosines[1:]:
        best = np.maximum.accumulate(best) + row
    return float(best.max()) / len(cosines)


@settings(max_examples=30)
@given(st.integers(0, 99), lengths, lengths)
def test_it_is_the_best_monotone_one_both_ways(seed: int, n: int, m: int) -> None:
    a, b = chunks(seed, n), chunks(seed + 100, m)
    found = float(aligned_similarities(a, b[None])[0])
    cosines = a @ b.T
    both = best_by_dynamic_programming(cosines) + best_by_dynamic_programming(cosines.T)
    assert found == pytest.approx(WEIGHTS[min(n, m)] * (both - float(cosines.mean())), abs=1e-5)
    assert found == pytest.approx(float(aligned_similarities(b, a[None])[0]), abs=1e-5), "neither story comes first"


def test_a_short_copy_counts_for_less_than_a_long_one() -> None:
    a = chunks(1, 3)
    found = [float(aligned_similarities(a[:n], a[None, :n])[0]) for n in (1, 2)]
    assert found == pytest.approx([WEIGHTS[1], WEIGHTS[2] * (2 - float((a[:2] @ a[:2].T).mean()))])
    assert found[0] < WEIGHTS[3] == 1


@settings(max_examples=30)
@given(st.integers(0, 99), lengths, lengths)
def test_every_chunk_has_a_partner_and_none_goes_back(seed: int, n: int, m: int) -> None:
    a, b = chunks(seed, n), chunks(seed + 100, m)
    pairs = chunk_pairs(a, b)
    assert ({one.a for one in pairs}, {one.b for one in pairs}) == (set(range(n)), set(range(m)))
    for one in pairs:
        assert one.cosine == pytest.approx(float(a[one.a] @ b[one.b]), abs=1e-3)


def test_chunks_in_another_order_are_less_alike() -> None:
    a = chunks(1, 3)
    in_order, reversed_order = (float(aligned_similarities(a, other[None])[0]) for other in (a, a[::-1]))
    assert reversed_order < in_order / 2


def test_stories_that_are_alike_throughout_are_less_alike_than_those_in_order() -> None:
    subject = chunks(2, 1)
    on_it = [unit(chunks(n, 3) + 1.5 * subject) for n in (3, 4)]
    copy = unit(on_it[0] + 0.8 * chunks(5, 3))
    aligned = [float(np.diag(on_it[0] @ other.T).mean()) for other in (copy, on_it[1])]
    found = aligned_similarities(on_it[0], np.stack([copy, on_it[1]]))
    assert found[0] - found[1] > aligned[0] - aligned[1]


def test_a_story_that_goes_on_is_as_alike_in_what_both_have() -> None:
    a = chunks(1, 3)
    assert [(one.a, one.b) for one in chunk_pairs(a, a[:2]) if one.cosine > 0.99] == [(0, 0), (1, 1)]
