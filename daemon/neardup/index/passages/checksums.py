"""XXH64 (https://xxhash.com, seed 0) of 4 KiB blocks, in compiled code: a lookup verifies each block it reads first."""

import numpy as np
import numpy.typing as npt

from neardup.core.jit import compiled

BLOCK = 4096  # bytes; what a disk reads at least
STRIPE = 4  # words of 8 bytes
P1 = np.uint64(0x9E3779B185EBCA87)
P2 = np.uint64(0xC2B2AE3D27D4EB4F)
P3 = np.uint64(0x165667B19E3779F9)
P4 = np.uint64(0x85EBCA77C2B2AE63)
NEGATIVE_P1 = np.uint64(0x61C8864E7A143579)

Bytes = npt.NDArray[np.uint8]
Checksums = npt.NDArray[np.uint64]


@compiled
def block_checksums(blocks: Bytes) -> Checksums:
    """Bytes (n * BLOCK,) -> the checksum (n,) of each block."""
    found = np.empty(len(blocks) // BLOCK, np.uint64)
    for n in range(len(found)):
        found[n] = checksum(blocks[n * BLOCK : (n + 1) * BLOCK])
    return found


@compiled
def checksum(block: Bytes) -> np.uint64:
    """XXH64 of a number of bytes that is a positive multiple of 32, contiguous."""
    words = block.view(np.uint64)
    a, b, c, d = P1 + P2, P2, np.uint64(0), NEGATIVE_P1
    for n in range(0, len(words), STRIPE):
        a, b = _round(a, words[n]), _round(b, words[n + 1])
        c, d = _round(c, words[n + 2]), _round(d, words[n + 3])
    found = _rotated(a, 1) + _rotated(b, 7) + _rotated(c, 12) + _rotated(d, 18)
    for lane in (a, b, c, d):
        found = (found ^ _round(np.uint64(0), lane)) * P1 + P4
    found += np.uint64(len(block))
    found = (found ^ found >> np.uint64(33)) * P2
    found = (found ^ found >> np.uint64(29)) * P3
    return found ^ found >> np.uint64(32)


@compiled
def _round(lane: np.uint64, word: np.uint64) -> np.uint64:
    return _rotated(lane + word * P2, 31) * P1


@compiled
def _rotated(word: np.uint64, bits: int) -> np.uint64:
    return word << np.uint64(bits) | word >> np.uint64(64 - bits)
