"""Commands that are forked from a process which has loaded the program: a new interpreter takes a second to start.

A forked command is a process like any other, with its own folder, environment, output and exit code.
"""

import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import BinaryIO, NamedTuple, NoReturn

from neardup.pages import reader_process
from neardup.pages.fork_server import READER_ENVIRONMENT

from tests.support import forked_readers
from tests.support.loaded_program import load_program

LONGEST_REQUEST, LONGEST_REPORT = 1_000_000, 20  # bytes
PROGRAM = [sys.executable, "-W", "error", "-m", "tests.support.forked_command"]


class Command(NamedTuple):
    """The arguments of a command, the folder that it runs in, and its environment."""

    arguments: list[str]
    folder: str
    environment: dict[str, str]


def run_forked(command: Command, timeout_seconds: float) -> tuple[int, str, str]:
    """Run a command; returns its exit code, negative for a signal, its stdout and its stderr.

    Raises TimeoutError, after the command has been killed.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        with theirs:
            descriptors = [output.fileno(), errors.fileno(), theirs.fileno()]
            socket.send_fds(_program(os.getpid()), [json.dumps(command).encode()], descriptors)
        pid = int(ours.recv(LONGEST_REPORT))
        ours.settimeout(timeout_seconds)
        try:
            code = int(ours.recv(LONGEST_REPORT))
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise
        return code, _text_of(output), _text_of(errors)


def _text_of(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode()


@cache
def _program(_owner: int) -> socket.socket:
    """The socket of this process's own program, which ends with it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [*PROGRAM, str(theirs.fileno())]
        program = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env=os.environ | READER_ENVIRONMENT
        )
    atexit.register(_end, program, ours)
    return ours


def _end(program: subprocess.Popen[bytes], requests: socket.socket) -> None:
    requests.close()
    program.wait()


def _load() -> None:
    """Load every command, which a program loads only if it is the one to run."""
    load_program()
    forked_readers.load()


def _become_command(requests: socket.socket) -> None:
    """Serve requests until the owner ends; returns in the process forked for each of them."""
    signal.signal(signal.SIGCHLD, reader_process._reap)  # so that the CPU time of the commands counts as this program's
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, LONGEST_REQUEST, 3)
        if not request:
            os._exit(0)
        if not os.fork():
            requests.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            if not (pid := os.fork()):
                return _set_up(Command(*json.loads(request)), descriptors)
            _report(pid, descriptors[-1])
        for descriptor in descriptors:
            os.close(descriptor)


def _report(pid: int, report: int) -> None:
    """Send the id of the command, and then its exit code."""
    with socket.socket(fileno=report) as owner:
        owner.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        owner.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _set_up(command: Command, descriptors: Sequence[int]) -> None:
    """Make this process what the start of a new one would be."""
    output, errors, _ = descriptors
    os.dup2(output, sys.stdout.fileno())
    os.dup2(errors, sys.stderr.fileno())
    for descriptor in descriptors:
        os.close(descriptor)
    os.chdir(command.folder)
    loaded = dict(os.environ)
    os.environ.clear()
    os.environ.update(command.environment)
    time.tzset()
    sys.argv = ["neardup", *command.arguments]
    forked_readers.obey(loaded, "neardup")
    forked_readers.prepare_server(loaded)


def _run() -> NoReturn:
    """Run the command, and end as a process does, except that the program is not freed object by object.

    That takes .1 s of CPU time, longer than most commands.
    """
    try:
        import_module("neardup.cli").main()
    except SystemExit as ended:
        if isinstance(ended.code, str):  # a message, which Python prints
            raise
        threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as the end of a process does
        atexit._run_exitfuncs()
        gc.collect()  # warns of what the command left open
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended.code or 0)
    raise AssertionError("the command did not exit")


if __name__ == "__main__":
    _load()
    _become_command(socket.socket(fileno=int(sys.argv[1])))
    _run()
