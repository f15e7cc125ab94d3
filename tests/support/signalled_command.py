"""Runs the command, and sends SIGNAL to its own process once LISTED stories are listed.

    python -m tests.support.signalled_command SIGNAL LISTED neardup-arguments...

The last line of stderr is a JSON object: the resident memory in KiB after each 1,000 stories.
A SIGNAL that does not exist, such as NONE, sends none.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neardup.cli import console, main
from neardup.pipeline.progress import Progress, Watch


def resident_kib() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


def run(number: int, at: int, arguments: list[str]) -> None:
    memory: dict[int, int] = {}

    @contextmanager
    def watching(command: str) -> Iterator[Watch]:
        def watch(progress: Progress) -> None:
            listed = progress.counts.listed
            memory.setdefault(listed // 1000 * 1000, resident_kib())
            if number and listed >= at:
                os.kill(os.getpid(), number)

        yield watch

    console.show_progress = watching
    try:
        main(arguments)
    finally:
        print(json.dumps(memory), file=sys.stderr)  # noqa: T201


if __name__ == "__main__":
    run(int(getattr(signal, sys.argv[1], 0)), int(sys.argv[2]), sys.argv[3:])
