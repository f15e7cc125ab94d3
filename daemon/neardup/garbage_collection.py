"""How often Python's garbage collector searches the process for cycles."""

import gc

ALLOCATIONS = 100_000  # between collections; stories leave no cycles, and Python's default takes a tenth of the CPU


def collect_seldom() -> None:
    """Exclude the objects that exist now from collection, and collect rarely."""
    gc.freeze()
    gc.set_threshold(ALLOCATIONS)
