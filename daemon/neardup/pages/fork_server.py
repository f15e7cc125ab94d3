"""The fork server: a process that has loaded what reader processes need, and forks each of them in milliseconds.

It starts with the first pool of reader processes, and ends with this process.  The reader processes share its memory.
"""

import atexit
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

from neardup.errors import Transient

GRACE_SECONDS = 1.0  # for the server to end by itself
STDERR = 2  # the descriptor; sys.stderr may have been replaced by an object without one
READER_ENVIRONMENT = {
    # no threads, which do not mix with fork; large blocks that are freed leave the memory that the watchdog measures
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": "1000000",
    "MALLOC_TRIM_THRESHOLD_": "10000000",
}


class ForkServer:
    """The server's process, and the socket over which it is asked to fork."""

    def __init__(self) -> None:
        """Start the process.  Raises Transient if the system refuses."""
        self.owner = os.getpid()
        self.environment = dict(READER_ENVIRONMENT)
        self._has_forked = False
        # its messages keep their boundaries
        self._socket, server_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with server_end:
            try:
                self._process = _spawn(server_end.fileno())
            except Transient:
                self._socket.close()
                raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def fork(self, reader_end: int, record: int, modules: Sequence[str]) -> None:
        """Ask for a process that owns these descriptors: of a socket, and of a `Record`.

        Its environment and its stderr are those of this process now.  The server loads the modules first, so that the
        processes share them.  Raises OSError if the server has ended.
        """
        self._has_forked = True
        request = pickle.dumps((dict(os.environ), modules))
        socket.send_fds(self._socket, [request], [reader_end, record, STDERR])

    def end(self) -> None:
        """End the process, but not the processes that it forked; those that have ended count in its CPU time."""
        self._socket.close()
        if self.owner == os.getpid():
            if not self._has_forked:  # it may still be loading
                self._process.kill()
            try:
                self._process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


_running: list[ForkServer] = []  # at most one


def get_server() -> ForkServer:
    """The server of this process, which starts first if none runs.  Raises Transient if the system refuses."""
    if not _running or (_running[0].owner, _running[0].environment) != (os.getpid(), READER_ENVIRONMENT):
        end_server()
        _running.append(ForkServer())
    return _running[0]


def fork_reader(reader_end: int, record: int, modules: Sequence[str]) -> int:
    """As `ForkServer.fork`, by the running server.  Returns the id of the server.  Raises Transient."""
    try:
        get_server().fork(reader_end, record, modules)
    except OSError:  # it was killed
        end_server()
        try:
            get_server().fork(reader_end, record, modules)
        except OSError as error:
            raise Transient(f"the fork server of reader processes ended: {error.strerror}", "crashed") from error
    return get_server().pid


def start_server() -> None:
    """Start the server, if none runs, ahead of the first reader process, which reports what fails."""
    with suppress(Transient):
        get_server()


@atexit.register
def end_server() -> None:
    while _running:
        _running.pop().end()


def _spawn(control: int) -> subprocess.Popen[bytes]:
    # not -m: it would pickle the classes of that module under the name __main__
    # -P: import nothing from the working directory
    command = [sys.executable, "-P", "-c", f"from neardup.pages.reader_process import main; main({control})"]
    try:
        return subprocess.Popen(  # noqa: S603 - this program
            command,
            pass_fds=[control],
            stdin=subprocess.DEVNULL,
            stdout=STDERR,
            env=os.environ | READER_ENVIRONMENT,
            process_group=0,  # the terminal's signals are for this process, which decides the end
        )
    except OSError as error:
        raise Transient(f"cannot start a reader process: {error.strerror}", "crashed") from error
