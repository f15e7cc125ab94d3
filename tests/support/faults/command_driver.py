"""Starts commands through tests.support.faults.killed_command and waits for their end."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from tests.support.paths import ROOT

At = dict[str, Any]


@dataclass(frozen=True)
class Started:
    """A process of the command; its output is in the files `name`.out and `name`.err of its folder."""

    driver: "Driver"
    folder: Path
    name: str
    pid: int

    def wait(self) -> int | None:
        """Its exit code, negative for a signal; None where it stands still."""
        code: int | None = self.driver.ask({"wait": self.pid}).get("code")
        return code

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def end(self) -> int | None:
        """Kill it; harmless after it has ended by itself and was waited for."""
        os.kill(self.pid, signal.SIGKILL)
        return self.wait()

    def said(self) -> str:
        return self._file("err")

    def output(self) -> str:
        return self._file("out")

    def facts(self) -> dict[str, Any]:
        """The object on the last line of its output."""
        return dict(json.loads(self.output().splitlines()[-1]))

    def reached(self) -> dict[str, int]:
        """What it came to, and how often, as instants are counted; of one that ended by itself."""
        return dict(json.loads(self._file("reached")))

    def _file(self, kind: str) -> str:
        return (self.folder / f"{self.name}.{kind}").read_text(encoding="utf-8")


class Driver:
    """Starts commands; each with its folder, environment and the instant at which it is to be struck."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._names = (f"{n}" for n in count(1))

    def ask(self, request: dict[str, Any]) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(self, folder: Path, *arguments: str, at: At | None = None, name: str = "", **env: str) -> Started:
        name = name or next(self._names)
        request = {"folder": str(folder), "name": name, "arguments": arguments, "at": at, "env": env}
        return Started(self, folder, name, self.ask({"start": request}))


@contextmanager
def driving() -> Iterator[Driver]:
    command = [sys.executable, "-W", "error", "-m", "tests.support.faults.killed_command"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("NEARDUP_")}
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=env | {"OPENBLAS_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Driver(process)
        finally:
            process.stdin.close()  # type: ignore[union-attr]
            process.wait()
