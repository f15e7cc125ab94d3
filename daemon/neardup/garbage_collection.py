"""How often the collector of cycles looks at a process."""

import gc

ALLOCATIONS = 100_000  # before it looks, for what flows through leaves no cycles: a tenth of the daemon's CPU


def collect_seldom() -> None:
    """Leave alone what is there already, and look for cycles seldom."""
    gc.freeze()
    gc.set_threshold(ALLOCATIONS)
