"""Law of displayed shares: they are never rounded up."""

from hypothesis import given
from hypothesis import strategies as st
from neardup.insights.evaluate.tables import decimal


@given(st.floats(0, 1))
def test_a_displayed_share_is_never_rounded_up(value: float) -> None:
    assert float(decimal(value)) <= value + 1e-9
    assert (decimal(value) == "1.000") == (value > 1 - 1e-9)
