"""The memory of a long-lived process: how often Python looks for cycles in it, and how the C library allocates it."""

import ctypes
import gc

ALLOCATIONS = 100_000  # between collections; stories leave no cycles, and Python's default takes a tenth of the CPU
LOADING = 1_000_000  # likewise, while a command loads: a collection of what it has loaded takes 40 ms and frees nothing
ARENA_MAX = -8  # M_ARENA_MAX of glibc's malloc.h


def collect_seldom(allocations: int = ALLOCATIONS) -> None:
    """Exclude the objects that exist now from collection, and collect after so many allocations only."""
    gc.freeze()
    gc.set_threshold(allocations)


def use_one_arena() -> None:
    """Let all threads allocate from one arena, where the C library is glibc.

    It would give each thread an arena of its own, and an arena keeps what its largest task needed: in a service that
    checks novels beside short stories, 200 MB more.  Threads seldom allocate at the same time, because of the GIL.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(ARENA_MAX, 1)
