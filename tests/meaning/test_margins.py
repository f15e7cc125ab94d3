"""Margins, and the thresholds that a share of the stories without a copy exceeds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.meaning.margins import (
    NEIGHBOURS,
    TYPICAL,
    UNFITTED,
    ExtremeValues,
    background,
    fit_distribution,
    margin,
    thresholds,
)

similarities = st.lists(st.floats(-1, 1), max_size=9)


@given(similarities, st.floats(0.99, 1))
def test_the_background_leaves_a_possible_copy_out(some: list[float], copy: float) -> None:
    others = sorted(some, reverse=True)[:NEIGHBOURS]
    others += [TYPICAL] * (NEIGHBOURS - len(others))
    assert background([copy, *sorted(some, reverse=True)]) == pytest.approx(sum(others) / NEIGHBOURS)


def test_the_margin_is_the_same_from_both_sides() -> None:
    assert margin(0.8, 0.3, 0.1) == pytest.approx(margin(0.8, 0.1, 0.3)) == pytest.approx(0.5)


shapes = st.sampled_from([0.0, 0.1, 0.3])


def random_values(of: ExtremeValues, n: int, seed: int = 1) -> list[float]:
    exponents = np.random.default_rng(seed).exponential(size=n)
    standard = (exponents**-of.shape - 1) / of.shape if of.shape else -np.log(exponents)
    values: list[float] = (of.location + of.scale * standard).tolist()
    return values


@settings(max_examples=20)
@given(st.floats(-0.1, 0.3), st.floats(0.01, 0.1), shapes, st.integers(0, 99))
def test_a_fit_finds_the_distribution_though_some_stories_have_copies(
    location: float, scale: float, shape: float, seed: int
) -> None:
    true = ExtremeValues(location, scale, shape)
    widest = random_values(true, 20_000, seed)
    widest[:400] = [0.9] * 400  # copies: 2 %
    expected = true.exceeded_by(1e-4)
    assert fit_distribution(widest, shape).exceeded_by(1e-4) == pytest.approx(
        expected, abs=0.15 * (expected - location)
    )


@given(st.floats(1e-5, 0.5), st.floats(1e-5, 0.5), shapes)
def test_fewer_false_alarms_need_a_wider_margin(one: float, other: float, shape: float) -> None:
    fitted = ExtremeValues(0.1, 0.05, shape)
    assert (one < other) <= (fitted.exceeded_by(one) > fitted.exceeded_by(other))


@given(st.floats(1e-5, 0.1))
def test_a_longer_tail_needs_a_wider_margin(share: float) -> None:
    margins = [ExtremeValues(0.1, 0.05, shape).exceeded_by(share) for shape in (0.0, 1e-9, 0.1, 0.3)]
    assert margins[0] == pytest.approx(margins[1], rel=1e-6), "a shape near 0 is that of Gumbel"
    assert margins[1:] == sorted(set(margins[1:]))


@pytest.mark.parametrize("shape", [0.0, 0.3])
def test_both_kinds_together_exceed_their_thresholds_as_often_as_asked_for(shape: float) -> None:
    of = ExtremeValues(0.1, 0.05, shape)
    least = thresholds(dict.fromkeys(UNFITTED, of), 0.02)
    stories = zip(*(random_values(of, 100_000, seed) for seed in range(len(least))), strict=True)
    flagged = sum(any(margin > of_kind for margin, of_kind in zip(one, least.values(), strict=True)) for one in stories)
    assert flagged / 100_000 == pytest.approx(0.02, rel=0.15)
