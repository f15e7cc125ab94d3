"""Compilation of functions to machine code with numba.

Importing this module takes 0.2 s and 115 MB, most of it for the compiler's library, so a program that may not need
it imports it late.  The import raises OSError if memory cannot be made executable, as under systemd's
MemoryDenyWriteExecute.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar, cast

import numba
from numba.core import event

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """Return a function of numbers and arrays that is compiled when it is first called, and runs without the GIL.

    numba caches the machine code in the first writable one of NUMBA_CACHE_DIR, the source's folder and the user's
    cache, until the function's own file changes; it does not notice changes in functions of other files that this one
    calls.  If no folder is writable, each process compiles for itself.
    """
    try:
        dispatcher = numba.njit(function, nogil=True, cache=True)
    except RuntimeError:  # no folder is writable
        dispatcher = numba.njit(function, nogil=True)
    return cast("Function", dispatcher)


class _OnCompilation(event.Listener):
    def __init__(self, report: Callable[[], object]) -> None:
        self._report = report

    def on_start(self, _: object) -> None:
        self._report()

    def on_end(self, _: object) -> None: ...


@contextmanager
def compilations_reported(report: Callable[[], object]) -> Iterator[None]:
    """Call `report` for each function that is compiled while the context lasts, not for those loaded from the cache.

    It is called on the thread that compiles.
    """
    with event.install_listener("numba:compile", _OnCompilation(report)):
        yield
