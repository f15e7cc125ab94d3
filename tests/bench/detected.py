"""What a contender found among the documents, and at what cost."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.bench.corpus import Pair


@dataclass(slots=True)
class Detected:
    """Pairs of ids, the lower first; CPU of the process (all threads) by stage and wall time, in seconds.

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
        began, spent = time.perf_counter(), time.process_time()
        yield
        self.seconds += time.perf_counter() - began
        self.cpu[name] = self.cpu.get(name, 0.0) + time.process_time() - spent
