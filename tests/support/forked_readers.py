"""The fork server of a forked command, which is forked as well: a new interpreter takes a second of CPU time to start.

Once a command has threads it cannot fork.  So it forks a process as its first step, which waits until the command asks
for the server, and then is a child like the one that the command would start, with the environment it has by then.
"""

import os
import pickle
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from neardup.core.fingerprint import version
from neardup.pages import fork_server, reader_process

LONGEST_REQUEST = 1_000_000  # bytes
READ_AT_START = "PYTHONPATH"  # by Python, so that only a new interpreter obeys it
SITE = "sitecustomize.py"  # in a folder of its own, which `obey` runs as a new interpreter does


def load() -> None:
    """Load what reader processes need; those that are forked from this process share it."""
    version.version()
    version.check_native_core()
    version.check_native_core = _nothing_to_check
    import_module("neardup.pages.s3")  # with the libraries that fetch


def _nothing_to_check() -> None:
    """Take the place of a check that the process from which this one is forked has done."""


def is_obeyed(environment: Mapping[str, str], loaded: Mapping[str, str]) -> bool:
    """Whether a process forked from one that began with `loaded` is, after `obey`, as a new one in this environment."""
    path, before = environment.get(READ_AT_START), loaded.get(READ_AT_START)
    return path == before or (before is None and Path(str(path), SITE).is_file())


def obey(loaded: Mapping[str, str], program: str) -> None:
    """Run the SITE of this environment, in the process of a program that began with `loaded`."""
    path = os.environ.get(READ_AT_START)
    if path is not None and path != loaded.get(READ_AT_START):
        sys.orig_argv = [program]
        exec((Path(path) / SITE).read_bytes(), {})


def ends_within(process: int, seconds: float | None) -> bool:
    """Whether the process of a descriptor ends in time.  Unlike select(), it takes any descriptor."""
    ends = select.poll()
    ends.register(process, select.POLLIN)
    return bool(ends.poll(None if seconds is None else seconds * 1000))


class ForkedServer:
    """The part of `subprocess.Popen` that the owner of a fork server needs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._ended = os.pidfd_open(pid)

    def kill(self) -> None:
        signal.pidfd_send_signal(self._ended, signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> None:
        """Wait for the end of the process.  Raises subprocess.TimeoutExpired."""
        if not ends_within(self._ended, timeout):
            raise subprocess.TimeoutExpired("the forked server", timeout or 0)
        os.waitpid(self.pid, 0)


def prepare_server(loaded: Mapping[str, str]) -> None:
    """Let this process, which has one thread, fork its server; `loaded` is the environment that it was loaded with."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if not (pid := os.fork()):
        ours.close()
        _become_server(theirs, loaded)
    theirs.close()
    requests = ours.detach()  # open as long as this process, without a warning at its end
    waiting, spawn = [pid], fork_server._spawn

    def forked(control: int) -> Any:
        environment = os.environ | fork_server.READER_ENVIRONMENT
        if not waiting or not is_obeyed(environment, loaded):
            return spawn(control)
        with socket.socket(fileno=requests) as asked:
            socket.send_fds(asked, [pickle.dumps(dict(environment))], [control])
        return ForkedServer(waiting.pop())

    fork_server._spawn = forked


def _become_server(requests: socket.socket, loaded: Mapping[str, str]) -> NoReturn:
    """Wait for the command to ask for its server, and be that; end with the command."""
    try:
        os.setpgid(0, 0)  # as the server of a command that is no fork
        request, descriptors, _, _ = socket.recv_fds(requests, LONGEST_REQUEST, 1)
        if request:
            os.dup2(fork_server.STDERR, reader_process.STDOUT)
            os.environ.clear()
            os.environ.update(pickle.loads(request))
            obey(loaded, reader_process.__name__)
            reader_process.main(*descriptors)
    finally:
        os._exit(0)
