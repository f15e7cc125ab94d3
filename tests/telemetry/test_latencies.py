"""Laws: a run's latencies include that run only, and a quantile is exact to one histogram bucket."""

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.telemetry.metrics import STAGE_SECONDS, measure_latencies, read_stage_seconds

MAX_RATIO = 3.34  # the largest ratio of two neighbouring bounds


@given(st.lists(st.floats(1e-4, 30), min_size=1, max_size=200))
def test_a_quantile_is_exact_to_one_bucket(durations: list[float]) -> None:
    before = read_stage_seconds()
    for seconds in durations:
        STAGE_SECONDS.labels("look_up").observe(seconds)
    measured = measure_latencies(before)
    assert list(measured) == ["look_up"], "a stage of another run is included"
    facts, ordered = measured["look_up"], sorted(durations)
    assert facts["times"] == len(durations)
    assert facts["seconds"] == pytest.approx(sum(durations), rel=1e-3, abs=1e-5)
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        true = ordered[ceil(share * len(ordered)) - 1]
        assert true / MAX_RATIO <= facts[name] * 1.01, f"{name} of {ordered}"
        assert facts[name] <= true * MAX_RATIO * 1.01, f"{name} of {ordered}"


def test_times_beyond_the_last_bound_count_as_that_bound() -> None:
    before = read_stage_seconds()
    STAGE_SECONDS.labels("commit").observe(1000)
    assert measure_latencies(before)["commit"]["p50"] == 30


def test_a_run_without_stages_has_no_latencies() -> None:
    assert measure_latencies(read_stage_seconds()) == {}
