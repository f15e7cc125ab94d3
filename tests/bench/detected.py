"""The pairs that a detector found in a corpus, and what that cost."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct, field

from tests.bench.corpus import Pair
from tests.support.resource_meter import cpu_seconds


class Detected(Struct):
    """The pairs that were found, as ids with the lower first; CPU time by stage, and wall time, in seconds.

    The CPU time is that of the process, all its threads, and its children that have ended.  `index_bytes` is the size
    of the index alone, without sketches and texts, and `peak_mb` the peak memory of the largest process in MiB.
    """

    documents: int
    pairs: list[Pair] = field(default_factory=list)
    cpu: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    index_bytes: int | None = None
    peak_mb: float = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time that the enclosed work takes."""
        wall_start, cpu_start = time.perf_counter(), cpu_seconds()
        yield
        self.seconds += time.perf_counter() - wall_start
        self.cpu[name] = self.cpu.get(name, 0.0) + cpu_seconds() - cpu_start
