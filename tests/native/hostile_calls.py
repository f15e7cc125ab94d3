"""A plugin of pytest for a process with AddressSanitizer: hostile calls beside each call of the native core.

A law calls a function with data that make sense.  Before each such call the plugin makes several like it: of every
buffer a copy, of its size to the byte, with damaged content; and lengths and other numbers that are smaller, zero or
negative.  So each function meets what a damaged file or a mistaken caller would give it, without a table of functions.
What it returns is checked only for being a count or a code: the sanitizers watch the rest.

A caller must still give buffers of the lengths that it states, so no number grows.
"""

import ctypes
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from neardup.core import native

CALLS = 10  # beside each call
TIMES = 2  # that each of these is made, as some functions go on where they stopped
SECONDS = float(os.environ["HOSTILE_SECONDS"])  # for each function; the calls after these are left alone
LARGEST_COPIED = 1 << 26  # bytes; a call is made with the caller's own buffer if that is larger
MOST_DAMAGED = 4  # places of a buffer
WIDTHS = (1, 2, 4, 8)
EXTREMES = (0, 1, 2, 0x7F, 0x80, 0xC0, 0xED, 0xF4, 0xFF, 1 << 31, (1 << 32) - 1, 1 << 63, (1 << 64) - 1)
NEGATIVE = (-1, -(1 << 31), -(1 << 63))
SIGNED = (ctypes.c_int64, ctypes.c_int32)
NUMBERS = (*SIGNED, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_size_t)

_spent: Counter[str] = Counter()  # nanoseconds, of each function that was called
_random = random.Random()
_bind = native.bind
_runtime = ctypes.CDLL(None)
_locate = _runtime["__asan_locate_address"]
_locate.restype = ctypes.c_char_p
_first_poisoned = _runtime["__asan_region_is_poisoned"]
_first_poisoned.restype, _first_poisoned.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_size_t)
_locate.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p)


def bind(name: str, *arguments: Any) -> Callable[..., int]:
    """As `native.bind`, for a function that is called with hostile arguments, too."""
    kinds = tuple(ctypes.c_void_p if isinstance(kind, native.ArrayOf) else kind for kind in arguments)
    function = _bind(name, *kinds)

    def called(*given: Any) -> int:
        values = tuple(map(_replace_array, arguments, given))
        started = time.monotonic_ns()
        for _ in range(CALLS if _spent[name] < SECONDS * 1e9 else 0):
            call = _HostileCall(kinds, values)
            for _ in range(TIMES):
                code = function(*call.values)
                assert code >= native.DAMAGED, f"{name} returned {code}, which is no code of an error"
        _spent[name] += time.monotonic_ns() - started
        return function(*values)

    return called


class _HostileCall:
    """The arguments of one call, made from those of another call, and the memory that they point to."""

    def __init__(self, types: tuple[Any, ...], values: tuple[Any, ...]) -> None:
        self._buffers: list[Any] = []
        self._copies: dict[int, int] = {}  # the address of a buffer -> that of its copy
        self.values: list[Any] = []
        places = iter(range(len(values)))
        for n in places:
            sized = None
            if types[n] not in NUMBERS and n + 1 < len(values) and types[n + 1] in NUMBERS:
                sized = _content_of_length(values[n], int(values[n + 1]))
            if sized is None:
                self.values.append(self._hostile(types[n], values[n]))
            else:
                length = int(values[next(places)])  # and no value of its own
                kept = _less(length, ctypes.c_size_t)
                buffer = self._kept(_damaged(sized[: kept * (len(sized) // length)]))
                self.values += [ctypes.cast(buffer, types[n]), kept]

    def _hostile(self, kind: Any, value: Any) -> Any:
        if kind in NUMBERS:
            return _less(int(value), kind)
        pointed = getattr(value, "_obj", value)  # of byref
        if isinstance(pointed, ctypes.Structure):
            return ctypes.cast(self._kept(self._structure(pointed)), kind)
        address = _address(value)
        return None if address is None else ctypes.cast(self._copied(address), kind)

    def _structure(self, structure: ctypes.Structure) -> bytes:
        """The bytes of a structure like this one, of which some fields are hostile."""
        copy = type(structure).from_buffer_copy(structure)
        for name, kind, *_ in structure._fields_:
            value = getattr(structure, name)
            if kind in NUMBERS:
                setattr(copy, name, _less(value, kind))
            elif kind is ctypes.c_void_p and value is not None:
                setattr(copy, name, self._copied(value))
            elif isinstance(value, ctypes.Structure):
                setattr(copy, name, kind.from_buffer_copy(self._structure(value)))
        return bytes(copy)

    def _copied(self, address: int) -> int:
        """The address of a damaged copy of what begins at an address, or this address if that is not known or large."""
        if address not in self._copies:
            content = _content(address)
            if content is None or _holds_addresses(content):
                return address
            self._copies[address] = self._kept(_damaged(content))
        return self._copies[address]

    def _kept(self, content: bytes) -> int:
        buffer = (ctypes.c_char * len(content)).from_buffer_copy(content)
        self._buffers.append(buffer)
        return ctypes.addressof(buffer)


def _replace_array(kind: Any, value: Any) -> Any:
    """An argument, or the address of one that is an array."""
    return kind.from_param(value).value if isinstance(kind, native.ArrayOf) else value


def _address(value: Any) -> int | None:
    if isinstance(value, bytes):
        return ctypes.cast(ctypes.c_char_p(value), ctypes.c_void_p).value
    return value if value is None else int(value)


def _content(address: int) -> bytes | None:
    """What is allocated from an address on; None if that is not known, freed or large."""
    start, size = ctypes.c_void_p(), ctypes.c_size_t()
    kind = _locate(address, None, 0, ctypes.byref(start), ctypes.byref(size))
    if kind != b"heap" or start.value is None or size.value > LARGEST_COPIED:
        return None
    rest = start.value + size.value - address
    if rest <= 0 or _first_poisoned(address, rest):  # it is beside what was allocated, or freed
        return None
    return ctypes.string_at(address, rest)


def _content_of_length(value: Any, length: int) -> bytes | None:
    """The elements of a buffer whose length is the argument after it, as far as is known."""
    if length < 2:  # below 2, a length less one may look like the length
        return None
    if isinstance(value, bytes):
        return value if len(value) == length else None
    address = None if hasattr(value, "_obj") or isinstance(value, ctypes.Structure) else _address(value)
    content = None if address is None else _content(address)
    if content is None or len(content) not in {width * length for width in WIDTHS} or _holds_addresses(content):
        return None
    return content


def _holds_addresses(content: bytes) -> bool:
    """Whether bytes are a structure that points to others, as far as is known."""
    words = (int.from_bytes(content[n : n + 8], "little") for n in range(0, min(len(content), 512) - 7, 8))
    return any(_content(word) is not None for word in words if 1 << 32 < word < 1 << 47)


def _less(value: int, kind: Any) -> int:
    """Usually the number itself, otherwise one that is nearer to zero, or negative where its type allows that."""
    drawn = _random.random()
    if drawn < 0.6:
        return value
    if drawn < 0.7 and kind in SIGNED:
        return max(_random.choice(NEGATIVE), -(1 << 8 * ctypes.sizeof(kind) - 1))
    return _random.choice((0, value // 2, max(value - 1, 0), _random.randint(0, max(value, 0))))


def _damaged(content: bytes) -> bytes:
    """Bytes of this length: usually with a few other numbers, sometimes the same, sometimes random ones."""
    drawn = _random.random()
    if drawn < 0.2 or not content:
        return content
    if drawn < 0.3:
        return _random.randbytes(len(content))
    damaged = bytearray(content)
    for _ in range(_random.randint(1, MOST_DAMAGED)):
        width = _random.choice([width for width in WIDTHS if width <= len(content)])
        place = _random.randrange(len(content) // width) * width
        number = int.from_bytes(damaged[place : place + width], "little")
        changed = _random.choice(
            (_random.choice(EXTREMES), number + 1, number - 1, number ^ 1 << _random.randrange(64))
        )
        damaged[place : place + width] = (changed % (1 << 8 * width)).to_bytes(width, "little")
    return bytes(damaged)


def pytest_unconfigure() -> None:
    Path(os.environ["NATIVE_FUNCTIONS"]).write_text("\n".join(sorted(_spent)), encoding="utf-8")


native.bind = bind  # pytest imports a plugin first, before any module has bound a function
