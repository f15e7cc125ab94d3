"""The native core: a C library, its binding by ctypes, and the rule by which it stands in for its references.

`neardup.h` documents the library, which is built when the package is, and knows nothing of Python.  The modules beside
the `.c` files bind their functions.  Each function has a reference: a function in plain Python or numpy, in the module
that uses it, which explains the algorithm and gives the same result bit by bit.  `in_c` puts the native function in the
place of its reference, unless no library could be built; then the reference runs, which is slower.
"""

import ctypes
import re
from collections.abc import Callable, Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

INTERFACE = 4  # ND_INTERFACE of neardup.h
UNSUPPORTED, INVALID, ROOM, NO_MEMORY, DAMAGED = range(-1, -6, -1)

Parameters = ParamSpec("Parameters")
Result_co = TypeVar("Result_co", covariant=True)

Array = npt.NDArray[Any]


class Accelerated(Protocol, Generic[Parameters, Result_co]):
    """A function with its reference, by which the library is tested."""

    @property
    def reference(self) -> Callable[Parameters, Result_co]: ...

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result_co: ...


def in_c(
    native: Callable[Parameters, Result_co],
) -> Callable[[Callable[Parameters, Result_co]], Accelerated[Parameters, Result_co]]:
    """The decorated function is the reference of `native`, which is called in its place where there is a library."""

    def choose(reference: Callable[Parameters, Result_co]) -> Accelerated[Parameters, Result_co]:
        function: Any = native if LIBRARY is not None else reference
        function.reference = reference
        function.__doc__ = reference.__doc__
        return function  # type: ignore[no-any-return]

    return choose


def make_record(
    record: Callable[..., Result_co], native: Callable[Parameters, tuple[Any, ...]]
) -> Callable[Parameters, Result_co]:
    """The native function, with what it gives as a record of the module that uses it."""

    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result_co:
        return record(*native(*args, **kwargs))

    return call


def bind(name: str, *arguments: Any) -> Callable[..., int]:
    """The library's function of this name, which runs without the GIL; the types are those of ctypes, or ArrayOf.

    Without a library, a function that no caller reaches.
    """
    if LIBRARY is None:
        return _raise_missing
    function = LIBRARY[name]
    function.argtypes, function.restype = arguments, ctypes.c_int64
    return function


def check_code(code: int) -> int:
    """What a function of the library returned, unless it is an error: NO_MEMORY is MemoryError, INVALID ValueError."""
    if code == NO_MEMORY:
        raise MemoryError
    if code == INVALID:
        raise ValueError("the native core was given input that contradicts itself")
    return code


def address(array: Array, dtype: npt.DTypeLike) -> int:
    """The address of an array's first element.  Raises TypeError for another type, or for elements that lie apart."""
    if array.dtype != dtype or not array.flags.c_contiguous:
        raise TypeError(f"the native core takes contiguous arrays of {np.dtype(dtype)}, not of {array.dtype}")
    if array.flags.writeable and array.size:
        return ctypes.addressof(ctypes.c_char.from_buffer(array.data))
    return array.ctypes.data  # takes three times as long


class ArrayOf:
    """The type of an argument that is an array of this dtype, as `address` takes it."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._dtype = np.dtype(dtype)

    def from_param(self, array: Array) -> ctypes.c_void_p:
        """What ctypes passes for an argument."""
        return ctypes.c_void_p(address(array, self._dtype))


BOOL, UINT8, UINT16, UINT32, UINT64, INT32, INT64 = map(
    ArrayOf, (np.bool_, np.uint8, np.uint16, np.uint32, np.uint64, np.int32, np.int64)
)


def list_fields(names: str, numbers: type = ctypes.c_int64) -> list[tuple[str, type]]:
    """The fields of a structure: numbers, addresses (`*rows`), and addresses with how many are there (`rows[]`)."""
    names = re.sub(r"(\w+)\[\]", r"*\1 \1_count", names)
    return [(name.lstrip("*"), ctypes.c_void_p if name[0] == "*" else numbers) for name in names.split()]


def list_addresses(arrays: Sequence[Array], dtype: npt.DTypeLike) -> npt.NDArray[np.int64]:
    """(n, 2): the address and the length of each of n arrays, as `address` takes them; the caller holds the arrays."""
    return np.array([(address(array, dtype), len(array)) for array in arrays], np.int64).reshape(-1, 2)


def _raise_missing(*_: object) -> int:
    raise RuntimeError("the native core is missing")


def _load(folder: Path) -> tuple[ctypes.CDLL | None, str | None]:
    """The library; or else None, and why there is none."""
    paths = [path for suffix in EXTENSION_SUFFIXES if (path := folder / f"_neardup{suffix}").exists()]
    if not paths:
        return None, "the native core was not built: install a C compiler (Debian: gcc libc6-dev), and neardup again"
    try:
        library = ctypes.CDLL(str(paths[0]))
    except OSError as error:
        return None, f"the native core cannot be loaded: {error}"
    if library.nd_interface() != INTERFACE:
        return None, "the native core is of another version of neardup: install neardup again"
    return library, None


LIBRARY, WHY_MISSING = _load(Path(__file__).parent)
