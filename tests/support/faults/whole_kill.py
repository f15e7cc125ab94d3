"""Kills a command together with its reader processes, as systemd does."""

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support.forked_command import ForkedProcess


def kill_with_readers(process: "subprocess.Popen[Any] | ForkedProcess") -> None:
    """Kill a command, then its reader processes, which would only use CPU time until they notice."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    readers = [int(pid) for pid in children.read_text(encoding="ascii").split()] if process.poll() is None else []
    process.kill()
    for pid in readers:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    process.wait()
