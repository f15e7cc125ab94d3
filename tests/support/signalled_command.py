"""The command, as it is, but it sends itself SIGNAL once so many stories are written.

    python -m tests.support.signalled_command SIGNAL LISTED neardup-arguments...

And on its last line of stderr it tells its resident memory, in KiB, at each 1,000 stories.
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


def drive(number: int, at: int, arguments: list[str]) -> None:
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
    drive(int(getattr(signal, sys.argv[1], 0)), int(sys.argv[2]), sys.argv[3:])
