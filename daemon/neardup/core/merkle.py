"""Merkle trees over lists of entries that only grow, and the proofs that need nothing but their roots.

The hashes and the proofs are those of RFC 6962, section 2.1: a leaf is hashed behind a byte 0, and an inner node behind
a byte 1, so that neither can pass for the other.  A tree of n leaves, n > 1, has to its left the largest power of two
below n, so a subtree that is complete never changes.  The verification follows RFC 9162, sections 2.1.3.2 and 2.1.4.2.
"""

from collections.abc import Callable, Sequence
from hashlib import sha256

EMPTY_ROOT = sha256().digest()

# The hash of the leaves [start, end), which are a subtree of the tree.
SubtreeHash = Callable[[int, int], bytes]


def hash_leaf(entry: bytes) -> bytes:
    """The hash of an entry, 32 bytes."""
    return sha256(b"\x00" + entry).digest()


def hash_node(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node, of those of its two children."""
    return sha256(b"\x01" + left + right).digest()


def compute_root(hashes: Sequence[bytes]) -> bytes:
    """The root over leaves with these hashes.

    They may also be the roots of subtrees, each with the same power of two of leaves, the last perhaps with fewer.
    """
    level = list(hashes)
    while len(level) > 1:
        pairs = [hash_node(level[n], level[n + 1]) for n in range(0, len(level) - 1, 2)]
        level = pairs + level[2 * len(pairs) :]
    return level[0] if level else EMPTY_ROOT


def find_inclusion_path(position: int, size: int, subtree_hash: SubtreeHash) -> list[bytes]:
    """The hashes that lead from a leaf to the root of the first `size` leaves, from the bottom up."""
    path, start, end = list[bytes](), 0, size
    while end - start > 1:
        middle = start + _compute_left_size(end - start)
        if position < middle:
            path.append(subtree_hash(middle, end))
            end = middle
        else:
            path.append(subtree_hash(start, middle))
            start = middle
    return path[::-1]


def find_consistency_path(old_size: int, size: int, subtree_hash: SubtreeHash) -> list[bytes]:
    """The hashes by which the first `old_size` leaves are the beginning of the first `size`; 0 < old_size <= size."""
    path, start, end = list[bytes](), 0, size
    while old_size != end:
        middle = start + _compute_left_size(end - start)
        if old_size <= middle:
            path.append(subtree_hash(middle, end))
            end = middle
        else:
            path.append(subtree_hash(start, middle))
            start = middle
    return (path if start == 0 else [*path, subtree_hash(start, end)])[::-1]


def is_included(leaf: bytes, position: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Whether the path leads from this leaf hash, at its position, to the root of a tree of `size` leaves."""
    if not 0 <= position < size:
        return False
    found, node, last = leaf, position, size - 1
    for sibling in path:
        if last == 0:
            return False
        if node % 2 or node == last:
            found = hash_node(sibling, found)
            while node % 2 == 0 and node:
                node, last = node // 2, last // 2
        else:
            found = hash_node(found, sibling)
        node, last = node // 2, last // 2
    return last == 0 and found == root


def is_consistent(old_size: int, old_root: bytes, size: int, root: bytes, path: Sequence[bytes]) -> bool:
    """Whether the path shows that the tree of `size` leaves begins with the tree of `old_size` leaves."""
    if old_size == size:
        return not path and old_root == root
    if not 0 < old_size < size or not path:
        return False
    hashes = [old_root, *path] if old_size.bit_count() == 1 else list(path)
    node, last = old_size - 1, size - 1
    while node % 2:
        node, last = node // 2, last // 2
    found_old = found = hashes[0]
    for sibling in hashes[1:]:
        if last == 0:
            return False
        if node % 2 or node == last:
            found_old, found = hash_node(sibling, found_old), hash_node(sibling, found)
            while node % 2 == 0 and node:
                node, last = node // 2, last // 2
        else:
            found = hash_node(found, sibling)
        node, last = node // 2, last // 2
    return last == 0 and found_old == old_root and found == root


def _compute_left_size(size: int) -> int:
    """The largest power of two below a size of 2 or more."""
    return 1 << (size - 1).bit_length() - 1
