"""What /metrics shows is declared in neardup.telemetry.metrics, and stays as operators' dashboards know it.

The golden file holds the declarations as the real endpoint gives them: name, type and help.
"""

import ast
from functools import partial
from pathlib import Path

import aiohttp
from neardup.telemetry import metrics
from neardup.telemetry.http import served
from prometheus_client.metrics import MetricWrapperBase

from tests.support.paths import ROOT
from tests.support.servers import free_port

GOLDEN = Path(__file__).with_name("metrics.golden")


async def test_the_real_output_is_the_golden_one() -> None:
    port = free_port()
    async with (
        served(f"127.0.0.1:{port}", lambda: {"healthy": True}),
        aiohttp.ClientSession() as client,
        client.get(f"http://127.0.0.1:{port}/metrics") as answer,
    ):
        text = await answer.text()
    declared = [line for line in text.splitlines() if line.startswith(("# HELP neardup_", "# TYPE neardup_"))]
    declared = [line for line in declared if "_created" not in line]
    assert declared == GOLDEN.read_text().splitlines(), "\n".join(declared)
    assert "process_resident_memory_bytes" in text


async def test_health_answers_503_when_not_healthy() -> None:
    port = free_port()
    for healthy, status in ((True, 200), (False, 503)):
        async with (
            served(f"127.0.0.1:{port}", partial(dict, healthy=healthy, doing="x")),
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
                made = makers & {alias.name for alias in node.names}
                assert not made, f"{path.name} declares a {made.pop()}: that belongs in daemon/metrics.py"


def test_every_declared_metric_is_used() -> None:
    names = [n for n, value in vars(metrics).items() if n.isupper() and isinstance(value, MetricWrapperBase)]
    code = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "daemon").rglob("*.py") if path.name != "metrics.py"
    )
    unused = [name for name in names if f"{name}." not in code]
    assert not unused, f"declared and never set: {unused}"
