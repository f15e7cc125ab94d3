"""Laws: a run's latencies are of this run only, and a quantile is exact to one histogram bucket."""

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.telemetry.metrics import STAGE_SECONDS, latencies, stage_seconds

STEP = 3.34  # the largest ratio of two neighbouring bounds


@given(st.lists(st.floats(1e-4, 30), min_size=1, max_size=200))
def test_a_quantile_is_exact_to_one_bucket(taken: list[float]) -> None:
    before = stage_seconds()
    for seconds in taken:
        STAGE_SECONDS.labels("look_up").observe(seconds)
    measured = latencies(before)
    assert list(measured) == ["look_up"], "only the stages of this run"
    facts, ordered = measured["look_up"], sorted(taken)
    assert facts["times"] == len(taken)
    assert facts["seconds"] == pytest.approx(sum(taken), rel=1e-3, abs=1e-5)
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        true = ordered[ceil(share * len(ordered)) - 1]
        assert true / STEP <= facts[name] * 1.01, f"{name} of {ordered}"
        assert facts[name] <= true * STEP * 1.01, f"{name} of {ordered}"


def test_times_beyond_the_last_bound_count_as_that_bound() -> None:
    before = stage_seconds()
    STAGE_SECONDS.labels("commit").observe(1000)
    assert latencies(before)["commit"]["p50"] == 30


def test_a_run_without_stages_has_no_latencies() -> None:
    assert latencies(stage_seconds()) == {}
