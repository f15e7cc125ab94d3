"""How long commands take to start, beside a process that only imports numpy and selectolax.

    python -m tests.bench.starts

`make bench` shows this too.  A row is the median of ROUNDS starts, in turns with the others, of a fresh process whose
bytecode is compiled.  On a busy machine `chrt -f 20` before the command keeps other processes from its time.
"""

import os
import resource
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct
from neardup.pages.fork_server import READER_ENVIRONMENT

from tests.bench.report import out, table_of
from tests.support.resource_meter import machine

ROUNDS = 5
BARE = "import numpy, selectolax"
SAMPLE = Path("stories", "ENGLISH", "4107000.html")
READER = "a reader process"
READER_CODE = "from neardup.pages.reader_process import main; main({})"
LEFT_OUT = ("NEARDUP_", "PYTHONDONTWRITEBYTECODE", "OPENBLAS_")  # of the environment
PYTHON = (sys.executable, "-P", "-c")
NEARDUP = (*PYTHON, "from neardup.cli import main; main()")  # as the installed script


class Start(Struct, frozen=True):
    """A process from its start to its end: seconds, CPU seconds of it and its children, and its peak memory in MiB."""

    seconds: float
    cpu: float
    peak_mib: float


def commands(sample: Path) -> Mapping[str, Sequence[str]]:
    """The command lines that are measured, in the folder of a demo; the others are compared with BARE."""
    return {
        BARE: (*PYTHON, BARE),
        "neardup --help": (*NEARDUP, "--help"),
        "neardup check --nonsense": (*NEARDUP, "check", "--nonsense"),
        "neardup check, without --language": (*NEARDUP, "check", str(sample)),
        "neardup status": (*NEARDUP, "status"),
        "neardup check of a copy": (*NEARDUP, "check", str(sample), "--language", "en"),
        "neardup.compare, the first": (*PYTHON, "import neardup; neardup.compare('one two three', 'one two four')"),
    }


def started(
    command: Sequence[str], folder: Path, descriptors: Sequence[int] = (), environment: Mapping[str, str] = {}
) -> Start:
    """Run a command until it ends."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=folder,
        pass_fds=descriptors,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={key: value for key, value in os.environ.items() if not key.startswith(LEFT_OUT)} | dict(environment),
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Start(time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def reader_started(folder: Path) -> Start:
    """Start what forks the reader processes, which ends once it could fork the first."""
    owner, server = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    owner.close()
    with server:
        return started((*PYTHON, READER_CODE.format(server.fileno())), folder, [server.fileno()], READER_ENVIRONMENT)


def measure(folder: Path, rounds: int = ROUNDS) -> dict[str, Start]:
    """The medians of the starts; makes a demo in the folder first, which also compiles the bytecode."""
    subprocess.run((*NEARDUP, "demo", str(folder)), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    every = commands(SAMPLE)
    for command in every.values():
        started(command, folder)
    starts: dict[str, list[Start]] = {name: [] for name in (*every, READER)}
    for _ in range(rounds):
        for name, command in every.items():
            starts[name].append(started(command, folder))
        starts[READER].append(reader_started(folder))
    return {name: _median(of_name) for name, of_name in starts.items()}


def _median(starts: Sequence[Start]) -> Start:
    values = zip(*((start.seconds, start.cpu, start.peak_mib) for start in starts), strict=True)
    return Start(*map(statistics.median, values))


def show_starts(starts: Mapping[str, Start]) -> None:
    """Print seconds, CPU and memory, and the ratios to BARE.

    A peak below that of this process is not known: until a process is another program, its memory is this one's.
    """
    table = table_of("start", "seconds", "times the\nbare import", "CPU, seconds", "peak MiB")
    bare, own = starts[BARE], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    for name, start in starts.items():
        ratio = f"{start.seconds / bare.seconds:.2f}"
        table.add_row(
            name,
            f"{start.seconds:.3f}",
            ratio,
            f"{start.cpu:.3f}",
            f"{start.peak_mib:.0f}" if start.peak_mib > own else "",
        )
    out.print(table)


def measure_in_new_folder() -> dict[str, Start]:
    """As `measure`, in a folder that is removed."""
    with TemporaryDirectory(prefix="neardup-starts-") as name:
        return measure(Path(name) / "demo")


if __name__ == "__main__":
    out.print(f"{machine()}; medians of {ROUNDS} starts")
    show_starts(measure_in_new_folder())
