"""What a contender found among the documents, and at what cost."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.bench.corpus import Pair
from tests.support.resource_meter import cpu_seconds


@dataclass(slots=True)
class Detected:
    """Pairs of ids, the lower first; CPU by stage and wall time, in seconds.

    The CPU is that of the process, all its threads, and of its children that have ended.
    `index_bytes` is the index alone, without sketches or texts.
    """

    documents: int
    pairs: list[Pair] = field(default_factory=list)
    cpu: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    index_bytes: int = 0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add what the enclosed work takes."""
        began, spent = time.perf_counter(), cpu_seconds()
        yield
        self.seconds += time.perf_counter() - began
        self.cpu[name] = self.cpu.get(name, 0.0) + cpu_seconds() - spent
