"""Commands that are forked from a process which has loaded the program: a new interpreter takes a second to start.

A forked command is a process like any other, with its own folder, environment, output and exit code.
"""

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import BinaryIO, NamedTuple, NoReturn, Self, TextIO

import neardup
from neardup.pages.fork_server import READER_ENVIRONMENT

from tests.support import forked_readers

LIBRARIES = ("prometheus_client", "rich.progress", "stamina", "structlog", "structlog.contextvars", "uvloop")
NOT_LOADED = (
    "neardup.__main__",  # runs a command
    "neardup.core.native._neardup",  # is no module of Python
    "neardup.spark",
    *("neardup.s3.objects", "neardup.source.athena"),  # with the libraries of AWS, which take seconds
)


def load_program() -> None:
    """Import every module, with the libraries that these import when they are called."""
    for module in walk_packages(neardup.__path__, "neardup."):
        if not module.name.startswith(NOT_LOADED):
            import_module(module.name)
    for library in LIBRARIES:
        import_module(library)


LONGEST_REQUEST, LONGEST_REPORT = 1_000_000, 20  # bytes
PROGRAM = [sys.executable, "-W", "error", "-m", "tests.support.forked_command"]


class Command(NamedTuple):
    """The arguments of a command, the folder that it runs in, and its environment."""

    arguments: list[str]
    folder: str
    environment: dict[str, str]


class ForkedProcess:
    """A command that was started: the part of `subprocess.Popen` that tests need.  The end of its context waits."""

    def __init__(self, command: Command, output: BinaryIO, errors: BinaryIO | None = None) -> None:
        """Start a command with these files as its stdout and its stderr, which otherwise is the pipe `stderr`."""
        self.stderr: TextIO | None = None
        self.returncode: int | None = None  # negative for a signal
        self._ended, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, ExitStack() as stack:
            if errors is None:
                read_end, write_end = os.pipe()
                self.stderr = os.fdopen(read_end, encoding="utf-8")
                errors = stack.enter_context(os.fdopen(write_end, "wb"))
            descriptors = [output.fileno(), errors.fileno(), theirs.fileno()]
            socket.send_fds(_program(os.getpid()), [json.dumps(command).encode()], descriptors)
        self.pid = int(self._ended.recv(LONGEST_REPORT))

    def poll(self) -> int | None:
        """The exit code, or None while the command runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code.  Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            self._ended.settimeout(timeout)
            try:
                self.returncode = int(self._ended.recv(LONGEST_REPORT))
            except (TimeoutError, BlockingIOError) as error:
                raise subprocess.TimeoutExpired("the forked command", timeout or 0) from error
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()
        self._ended.close()
        if self.stderr is not None:
            self.stderr.close()


def run_forked(command: Command, timeout_seconds: float) -> tuple[int, str, str]:
    """Run a command; returns its exit code, negative for a signal, its stdout and its stderr.

    Raises subprocess.TimeoutExpired, after the command has been killed.
    """
    with (
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
        ForkedProcess(command, output, errors) as process,
    ):
        try:
            code = process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
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
    running = dict[int, Running]()
    ready = select.poll()
    ready.register(requests, select.POLLIN)
    while True:
        for descriptor, _ in ready.poll():
            if descriptor != requests.fileno():
                ready.unregister(descriptor)
                running.pop(descriptor).report_end(descriptor)
                continue
            request, descriptors, _, _ = socket.recv_fds(requests, LONGEST_REQUEST, 3)
            if not request:
                os._exit(0)
            if not (pid := os.fork()):
                requests.close()
                for process, command in running.items():
                    command.owner.close()
                    os.close(process)
                return _set_up(Command(*json.loads(request)), descriptors)
            *files, report = descriptors
            for file in files:
                os.close(file)
            process = os.pidfd_open(pid)
            running[process] = Running(pid, socket.socket(fileno=report))
            running[process].owner.send(str(pid).encode())
            ready.register(process, select.POLLIN)


class Running(NamedTuple):
    """A command that was forked, and the socket to which its end is reported."""

    pid: int
    owner: socket.socket

    def report_end(self, process: int) -> None:
        """Send the exit code of the command, whose process has this descriptor and has ended."""
        _, status = os.waitpid(self.pid, 0)
        os.close(process)
        with self.owner, suppress(OSError):  # the owner may have ended
            self.owner.send(str(os.waitstatus_to_exitcode(status)).encode())


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
