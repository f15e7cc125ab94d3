"""Laws of the latencies of a run: of what it took itself, and a quantile is right to a step of the histogram."""

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.telemetry.metrics import STAGE_SECONDS, latencies, stage_seconds

STEP = 3.34  # from a bound to the next


@given(st.lists(st.floats(1e-4, 30), min_size=1, max_size=200))
def test_a_quantile_is_right_to_a_step(taken: list[float]) -> None:
    before = stage_seconds()
    for seconds in taken:
        STAGE_SECONDS.labels("look_up").observe(seconds)
    told = latencies(before)
    assert list(told) == ["look_up"], "of this run alone"
    facts, ordered = told["look_up"], sorted(taken)
    assert facts["times"] == len(taken)
    assert facts["seconds"] == pytest.approx(sum(taken), rel=1e-3, abs=1e-5)
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        true = ordered[ceil(share * len(ordered)) - 1]
        assert true / STEP <= facts[name] * 1.01, f"{name} of {ordered}"
        assert facts[name] <= true * STEP * 1.01, f"{name} of {ordered}"


def test_what_takes_longer_than_the_last_bound_is_told_as_that() -> None:
    before = stage_seconds()
    STAGE_SECONDS.labels("commit").observe(1000)
    assert latencies(before)["commit"]["p50"] == 30


def test_a_run_that_did_nothing_took_nothing() -> None:
    assert latencies(stage_seconds()) == {}
