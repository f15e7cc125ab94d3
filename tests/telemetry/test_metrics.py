"""Metrics are declared in neardup.telemetry.metrics only, and keep the names that dashboards use.

The golden file holds what `neardup run` returns after its first run on the samples: name, type and help of each metric,
and all values but zeros.  Times, bytes, numbers of batches, and of candidates that a lookup finds vary between runs, so
the file has * in their place.

A run's latencies include that run only, and it serves /metrics until its process ends.  The event of a log line is a
constant, by which lines are counted; what varies is in its keys.
"""

import ast
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from difflib import unified_diff
from functools import partial
from math import ceil
from pathlib import Path

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.http.server import serve_metrics
from neardup.telemetry import metrics
from neardup.telemetry.metrics import STAGE_SECONDS, Metric, measure_latencies, observe_all, read_stage_seconds
from prometheus_client import Histogram
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.support.command import Neardup
from tests.support.paths import ROOT
from tests.support.servers import free_port
from tests.support.service import get, running

GOLDEN = Path(__file__).with_name("metrics.golden")


BATCH_STAGES = "look_up|look_up_passages|nominate|commit|index|verify"
VOLATILE = re.compile(
    rf'neardup_(stage_seconds|candidates)_sum|neardup_stage_seconds_count{{stage="({BATCH_STAGES})"}}'
    r"|\w+_bytes|\w+_timestamp_seconds"
)
LEFT_OUT = re.compile(
    r"neardup_canary_recall|neardup_stage_seconds_bucket|neardup_candidates_bucket|neardup_waiting|neardup_requests_in_flight_limit|\w+_created"
)


def masked(text: str) -> list[str]:
    """The lines of /metrics, family by family, each with its values in order."""
    lines: list[str] = []
    for family in text_string_to_metric_families(text):
        if family.name.startswith("neardup_") and not family.name.endswith("_created"):
            suffix = "_total" if family.type == "counter" else ""
            lines += [
                f"# HELP {family.name}{suffix} {family.documentation}",
                f"# TYPE {family.name}{suffix} {family.type}",
            ]
            lines += sorted(filter(None, map(masked_sample, family.samples)))
    return lines


def masked_sample(sample: Sample) -> str | None:
    labels = ",".join(f'{name}="{value}"' for name, value in sample.labels.items())
    name = f"{sample.name}{{{labels}}}" if labels else sample.name
    if LEFT_OUT.match(name) or not sample.value:
        return None
    return f"{name} {'*' if VOLATILE.match(name) else sample.value}"


def test_the_metrics_of_a_run_are_the_golden_ones(neardup: Neardup) -> None:
    listen = f"127.0.0.1:{free_port()}"
    with running(neardup, listen) as (_, systemd):
        systemd.wait_for("STATUS=next run at")
        _, text = get(listen, "metrics")
    lines = masked(text)
    assert lines == GOLDEN.read_text().splitlines(), "\n".join(unified_diff(GOLDEN.read_text().splitlines(), lines))
    assert "process_resident_memory_bytes" in text


async def test_health_answers_503_when_not_healthy() -> None:
    port = free_port()
    for healthy, status in ((True, 200), (False, 503)):
        async with (
            serve_metrics(f"127.0.0.1:{port}", "run", partial(dict, healthy=healthy, doing="x")),
            aiohttp.ClientSession() as client,
            client.get(f"http://127.0.0.1:{port}/healthz") as answer,
        ):
            assert answer.status == status
            assert (await answer.json())["doing"] == "x"


def test_no_metric_is_declared_elsewhere() -> None:
    makers = {"Counter", "Gauge", "Histogram", "Summary", "Info", "Enum"}
    for path in (ROOT / "daemon").rglob("*.py"):
        if path.name == "metrics.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "prometheus_client":
                imported = makers & {alias.name for alias in node.names}
                assert not imported, (
                    f"{path.name} declares a {imported.pop()}: that belongs in neardup/telemetry/metrics.py"
                )


def test_every_declared_metric_is_used() -> None:
    names = [n for n, value in vars(metrics).items() if n.isupper() and isinstance(value, Metric)]
    used = {
        node.id if isinstance(node, ast.Name) else node.attr
        for path in (ROOT / "daemon").rglob("*.py")
        if path.name != "metrics.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name | ast.Attribute)
    }
    unused = [name for name in names if name not in used]
    assert not unused, f"declared and never set: {unused}"


def samples_of(histogram: Histogram) -> list[Sample]:
    [family] = histogram.collect()
    return [sample for sample in family.samples if not sample.name.endswith("_created")]


@given(st.lists(st.integers(0, 100).map(lambda n: n / 8)))
def test_amounts_observed_at_once_equal_those_observed_one_by_one(amounts: list[float]) -> None:
    at_once, one_by_one = (Histogram("seconds", "a test", registry=None, buckets=(0.125, 1, 10)) for _ in range(2))
    observe_all(at_once, amounts)
    for amount in amounts:
        one_by_one.observe(amount)
    assert samples_of(at_once) == samples_of(one_by_one)


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


SERVED = """
from urllib.request import urlopen
from neardup.telemetry.metrics import serve_metrics
serve_metrics("127.0.0.1:{port}", "backfill")
{then}
"""
READ = 'print(urlopen("http://127.0.0.1:{port}/metrics").read().decode())'


def printed(port: int, then: str) -> str:
    code = SERVED.format(port=port, then=then)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout


def test_metrics_name_the_command() -> None:
    port = free_port()
    assert 'command="backfill"' in printed(port, READ.format(port=port))


def test_a_taken_port_is_a_warning() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = printed(port, 'print("goes on")')
    assert "no /metrics for this run" in said and f"cannot listen on 127.0.0.1:{port}" in said, said
    assert "goes on" in said


LEVELS = {"debug", "info", "warning", "error", "exception"}


def events(path: Path) -> Iterator[tuple[int, ast.expr]]:
    """The line and the event of each call of a method of `log`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name("log"), attr=level), args=[event, *_]) if level in LEVELS:
                yield node.lineno, event


def test_every_event_is_a_constant() -> None:
    found = [(path, line, event) for path in (ROOT / "daemon").rglob("*.py") for line, event in events(path)]
    assert len(found) > 20, "the events were not found"
    variable = [f"{path.name}:{line}" for path, line, event in found if not isinstance(event, ast.Constant)]
    assert not variable, f"these events vary: {variable}"
