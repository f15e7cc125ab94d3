"""Runs a benchmark module in its own process, and describes the machine."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any


def run_module(name: str, *arguments: object) -> Any:
    """Run `python -m name arguments`; the JSON on the last line of its output."""
    command = [sys.executable, "-m", name, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment(), check=True)
    return json.loads(done.stdout.splitlines()[-1])


def environment() -> dict[str, str]:
    """The variables of a process that reads a store on this machine."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("NEARDUP_", "AWS_"))}
    return inherited | {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "NO_PROXY": "127.0.0.1"}


def machine() -> str:
    """The CPU, the number of cores and the Python version of this machine."""
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    model = models[0].partition(":")[2].strip() if models else platform.machine()
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"
