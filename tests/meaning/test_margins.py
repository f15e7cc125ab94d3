"""The alignment of chunks is monotone, the same both ways, and the best there is; a share of the stories without a copy
exceeds a threshold.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.meaning.codes import Vectors, scale_to_unit
from neardup.meaning.margins import (
    NEIGHBOURS,
    TYPICAL,
    UNFITTED,
    WEIGHTS,
    ExtremeValues,
    align_with_others,
    compute_margin,
    find_thresholds,
    fit_distribution,
    measure_background,
    pair_chunks,
)

from tests.support.sampling import count_examples

lengths = st.integers(1, 3)


def chunks(seed: int, n: int) -> Vectors:
    return scale_to_unit(np.random.default_rng(seed).standard_normal((n, 24)).astype(np.float32))


def best_by_dynamic_programming(cosines: Vectors) -> float:
    best = cosines[0]
    for row in cosines[1:]:
        best = np.maximum.accumulate(best) + row
    return float(best.max()) / len(cosines)


@settings(max_examples=count_examples(30))
@given(st.integers(0, 99), lengths, lengths)
def test_it_is_the_best_monotone_one_both_ways(seed: int, n: int, m: int) -> None:
    a, b = chunks(seed, n), chunks(seed + 100, m)
    found = float(align_with_others(a, b[None])[0])
    cosines = a @ b.T
    both = best_by_dynamic_programming(cosines) + best_by_dynamic_programming(cosines.T)
    assert found == pytest.approx(WEIGHTS[min(n, m)] * (both - float(cosines.mean())), abs=1e-5)
    assert found == pytest.approx(float(align_with_others(b, a[None])[0]), abs=1e-5), "neither story comes first"


def test_a_short_copy_counts_for_less_than_a_long_one() -> None:
    a = chunks(1, 3)
    found = [float(align_with_others(a[:n], a[None, :n])[0]) for n in (1, 2)]
    assert found == pytest.approx([WEIGHTS[1], WEIGHTS[2] * (2 - float((a[:2] @ a[:2].T).mean()))])
    assert found[0] < WEIGHTS[3] == 1


@settings(max_examples=count_examples(30))
@given(st.integers(0, 99), lengths, lengths)
def test_every_chunk_has_a_partner_and_none_goes_back(seed: int, n: int, m: int) -> None:
    a, b = chunks(seed, n), chunks(seed + 100, m)
    pairs = pair_chunks(a, b)
    assert ({pair.a for pair in pairs}, {pair.b for pair in pairs}) == (set(range(n)), set(range(m)))
    for pair in pairs:
        assert pair.cosine == pytest.approx(float(a[pair.a] @ b[pair.b]), abs=1e-3)


def test_chunks_in_another_order_are_less_alike() -> None:
    a = chunks(1, 3)
    in_order, reversed_order = (float(align_with_others(a, other[None])[0]) for other in (a, a[::-1]))
    assert reversed_order < in_order / 2


def test_stories_that_are_alike_throughout_are_less_alike_than_those_in_order() -> None:
    subject = chunks(2, 1)
    on_it = [scale_to_unit(chunks(n, 3) + 1.5 * subject) for n in (3, 4)]
    copy = scale_to_unit(on_it[0] + 0.8 * chunks(5, 3))
    aligned = [float(np.diag(on_it[0] @ other.T).mean()) for other in (copy, on_it[1])]
    found = align_with_others(on_it[0], np.stack([copy, on_it[1]]))
    assert found[0] - found[1] > aligned[0] - aligned[1]


def test_a_story_that_goes_on_is_as_alike_in_what_both_have() -> None:
    a = chunks(1, 3)
    assert [(pair.a, pair.b) for pair in pair_chunks(a, a[:2]) if pair.cosine > 0.99] == [(0, 0), (1, 1)]


similarities = st.lists(st.floats(-1, 1), max_size=9)


@given(similarities, st.floats(0.99, 1))
def test_the_background_leaves_a_possible_copy_out(some: list[float], copy: float) -> None:
    others = sorted(some, reverse=True)[:NEIGHBOURS]
    others += [TYPICAL] * (NEIGHBOURS - len(others))
    assert measure_background([copy, *sorted(some, reverse=True)]) == pytest.approx(sum(others) / NEIGHBOURS)


def test_the_margin_is_the_same_from_both_sides() -> None:
    assert compute_margin(0.8, 0.3, 0.1) == pytest.approx(compute_margin(0.8, 0.1, 0.3)) == pytest.approx(0.5)


shapes = st.sampled_from([0.0, 0.1, 0.3])


def random_values(of: ExtremeValues, n: int, seed: int = 1) -> list[float]:
    exponents = np.random.default_rng(seed).exponential(size=n)
    standard = (exponents**-of.shape - 1) / of.shape if of.shape else -np.log(exponents)
    values: list[float] = (of.location + of.scale * standard).tolist()
    return values


@settings(max_examples=count_examples(20))
@given(st.floats(-0.1, 0.3), st.floats(0.01, 0.1), shapes, st.integers(0, 99))
def test_a_fit_finds_the_distribution_though_some_stories_have_copies(
    location: float, scale: float, shape: float, seed: int
) -> None:
    true = ExtremeValues(location, scale, shape)
    widest = random_values(true, 20_000, seed)
    widest[:400] = [0.9] * 400  # copies: 2 %
    expected = true.find_exceeded(1e-4)
    assert fit_distribution(widest, shape).find_exceeded(1e-4) == pytest.approx(
        expected, abs=0.15 * (expected - location)
    )


@given(st.floats(1e-5, 0.5), st.floats(1e-5, 0.5), shapes)
def test_fewer_false_alarms_need_a_wider_margin(first: float, second: float, shape: float) -> None:
    fitted = ExtremeValues(0.1, 0.05, shape)
    assert (first < second) <= (fitted.find_exceeded(first) > fitted.find_exceeded(second))


@given(st.floats(1e-5, 0.1))
def test_a_longer_tail_needs_a_wider_margin(share: float) -> None:
    margins = [ExtremeValues(0.1, 0.05, shape).find_exceeded(share) for shape in (0.0, 1e-9, 0.1, 0.3)]
    assert margins[0] == pytest.approx(margins[1], rel=1e-6), "a shape near 0 is that of Gumbel"
    assert margins[1:] == sorted(set(margins[1:]))


@pytest.mark.parametrize("shape", [0.0, 0.3])
def test_both_kinds_together_exceed_their_thresholds_as_often_as_asked_for(shape: float) -> None:
    of = ExtremeValues(0.1, 0.05, shape)
    least = find_thresholds(dict.fromkeys(UNFITTED, of), 0.02)
    stories = zip(*(random_values(of, 100_000, seed) for seed in range(len(least))), strict=True)
    flagged = sum(
        any(margin > of_kind for margin, of_kind in zip(story, least.values(), strict=True)) for story in stories
    )
    assert flagged / 100_000 == pytest.approx(0.02, rel=0.15)
