"""Measures the passage index at a given size, by the stages of tests.bench.passages.

Its passage hashes are synthetic, and not those of the ledger's stories.
"""

import time
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree

from tests.bench import passages
from tests.bench.scale_stages import Figures, Setup, in_own_process

FOLDER = "passages"


def measure(ledger: Path, stories: int) -> Figures:
    """The figures of each stage on an index of this many stories, which is removed afterwards."""
    setup = Setup(ledger)
    stages: dict[str, tuple[Callable[..., passages.Figures], bool | None]] = {
        "build": (passages.build, False),
        "cold": (passages.lookups, True),
        "warm": (passages.lookups, False),
        "join": (passages.join, None),
        "check": (passages.check, None),
    }
    figures = {name: in_own_process(_stage, setup, work, stories, option) for name, (work, option) in stages.items()}
    rmtree(_folder(setup))
    return figures


async def _stage(setup: Setup, work: Callable[..., passages.Figures], stories: int, option: bool | None) -> Figures:
    folder, start = _folder(setup), time.perf_counter()
    figures = work(folder, stories) if option is None else work(folder, stories, option)
    return {**figures, "seconds": time.perf_counter() - start}


def _folder(setup: Setup) -> Path:
    return setup.ledger.with_name(FOLDER)
