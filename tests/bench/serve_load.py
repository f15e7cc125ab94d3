"""The load of tests.bench.serve, for locust: requests at a rate that does not fall with the service, an open loop.

BODIES names a file with a request's body on each line.  Each user sends requests at random times, SECONDS_BETWEEN
seconds apart on average and much longer than an answer takes: together they arrive as those of many authors would, as
a Poisson process.  With locust's `constant_throughput` all users of a second would send in the same instant.
"""

import os
import random
import time
from itertools import cycle
from pathlib import Path

from locust import FastHttpUser, task

SECONDS_BETWEEN = 4.0  # two requests of one user
BODIES = cycle(Path(os.environ["BODIES"]).read_text(encoding="utf-8").split("\n")[:-1])


class Author(FastHttpUser):
    """Checks stories."""

    _due = 0.0

    def wait_time(self) -> float:
        """Seconds until the next request is due, whenever the last was answered."""
        now = time.monotonic()
        self._due = (self._due or now) + random.expovariate(1 / SECONDS_BETWEEN)
        return max(self._due - now, 0.0)

    def on_start(self) -> None:
        """Wait before the first request, because locust starts the users of a second in the same instant."""
        self.wait()  # type: ignore[no-untyped-call]  # locust declares no types here

    @task
    def check(self) -> None:
        """Check the next story."""
        self.client.post("/v1/check", data=next(BODIES), headers={"Content-Type": "application/json"})
