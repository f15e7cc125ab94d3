"""Laws: each native function gives what its reference does, whatever the sizes, and refuses what contradicts itself."""

from collections.abc import Callable, Sequence
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.candidates import all_pairs
from neardup.core.candidates.all_pairs import find_near_pairs, find_shared, find_signature_pairs, join_runs
from neardup.core.candidates.banding import Banding
from neardup.core.candidates.key_pairs import (
    Buckets,
    HashBuckets,
    KeyTable,
    find_pairs_in_buckets,
    find_pairs_in_hash_buckets,
    make_keys,
)
from neardup.core.candidates.passage_groups import DEAD, count_shared, find_groups, list_earlier
from neardup.core.candidates.select import Arrays, close_pairs, find_alike_pairs, score_pairs
from neardup.core.fingerprint.minhash import ROWS
from neardup.core.native import candidates as binding
from neardup.core.sets import find_edges

from tests.core.candidates.test_select import Thresholds
from tests.support.languages import HINDI, MARATHI
from tests.support.sampling import EXAMPLES

pytestmark = pytest.mark.native

seeds = st.integers(0, 2**32 - 1)
thresholds = st.tuples(st.integers(0, 7), st.sampled_from([0, 5, 8, 32]), st.integers(0, 3), st.integers(0, 30))
Any = npt.NDArray[np.generic]


def same(found: Sequence[Any], expected: Sequence[Any]) -> None:
    for column, (first, second) in enumerate(zip(found, expected, strict=True)):
        assert first.dtype == second.dtype, f"column {column}"
        assert first.tolist() == second.tolist(), f"column {column}"


def stories(seed: int, size: int) -> Arrays:
    """Variations of a few fingerprints, from copies to those that share a band or none, in two languages."""
    rng = np.random.default_rng(seed)
    bases = rng.integers(0, 256, (3, 80), np.uint8)
    prints = bases[rng.integers(0, 3, size)]
    is_changed = rng.random((size, 80)) < rng.choice([0, 0.03, 0.5, 0.9], (size, 1))
    prints = np.where(is_changed, rng.integers(0, 4, (size, 80), np.uint8), prints)
    signed = rng.random(size) < 0.9
    signatures = prints[:, 16:] * signed[:, None]
    simhashes = np.ascontiguousarray(prints[:, :16]).view(np.uint64)
    return rng.integers(0, 2, size, np.uint8), simhashes, np.ascontiguousarray(signatures), signed


@settings(deadline=None, max_examples=EXAMPLES // 2)
@given(
    seeds,
    st.sampled_from([2, 30, 32, 33, 34, 70]),
    st.builds(Banding, st.integers(0, 7), st.sampled_from([5, 8, 16, 32]), st.integers(1, 3)),
    st.sampled_from([1, 50, all_pairs.CHUNK_PAIRS]),
)
def test_the_bucket_join(seed: int, size: int, banding: Banding, chunk_size: int) -> None:
    _, simhashes, signatures, signed = stories(seed, size)

    def joined() -> list[list[tuple[int, int]]]:
        near = find_near_pairs(simhashes, banding.hamming)
        similar = find_signature_pairs(
            signatures, np.flatnonzero(signed), bands=banding.bands, shared=banding.shared, agreeing_rows=seed % 12
        )
        return [
            sorted(pair for chunk in join for pair in zip(chunk.left.tolist(), chunk.right.tolist(), strict=True))
            for join in (near, similar)
        ]

    with patch.object(all_pairs, "CHUNK_PAIRS", chunk_size):
        found = joined()
        with patch.object(all_pairs, "join_runs", join_runs.reference):
            assert found == joined()


@given(seeds, st.integers(0, 40), st.integers(1, 90), thresholds)
def test_the_screen(seed: int, size: int, others_size: int, own: tuple[int, int, int, int]) -> None:
    some, others = stories(seed, size), stories(seed, others_size)
    table, rng = np.array([own, (3, 32, 2, 10)]), np.random.default_rng(seed)
    left, right = rng.integers(0, max(size, 1), 50 * bool(size)), rng.integers(0, others_size, 50 * bool(size))
    same(score_pairs(some, others, left, right, table), score_pairs.reference(some, others, left, right, table))
    same(find_alike_pairs(some, some, table, True), find_alike_pairs.reference(some, some, table, True))
    same(close_pairs(some, others, own[0], own[3]), close_pairs.reference(some, others, own[0], own[3]))
    with patch.object(binding, "PAIRS_AT_ONCE", 7):
        same(find_alike_pairs(some, others, table, False), find_alike_pairs.reference(some, others, table, False))


@given(
    seeds,
    st.integers(1, 60),
    st.builds(
        Thresholds,
        st.integers(0, 7),
        st.sampled_from([8, 32]),
        st.integers(0, 3),
        st.integers(0, 64),
        st.integers(1, 9),
    ),
)
def test_the_key_join(seed: int, size: int, own: Thresholds) -> None:
    table, rng = KeyTable.of({HINDI: own, MARATHI: own}), np.random.default_rng(seed)
    languages, simhashes, signatures, signed = stories(seed, size)
    languages[:] = seed % 2
    keys, owners = make_keys(simhashes, signatures, signed, table, seed % 2)
    order = np.lexsort((owners, keys))
    keys, owners = keys[order], owners[order]
    edges = find_edges(keys)
    buckets = Buckets(
        edges,
        keys[edges[:-1]],
        rng.integers(0, 3, len(edges) - 1),
        owners - size // 3,
        (languages[owners], simhashes[owners], signatures[owners], signed[owners]),
    )
    with patch.object(binding, "PAIRS_AT_ONCE", 9):
        same(find_pairs_in_buckets(buckets, table), find_pairs_in_buckets.reference(buckets, table))


@given(seeds, st.integers(1, 25), st.integers(1, 3))
def test_the_join_of_hashes(seed: int, size: int, min_shared: int) -> None:
    rng = np.random.default_rng(seed)
    lists = [np.unique(rng.integers(0, 20, rng.integers(0, 9))) for _ in range(size)]
    owners = np.repeat(np.arange(size), [len(own) for own in lists])
    hashes = np.concatenate(lists)
    order = np.lexsort((owners, hashes))
    hashes, owners = hashes[order], owners[order]
    edges, of_rows = find_edges(hashes), [lists[owner] for owner in owners]
    languages, simhashes, signatures, signed = stories(seed, size)
    buckets = HashBuckets(
        edges,
        hashes[edges[:-1]],
        owners - size // 3,
        np.concatenate([*of_rows, hashes[:0]]),
        np.append(0, np.cumsum([len(own) for own in of_rows])).astype(np.int64),
        (languages[owners], simhashes[owners], signatures[owners], signed[owners]),
    )
    table = np.array([(3, 32, 2, 10)] * 2)
    with patch.object(binding, "PAIRS_AT_ONCE", 1):
        found = find_pairs_in_hash_buckets(buckets, table, min_shared)
    same(found, find_pairs_in_hash_buckets.reference(buckets, table, min_shared))


@given(seeds, st.integers(1, 120), st.integers(0, 300), st.integers(1, 40), st.integers(0, 9))
def test_the_passage_join(seed: int, size: int, postings_size: int, hashes: int, common: int) -> None:
    rng = np.random.default_rng(seed)
    postings = rng.integers(0, hashes, postings_size, np.uint64) << np.uint64(32)
    postings = np.sort(postings | rng.integers(0, size, postings_size, np.uint64))
    language_of = rng.choice(np.array([0, 1, 254, DEAD], np.uint8), size)
    keys, most = rng.integers(0, 6, size, np.uint32), common + int(rng.integers(0, 30))
    counts = [np.zeros(size, np.uint32) for _ in range(2)]
    found = find_groups(postings, language_of, keys, common, most, counts[0])
    same(found, find_groups.reference(postings, language_of, keys, common, most, counts[1]))
    same(counts[:1], counts[1:])
    groups, first = found[0], size // 3
    ends = np.append(0, np.cumsum(counts[0][first:], dtype=np.int64))
    listed = []
    for listing in (list_earlier, list_earlier.reference):
        earlier, at = np.zeros(int(ends[-1]), np.uint32), ends[:-1].copy()
        listing(groups, first, earlier, at)
        listed.append((earlier, at))
    same(*listed)
    shared = count_shared(listed[0][0], ends, first, 2)
    same(shared, count_shared.reference(listed[1][0], ends, first, 2))
    same(*listed)


@given(seeds, st.sampled_from([0, 1, 47, 48, 49, 50, 3000]), st.sampled_from([2, 300, 70_000, 1 << 32]))
def test_lists_are_sorted_and_counted(seed: int, size: int, values: int) -> None:
    earlier = np.random.default_rng(seed).integers(0, values, size, np.uint64).astype(np.uint32)
    copy, ends = earlier.copy(), np.array([0, size // 4, size])
    same(count_shared(earlier, ends, 7, 2), count_shared.reference(copy, ends, 7, 2))
    same([earlier], [copy])


@given(seeds, st.integers(1, 4), st.sampled_from([3, 100, 1 << 32]), st.integers(0, 5), st.sampled_from([1, 60, 1000]))
def test_lookups(seed: int, least: int, values: int, lookups: int, room: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 60, 9)
    members = rng.integers(0, values, sizes.sum(), np.uint64).astype(np.uint32)
    edges, buckets = np.append(0, np.cumsum(sizes)), rng.integers(0, 9, (lookups, 5))
    with patch.object(binding, "NUMBERS_AT_ONCE", room):
        same(find_shared(members, edges, buckets, least), find_shared.reference(members, edges, buckets, least))


SOME, TABLE = stories(1, 5), np.array([(3, 32, 2, 10)] * 2)
ONE, NUMBERS = np.array([5]), np.arange(3, dtype=np.uint32)
TOO_NARROW = (*SOME[:2], np.zeros((5, ROWS - 1), np.uint8), SOME[3])
WRONG: dict[str, Callable[[], object]] = {
    "a pair": lambda: score_pairs(SOME, SOME, ONE, ONE, TABLE),
    "a language": lambda: find_alike_pairs(SOME, SOME, TABLE[:0], True),
    "a bucket": lambda: find_shared(NUMBERS, np.array([0, 3]), np.array([[1]]), 1),
    "an edge": lambda: find_shared(NUMBERS, np.array([0, 4]), np.array([[0]]), 1),
    "a number": lambda: find_groups(np.array([9], np.uint64), np.zeros(3, np.uint8), NUMBERS, 5, 5, NUMBERS.copy()),
    "a group": lambda: list_earlier(np.array([4, 1, 2], np.uint32), 0, NUMBERS, np.zeros(3, np.int64)),
    "a list": lambda: count_shared(NUMBERS, np.array([0, 4]), 0, 2),
    "a signature": lambda: score_pairs(TOO_NARROW, SOME, ONE, ONE, TABLE),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_beyond_the_arrays_is_refused(what: str) -> None:
    with pytest.raises(ValueError, match=r"contradicts itself|not of the same stories"):
        WRONG[what]()
