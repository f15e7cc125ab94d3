"""`make fuzz`: the laws of the native core with hostile calls, over the sanitized library, for some seconds."""

import sys
import tempfile
import time
from pathlib import Path

from tests.native.sanitized import copy_package, run_laws

EXAMPLES = 200  # of each law
HOSTILE_SECONDS = 5.0  # for each function


def main(seconds: float) -> None:
    """Run the laws again and again, each time with other examples, until the time is over or one fails."""
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as name:
        package = copy_package(Path(name))
        while time.monotonic() < end:
            done = run_laws(package, package / "functions", EXAMPLES, HOSTILE_SECONDS)
            print(done.stdout.rstrip())  # noqa: T201 - this is a command
            if done.returncode != 0:
                sys.exit(done.stderr)


if __name__ == "__main__":
    main(float(sys.argv[1]))
