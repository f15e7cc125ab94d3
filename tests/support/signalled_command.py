"""Runs the command, and sends SIGNAL to its own process once LISTED stories are listed.

    python -m tests.support.signalled_command SIGNAL LISTED neardup-arguments...

The last line of stderr is a JSON object: the resident memory in KiB after each 1,000 stories.
A SIGNAL that does not exist, such as NONE, sends none.
"""

import atexit
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neardup.cli import console, main
from neardup.pipeline.summary import Progress, Watch


def resident_kib() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


def watch(name: str, at: int) -> None:
    """Let this process send itself the signal of this name once `at` stories are listed, and print its memory last."""
    memory: dict[int, int] = {}
    number = int(getattr(signal, name, 0))

    @contextmanager
    def watching(command: str) -> Iterator[Watch]:
        def look(progress: Progress) -> None:
            listed = progress.counts.listed
            memory.setdefault(listed // 1000 * 1000, resident_kib())
            if number and listed >= at:
                os.kill(os.getpid(), number)

        yield look

    console.show_progress = watching
    atexit.register(lambda: print(json.dumps(memory), file=sys.stderr))  # noqa: T201


if __name__ == "__main__":
    watch(sys.argv[1], int(sys.argv[2]))
    main(sys.argv[3:])
