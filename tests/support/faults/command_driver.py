"""Starts commands through tests.support.faults.killed_command and waits for them to end."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from msgspec import Struct
from neardup.pages.fork_server import READER_ENVIRONMENT

from tests.support.command import environment
from tests.support.paths import ROOT

StopPoint = dict[str, Any]  # the keys of killed_command.Trigger


class StartedCommand(Struct, frozen=True):
    """A process that runs the command; its output is in the files `name`.out and `name`.err of its folder."""

    driver: "Driver"
    folder: Path
    name: str
    pid: int

    def wait(self) -> int | None:
        """Wait until it ends or stops; returns its exit code, negative for a signal, or None if SIGSTOP stopped it."""
        code: int | None = self.driver.request({"wait": self.pid}).get("code")
        return code

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> int | None:
        """Kill it; returns what `wait` returns."""
        os.kill(self.pid, signal.SIGKILL)
        return self.wait()

    def stderr(self) -> str:
        return self._file("err")

    def stdout(self) -> str:
        return self._file("out")

    def facts(self) -> dict[str, Any]:
        """The JSON object on the last line of its stdout."""
        return dict(json.loads(self.stdout().splitlines()[-1]))

    def reached_points(self) -> dict[str, int]:
        """How often it reached each point; recorded only if it ended by itself."""
        return dict(json.loads(self._file("reached")))

    def _file(self, kind: str) -> str:
        return (self.folder / f"{self.name}.{kind}").read_text(encoding="utf-8")


class Driver:
    """Starts commands, each with its folder, its environment and the point at which it gets a signal."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._names = (f"{n}" for n in count(1))

    def request(self, message: dict[str, Any]) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(
        self, folder: Path, *arguments: str, at: StopPoint | None = None, name: str = "", **env: str
    ) -> StartedCommand:
        name = name or next(self._names)
        request = {"folder": str(folder), "name": name, "arguments": arguments, "at": at, "env": env}
        return StartedCommand(self, folder, name, self.request({"start": request}))


@contextmanager
def command_driver() -> Iterator[Driver]:
    command = [sys.executable, "-W", "error", "-m", "tests.support.faults.killed_command"]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment() | READER_ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Driver(process)
        finally:
            process.stdin.close()  # type: ignore[union-attr]
            process.wait()
