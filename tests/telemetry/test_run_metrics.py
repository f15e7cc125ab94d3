"""A single run serves /metrics until its process ends, and goes on without them where the port is taken."""

import socket
import subprocess
import sys

from tests.support.servers import free_port

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
