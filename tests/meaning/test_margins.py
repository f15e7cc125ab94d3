"""Margins, and the threshold that a share of the stories without a copy exceeds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.meaning.margins import NEIGHBOURS, TYPICAL, Gumbel, background, fit, margin

similarities = st.lists(st.floats(-1, 1), max_size=9)


@given(similarities, st.floats(0.99, 1))
def test_the_background_leaves_a_possible_copy_out(some: list[float], copy: float) -> None:
    others = sorted(some, reverse=True)[:NEIGHBOURS]
    others += [TYPICAL] * (NEIGHBOURS - len(others))
    assert background([copy, *sorted(some, reverse=True)]) == pytest.approx(sum(others) / NEIGHBOURS)


def test_the_margin_is_the_same_from_both_sides() -> None:
    assert margin(0.8, 0.3, 0.1) == pytest.approx(margin(0.8, 0.1, 0.3)) == pytest.approx(0.5)


@settings(max_examples=10)
@given(st.floats(-0.1, 0.3), st.floats(0.01, 0.1), st.integers(0, 99))
def test_a_fit_finds_the_distribution_though_some_stories_have_copies(location: float, scale: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    widest = random.gumbel(location, scale, 20_000)
    widest[:400] = 0.9  # copies: 2 %
    fitted = fit(widest.tolist())
    expected = Gumbel(location, scale).exceeded_by(1e-4)
    assert fitted.exceeded_by(1e-4) == pytest.approx(expected, abs=scale)


@given(st.floats(1e-5, 0.5), st.floats(1e-5, 0.5))
def test_fewer_false_alarms_need_a_wider_margin(one: float, other: float) -> None:
    fitted = Gumbel(0.1, 0.05)
    assert (one < other) <= (fitted.exceeded_by(one) > fitted.exceeded_by(other))


def test_the_share_that_exceeds_the_threshold_is_the_one_asked_for() -> None:
    widest = np.random.default_rng(1).gumbel(0.1, 0.05, 100_000)
    assert float(np.mean(widest > Gumbel(0.1, 0.05).exceeded_by(0.01))) == pytest.approx(0.01, rel=0.15)
