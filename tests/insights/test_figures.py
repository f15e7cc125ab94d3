"""Laws of the shares that are shown: Wilson's intervals, and nothing rounded up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.insights.evaluate.figures import Z, share
from neardup.insights.evaluate.tables import decimal

counts = st.integers(0, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(counts)
def test_an_interval_is_where_the_score_test_does_not_reject(found_of: tuple[int, int]) -> None:
    found, n = found_of
    made = share(found, n)
    assert 0 <= made.low <= made.high <= 1
    if n == 0:
        assert made.share is None
        return
    assert made.share is not None
    assert made.low <= made.share <= made.high
    for end in {made.low, made.high} - {0.0, 1.0}:  # Wilson: (p - end)² = z² end (1 - end) / n
        assert (found / n - end) ** 2 == pytest.approx(Z * Z * end * (1 - end) / n, abs=1e-9)


def test_an_interval_that_is_known() -> None:
    ten = share(8, 10)
    assert (round(ten.low, 4), round(ten.high, 4)) == (0.4902, 0.9433)


@given(st.floats(0, 1))
def test_a_share_shown_is_never_rounded_up(value: float) -> None:
    assert float(decimal(value)) <= value + 1e-9
    assert (decimal(value) == "1.000") == (value > 1 - 1e-9)
