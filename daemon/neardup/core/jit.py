"""Compilation of functions to machine code with numba.

The first call of a compiled function imports numba, which takes 0.2 s and 115 MB and is needed by few commands.  That
import raises OSError if memory cannot be made executable, as under systemd's MemoryDenyWriteExecute.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property, update_wrapper
from platform import machine
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """Return a function of numbers and arrays that is compiled when it is first called, and runs without the GIL.

    numba caches the machine code in the first writable one of NUMBA_CACHE_DIR, the source's folder and the user's
    cache, until the function's own file changes; it does not notice changes in functions of other files that this one
    calls.  If no folder is writable, each process compiles for itself.
    """
    return cast("Function", _Compiled(function, {"nogil": True, "cache": True}))


def inlined(function: Function) -> Function:
    """Return a function that compiled functions call as if its statements stood in them."""
    return cast("Function", _Compiled(function, {"nogil": True, "inline": "always"}))


@cache
def can_compile() -> bool:
    """Whether the operating system allows executable memory.  Imports numba."""
    try:
        _numba()
    except OSError:
        return False
    return True


def compiled_where_possible(function: Function) -> Function:
    """As `compiled`, but where memory cannot be made executable, the function as it is.  Imports numba."""
    return compiled(function) if can_compile() else function


class _Compiled:
    """Stands for numba's dispatcher of a function, which is made when it is needed."""

    def __init__(self, function: Callable[..., object], options: dict[str, object]) -> None:
        self._function, self._options = function, options
        update_wrapper(self, function)

    @cached_property
    def value(self) -> Callable[..., Any]:
        njit = _numba().njit
        try:
            return cast("Callable[..., Any]", njit(self._function, **self._options))
        except RuntimeError:  # no folder is writable
            return cast("Callable[..., Any]", njit(self._function, **self._options | {"cache": False}))

    @property
    def targetoptions(self) -> object:
        """What numba's pass that inlines calls looks for, before the type of what is called is known."""
        return cast("Any", self.value).targetoptions

    @property
    def py_func(self) -> Callable[..., object]:
        """The function itself, likewise."""
        return self._function

    def __call__(self, *arguments: object) -> object:
        return self.value(*arguments)

    def __reduce__(self) -> str:
        """Pickle the name, as of any function: a copy of its fields would not prepare numba in the other process."""
        return self._function.__qualname__


class LibraryFunction:
    """A function of the C library that compiled functions can call."""

    def __init__(self, name: str, result: str, *arguments: str) -> None:
        """`result` and `arguments` are names of numba's types."""
        self._name, self._types = name, (result, *arguments)

    @cached_property
    def value(self) -> Any:
        types = _numba().types
        result, *arguments = (getattr(types, name) for name in self._types)
        return types.ExternalFunction(self._name, result(*arguments))

    def __call__(self, *arguments: object) -> Any:
        raise TypeError(f"{self._name} can only be called by compiled functions")


@cache
def _numba() -> Any:
    """The module numba, which takes what stands for a function in compiled functions for that function."""
    import numba  # noqa: PLC0415 - see above
    from llvmlite.binding import get_host_cpu_features  # noqa: PLC0415 - likewise
    from numba.extending import typeof_impl  # noqa: PLC0415 - likewise

    config = cast("Any", numba.config)
    if config.CPU_FEATURES is None and machine() == "x86_64":
        # Where the compiler may use vectors of 512 bits, codes are compared in nine tenths of the time.
        config.CPU_FEATURES = f"{get_host_cpu_features().flatten()},-prefer-256-bit"

    @typeof_impl.register(_Compiled)
    @typeof_impl.register(LibraryFunction)
    def typeof(stand_in: _Compiled | LibraryFunction, context: object) -> object:
        return typeof_impl(stand_in.value, context)

    return numba


@contextmanager
def compilations_reported(report: Callable[[], object]) -> Iterator[None]:
    """Call `report` for each function that is compiled while the context lasts, not for those loaded from the cache.

    It is called on the thread that compiles.
    """
    _numba()
    from numba.core import event  # noqa: PLC0415 - see above

    class OnCompilation(event.Listener):
        def on_start(self, _: object) -> None:
            report()

        def on_end(self, _: object) -> None: ...

    with event.install_listener("numba:compile", OnCompilation()):
        yield
