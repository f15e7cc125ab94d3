"""Law of displayed shares: they are never rounded up."""

from hypothesis import given
from hypothesis import strategies as st
from neardup.insights.evaluate.tables import format_decimal


@given(st.floats(0, 1))
def test_a_displayed_share_is_never_rounded_up(value: float) -> None:
    assert float(format_decimal(value)) <= value + 1e-9
    assert (format_decimal(value) == "1.000") == (value > 1 - 1e-9)
