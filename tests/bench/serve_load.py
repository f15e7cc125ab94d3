"""The load of tests.bench.serve, for locust: requests at a constant rate, however slow the answers are.

BODIES names a file with a request's body on each line.  Each user sends a request every SECONDS_BETWEEN seconds, much
longer than an answer takes, so the rate does not fall with the service: the loop is open.
"""

import os
from itertools import cycle
from pathlib import Path

from locust import FastHttpUser, constant_throughput, task

SECONDS_BETWEEN = 4.0  # two requests of one user
BODIES = cycle(Path(os.environ["BODIES"]).read_text(encoding="utf-8").split("\n")[:-1])


class Author(FastHttpUser):
    """Checks stories."""

    wait_time = constant_throughput(1 / SECONDS_BETWEEN)

    @task
    def check(self) -> None:
        """Check the next story."""
        self.client.post("/v1/check", data=next(BODIES), headers={"Content-Type": "application/json"})
