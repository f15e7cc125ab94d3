"""Laws of Wilson score intervals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.intervals import Z, estimate_share

counts = st.integers(0, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(counts)
def test_the_ends_of_an_interval_solve_wilsons_equation(found_of: tuple[int, int]) -> None:
    found, n = found_of
    computed = estimate_share(found, n)
    assert 0 <= computed.low <= computed.high <= 1
    if n == 0:
        assert computed.share is None
        return
    assert computed.share is not None
    assert computed.low <= computed.share <= computed.high
    for end in {computed.low, computed.high} - {0.0, 1.0}:  # Wilson: (p - end)² = z² end (1 - end) / n
        assert (found / n - end) ** 2 == pytest.approx(Z * Z * end * (1 - end) / n, abs=1e-9)


def test_a_known_interval() -> None:
    interval = estimate_share(8, 10)
    assert (round(interval.low, 4), round(interval.high, 4)) == (0.4902, 0.9433)


@given(counts)
def test_a_wider_interval_holds_a_narrower_one(found_of: tuple[int, int]) -> None:
    narrow, wide = estimate_share(*found_of), estimate_share(*found_of, z=2 * Z)
    assert wide.low <= narrow.low <= narrow.high <= wide.high
