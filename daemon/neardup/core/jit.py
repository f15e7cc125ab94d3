"""Functions compiled to machine code, by numba.

Importing this takes 0.2 s and 115 MB, most of them pages of the compiler's library, so whoever can
do without imports it late.  It raises OSError where memory may not be made executable, as under
systemd's MemoryDenyWriteExecute.
"""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """A function of numbers and arrays -> itself, compiled when first called; it runs without the GIL.

    The machine code is kept in NUMBA_CACHE_DIR, beside the source or in the user's cache, the first
    that can be written to, until the function's file changes; a change in what it calls from
    another file goes unnoticed.  Where no folder can be written to, each process compiles.
    """
    try:
        made = numba.njit(function, nogil=True, cache=True)
    except RuntimeError:
        made = numba.njit(function, nogil=True)
    return cast("Function", made)
