"""XXH3-128 of short inputs, seed 0, for compiled functions: a word of 1 to 240 bytes.

Yann Collet's xxHash, version 0.8 (https://github.com/Cyan4973/xxHash, doc/xxhash_spec.md).  The results are
those of the xxhash package, without creating a Python object per word.

All numbers are uint64, because numba makes a float of a uint64 and an int.
"""

import numpy as np
import numpy.typing as npt

from neardup.core.jit import compiled

U64 = np.uint64
Bytes = npt.NDArray[np.uint8]
Halves = tuple[np.uint64, np.uint64]  # the low and the high 64 bits

LONGEST = 240
SECRET: Bytes = np.frombuffer(
    bytes.fromhex(
        "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
        "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
        "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3"
    ),
    np.uint8,
)

PRIME32_2 = U64(0x85EBCA77)
PRIME64_1 = U64(0x9E3779B185EBCA87)
PRIME64_2 = U64(0xC2B2AE3D27D4EB4F)
PRIME64_3 = U64(0x165667B19E3779F9)
PRIME64_4 = U64(0x85EBCA77C2B2AE63)
PRIME_MX1 = U64(0x165667919E3779F9)
PRIME_MX2 = U64(0x9FB21C651E98DF25)
LOW = U64(0xFFFFFFFF)


@compiled
def xxh3_128(data: Bytes, at: np.uint64, size: np.uint64) -> Halves:
    """The hash of data[at:at + size], of 1 to LONGEST bytes."""
    if size > U64(128):
        return _of_129_to_240(data, at, size)
    if size > U64(16):
        return _of_17_to_128(data, at, size)
    if size > U64(8):
        return _of_9_to_16(data, at, size)
    if size > U64(3):
        return _of_4_to_8(data, at, size)
    return _of_1_to_3(data, at, size)


@compiled
def byte_swapped(x: np.uint64) -> np.uint64:
    """The number with its eight bytes reversed."""
    x = (x & U64(0x00FF00FF00FF00FF)) << U64(8) | x >> U64(8) & U64(0x00FF00FF00FF00FF)
    x = (x & U64(0x0000FFFF0000FFFF)) << U64(16) | x >> U64(16) & U64(0x0000FFFF0000FFFF)
    return x << U64(32) | x >> U64(32)


@compiled
def _of_1_to_3(data: Bytes, at: np.uint64, size: np.uint64) -> Halves:
    first, middle, last = data[at], data[at + (size >> U64(1))], data[at + size - U64(1)]
    low = U64(first) << U64(16) | U64(middle) << U64(24) | U64(last) | size << U64(8)
    high = byte_swapped(low) >> U64(32)
    high = (high << U64(13) | high >> U64(19)) & LOW
    low ^= _read(SECRET, U64(0), 4) ^ _read(SECRET, U64(4), 4)
    high ^= _read(SECRET, U64(8), 4) ^ _read(SECRET, U64(12), 4)
    return _avalanche_of_xxh64(low), _avalanche_of_xxh64(high)


@compiled
def _of_4_to_8(data: Bytes, at: np.uint64, size: np.uint64) -> Halves:
    both = _read(data, at, 4) | _read(data, at + size - U64(4), 4) << U64(32)
    low, high = _product(both ^ _secret(16) ^ _secret(24), PRIME64_1 + (size << U64(2)))
    high += low << U64(1)
    low ^= high >> U64(3)
    low = (low ^ low >> U64(35)) * PRIME_MX2
    return low ^ low >> U64(28), _avalanche(high)


@compiled
def _of_9_to_16(data: Bytes, at: np.uint64, size: np.uint64) -> Halves:
    first, last = _read(data, at, 8), _read(data, at + size - U64(8), 8)
    low, high = _product(first ^ last ^ _secret(32) ^ _secret(40), PRIME64_1)
    low += (size - U64(1)) << U64(54)
    last ^= _secret(48) ^ _secret(56)
    high += last + (last & LOW) * (PRIME32_2 - U64(1))
    low, carried = _product(low ^ byte_swapped(high), PRIME64_2)
    return _avalanche(low), _avalanche(carried + high * PRIME64_2)


@compiled
def _of_17_to_128(data: Bytes, at: np.uint64, size: np.uint64) -> Halves:
    low, high = size * PRIME64_1, U64(0)
    for step in range((size - U64(1)) >> U64(5), -1, -1):
        ahead = U64(16 * step)
        low, high = _mixed_in((low, high), data, at + ahead, at + size - U64(16) - ahead, 32 * step)
    return _finished(low, high, size)


@compiled
def _of_129_to_240(data: Bytes, at: np.uint64, size: np.uint64) -> Halves:
    low, high = size * PRIME64_1, U64(0)
    for step in range(4):
        here = at + U64(32 * step)
        low, high = _mixed_in((low, high), data, here, here + U64(16), 32 * step)
    low, high = _avalanche(low), _avalanche(high)
    for step in range(4, size >> U64(5)):
        here = at + U64(32 * step)
        low, high = _mixed_in((low, high), data, here, here + U64(16), 32 * step - 125)
    end = at + size
    low, high = _mixed_in((low, high), data, end - U64(16), end - U64(32), 103)
    return _finished(low, high, size)


@compiled
def _mixed_in(halves: Halves, data: Bytes, one: np.uint64, other: np.uint64, secret: int) -> Halves:
    low, high = halves
    low += _folded(data, one, secret)
    low ^= _read(data, other, 8) + _read(data, other + U64(8), 8)
    high += _folded(data, other, secret + 16)
    high ^= _read(data, one, 8) + _read(data, one + U64(8), 8)
    return low, high


@compiled
def _folded(data: Bytes, at: np.uint64, secret: int) -> np.uint64:
    low, high = _product(_read(data, at, 8) ^ _secret(secret), _read(data, at + U64(8), 8) ^ _secret(secret + 8))
    return low ^ high


@compiled
def _finished(low: np.uint64, high: np.uint64, size: np.uint64) -> Halves:
    return (
        _avalanche(low + high),
        U64(0) - _avalanche(low * PRIME64_1 + high * PRIME64_4 + size * PRIME64_2),
    )


@compiled
def _avalanche(x: np.uint64) -> np.uint64:
    x = (x ^ x >> U64(37)) * PRIME_MX1
    return x ^ x >> U64(32)


@compiled
def _avalanche_of_xxh64(x: np.uint64) -> np.uint64:
    x = (x ^ x >> U64(33)) * PRIME64_2
    x = (x ^ x >> U64(29)) * PRIME64_3
    return x ^ x >> U64(32)


@compiled
def _product(a: np.uint64, b: np.uint64) -> Halves:
    """The 128 bits of a * b, from four products of halves."""
    a_low, a_high, b_low, b_high = a & LOW, a >> U64(32), b & LOW, b >> U64(32)
    across = a_high * b_low
    middle = (a_low * b_low >> U64(32)) + (across & LOW) + a_low * b_high
    return a * b, a_high * b_high + (across >> U64(32)) + (middle >> U64(32))


@compiled
def _secret(at: int) -> np.uint64:
    return _read(SECRET, U64(at), 8)


@compiled
def _read(data: Bytes, at: np.uint64, size: int) -> np.uint64:
    """The little-endian number in `size` bytes; the compiler turns this into a single load."""
    out = U64(0)
    for n in range(size):
        out |= U64(data[at + U64(n)]) << U64(8 * n)
    return out
