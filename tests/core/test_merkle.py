"""Laws of Merkle trees: what is proved is so, and nothing else is.  The reference is the recursion of RFC 6962."""

from collections.abc import Sequence
from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st
from neardup.core.merkle import (
    SubtreeHash,
    compute_root,
    find_consistency_path,
    find_inclusion_path,
    hash_leaf,
    is_consistent,
    is_included,
)

# The roots of the first n of the eight entries that the tests of certificate-transparency implementations share.
ENTRIES = [bytes.fromhex(digits) for digits in (
    "", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f",
)]  # fmt: skip
ROOTS = {
    1: "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    2: "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    8: "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
}


def root_by_recursion(hashes: Sequence[bytes]) -> bytes:
    """MTH of RFC 6962, section 2.1."""
    if len(hashes) < 2:
        return hashes[0] if hashes else sha256().digest()
    middle = 1
    while 2 * middle < len(hashes):
        middle *= 2
    return sha256(b"\x01" + root_by_recursion(hashes[:middle]) + root_by_recursion(hashes[middle:])).digest()


def leaves(size: int) -> list[bytes]:
    return [hash_leaf(str(n).encode()) for n in range(size)]


def subtree_hash_of(hashes: Sequence[bytes]) -> SubtreeHash:
    return lambda start, end: root_by_recursion(hashes[start:end])


def test_roots_are_those_of_other_implementations() -> None:
    for size, root in ROOTS.items():
        assert compute_root([hash_leaf(entry) for entry in ENTRIES[:size]]).hex() == root, f"of {size} entries"


sizes = st.integers(1, 80)


@given(sizes, st.data())
def test_each_entry_is_proved_at_its_place_and_nowhere_else(size: int, data: st.DataObject) -> None:
    hashes = leaves(size)
    root = compute_root(hashes)
    assert root == root_by_recursion(hashes), f"the root of {size} leaves"
    position, other = (data.draw(st.integers(0, size - 1)) for _ in range(2))
    path = find_inclusion_path(position, size, subtree_hash_of(hashes))
    assert is_included(hashes[position], position, size, path, root), f"leaf {position} of {size} is not proved"
    assert is_included(hashes[other], other, size, path, root) == (other == position), "a path proves another leaf"
    assert not is_included(hash_leaf(b"forged"), position, size, path, root), "a forged entry is proved"
    assert not is_included(hashes[position], position, size, [*path, root], root), "a longer path proves"
    assert not path or not is_included(hashes[position], position, size, path[1:], root), "a shorter path proves"


@given(sizes, st.data())
def test_only_a_tree_that_grew_is_consistent(size: int, data: st.DataObject) -> None:
    hashes = leaves(size)
    old_size, changed = data.draw(st.integers(1, size)), data.draw(st.integers(0, size - 1))
    old_root, root = compute_root(hashes[:old_size]), compute_root(hashes)
    path = find_consistency_path(old_size, size, subtree_hash_of(hashes))
    assert is_consistent(old_size, old_root, size, root, path), f"{old_size} leaves are not proved the start of {size}"
    for outside in (-1, 0, size + 1):
        assert not is_consistent(outside, old_root, size, root, [*path, root]), f"{outside} leaves begin {size}"
    rewritten = [*hashes[:changed], hash_leaf(b"rewritten"), *hashes[changed + 1 :]]
    forged = find_consistency_path(old_size, size, subtree_hash_of(rewritten))
    proved = is_consistent(old_size, old_root, size, compute_root(rewritten), forged)
    assert proved == (changed >= old_size), f"leaf {changed} of {old_size} was rewritten: proved {proved}"
