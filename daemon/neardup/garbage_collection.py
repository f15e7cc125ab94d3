"""How often Python's garbage collector searches the process for cycles."""

import gc

ALLOCATIONS = 100_000  # between collections; stories leave no cycles, and Python's default takes a tenth of the CPU
LOADING = 1_000_000  # likewise, while a command loads: a collection of what it has loaded takes 40 ms and frees nothing


def collect_seldom(allocations: int = ALLOCATIONS) -> None:
    """Exclude the objects that exist now from collection, and collect after so many allocations only."""
    gc.freeze()
    gc.set_threshold(allocations)
