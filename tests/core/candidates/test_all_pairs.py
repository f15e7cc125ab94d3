"""Laws: the pairs are those of brute force, each once, whatever the distance, bands and chunk size.

In a bucket over the cap each member is compared with the first ones only, and the bucket is named.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from neardup.core.candidates import all_pairs
from neardup.core.candidates.all_pairs import PairChunk, find_near_pairs, find_signature_pairs
from neardup.core.candidates.banding import MAX_DISTANCE, Banding, divide_bands
from neardup.core.fingerprint.minhash import ROWS, signature_rows
from neardup.core.fingerprint.word_hashes import hash_rows

from tests.support.builders import signature_band_values

Pair = tuple[int, int]
UNCAPPED = 1000
# Variations of two values, so that many pairs are near, many are equal, and some are equal in a few bands only.
bases = st.sampled_from([bytes(ROWS), bytes(range(ROWS))])
simhashes = st.builds(
    lambda base, bits: (int.from_bytes(base[:16]) ^ sum(1 << bit for bit in bits)).to_bytes(16),
    bases,
    st.sets(st.integers(0, 127), max_size=6),
)
signatures = st.builds(
    lambda base, rows: bytes(rows.get(n, base[n]) for n in range(ROWS)),
    bases,
    st.one_of(
        st.just({}),
        st.dictionaries(st.integers(0, ROWS - 1), st.integers(0, 2), max_size=ROWS),
        # all but a few bands replaced
        st.builds(
            lambda kept, row: {n: row for n in range(ROWS) if n // 2 not in kept},
            st.sets(st.integers(0, 7), min_size=2, max_size=4),
            st.integers(100, 104),
        ),
    ),
)
chunk_sizes = st.sampled_from([1, 7, all_pairs.CHUNK_PAIRS])
caps = st.sampled_from([1, 2, 5, UNCAPPED])
bandings = st.builds(Banding, bands=st.sampled_from([8, 16, 32]), shared=st.integers(1, 3), max_bucket=caps)


def collected(chunks: Iterable[PairChunk]) -> tuple[set[Pair], dict[str, int]]:
    """All pairs, and the sizes of all truncated buckets."""
    found: list[Pair] = []
    capped: dict[str, int] = {}
    done = [0.0]
    for chunk in chunks:
        found += zip(chunk.left.tolist(), chunk.right.tolist(), strict=True)
        capped |= chunk.capped
        done.append(chunk.done)
    assert done == sorted(done) and done[-1] == 1, f"progress must rise to 1: {done}"
    assert len(found) == len(set(found)), "a pair was found twice"
    assert all(left < right for left, right in found), "a pair must be ascending"
    return set(found), capped


def compared_pairs(key_values: Sequence[Sequence[int]], cap: int) -> tuple[set[Pair], int]:
    """The pairs that share a bucket and are compared, and the number of truncated buckets.

    `key_values` are the values of each member under each key.
    """
    compared: set[Pair] = set()
    truncated = 0
    for values in zip(*key_values, strict=True):
        buckets: dict[int, list[int]] = defaultdict(list)
        for member, value in enumerate(values):
            buckets[value].append(member)
        compared |= {pair for bucket in buckets.values() for pair in combinations(bucket, 2) if pair[0] in bucket[:cap]}
        truncated += sum(len(bucket) > cap for bucket in buckets.values())
    return compared, truncated


def group_values(simhash: bytes, distance: int) -> list[int]:
    """The first 32 bits, or fewer, of each group: the values under the keys of near_pairs."""
    return [int.from_bytes(simhash[2 * group.start : 2 * group[:2].stop]) for group in divide_bands(distance)]


def differing(a: bytes, b: bytes) -> int:
    return (int.from_bytes(a) ^ int.from_bytes(b)).bit_count()


@settings(deadline=None)
@given(st.lists(simhashes, max_size=24), st.integers(0, MAX_DISTANCE), caps, chunk_sizes)
def test_near_pairs_are_those_of_brute_force(stories: list[bytes], distance: int, cap: int, chunk_size: int) -> None:
    with patch.object(all_pairs, "CHUNK_PAIRS", chunk_size):
        found, capped = collected(find_near_pairs(hash_rows(stories), distance, cap))
    near = {(i, j) for i, j in combinations(range(len(stories)), 2) if differing(stories[i], stories[j]) <= distance}
    if cap == UNCAPPED:
        assert (found, capped) == (near, {})
    else:
        compared, truncated = compared_pairs([group_values(story, distance) for story in stories], cap)
        assert (found, len(capped)) == (near & compared, truncated)


@settings(deadline=None)
@example([bytes(ROWS), bytes(4) + bytes([7]) * 60], Banding(shared=3, max_bucket=UNCAPPED), 0, 7)
@given(st.lists(st.one_of(st.none(), signatures), max_size=24), bandings, st.sampled_from([0, 4, 10, 40]), chunk_sizes)
def test_signature_pairs_are_those_of_brute_force(
    stories: list[bytes | None], banding: Banding, agreeing_rows: int, chunk_size: int
) -> None:
    bands, shared, cap = banding.bands, banding.shared, banding.max_bucket
    signed = [n for n, story in enumerate(stories) if story is not None]
    with patch.object(all_pairs, "CHUNK_PAIRS", chunk_size):
        found, capped = collected(
            find_signature_pairs(
                signature_rows(stories),
                np.array(signed, np.int64),
                bands=bands,
                shared=shared,
                agreeing_rows=agreeing_rows,
                max_bucket=cap,
            )
        )
    values = {n: signature_band_values(stories[n], bands) for n in signed}

    def are_similar(i: int, j: int) -> bool:
        bands_shared = sum(a == b for a, b in zip(values[i], values[j], strict=True))
        rows = sum(a == b for a, b in zip(stories[i] or b"", stories[j] or b"", strict=True))
        return bands_shared >= shared and rows >= agreeing_rows

    similar = {(i, j) for i, j in combinations(signed, 2) if are_similar(i, j)}
    if cap == UNCAPPED:
        assert (found, capped) == (similar, {})
    else:
        key_values = [
            [*values[n]] if shared == 1 else [a << 16 | b for a, b in combinations(values[n], 2)] for n in signed
        ]
        compared, truncated = compared_pairs(key_values, cap)
        assert (found, len(capped)) == (similar & {(signed[i], signed[j]) for i, j in compared}, truncated)


@pytest.mark.parametrize(
    ("find", "name"),
    [
        (lambda cap: find_near_pairs(np.zeros((9, 2), np.uint64), 3, cap), "0:0"),
        (
            lambda cap: find_signature_pairs(
                np.zeros((9, ROWS), np.uint8), np.arange(9), bands=8, shared=2, agreeing_rows=10, max_bucket=cap
            ),
            "sketch:0+1:0",
        ),
    ],
    ids=["near", "signature"],
)
def test_a_bucket_over_the_cap_is_truncated_and_named(find: Callable[[int], Iterable[PairChunk]], name: str) -> None:
    found, capped = collected(find(3))
    assert found == {(i, j) for i, j in combinations(range(9), 2) if i < 3}
    assert capped[name] == 9, capped
    assert collected(find(9)) == (set(combinations(range(9), 2)), {}), "a bucket at the cap was truncated"


def test_copies_excluded_from_boilerplate_buckets_are_found_by_other_bands() -> None:
    stories = np.random.default_rng(1).integers(0, 256, (12, ROWS), np.uint8)
    stories[:, :8] = 1  # four bands, as of a footer on every page
    stories[10, 8:40] = stories[11, 8:40] = 2
    found, capped = collected(
        find_signature_pairs(stories, np.arange(12), bands=32, shared=2, agreeing_rows=10, max_bucket=5)
    )
    assert len(capped) == 4 * 3 / 2, "each pair of the footer's bands is a truncated bucket"
    assert (10, 11) in found, "two stories excluded from the footer's buckets share twenty bands, but were not found"


@pytest.mark.parametrize("distance", [-1, 8])
def test_a_distance_beyond_the_bands_is_refused(distance: int) -> None:
    with pytest.raises(ValueError, match="0 to 7"):
        next(find_near_pairs(np.zeros((2, 2), np.uint64), distance, UNCAPPED))


def test_a_large_bucket_fits_in_chunks_of_bounded_size() -> None:
    story = np.zeros((800, ROWS), np.uint8)
    sizes = [
        len(chunk.left)
        for chunk in find_signature_pairs(story, np.arange(800), bands=32, shared=2, agreeing_rows=10, max_bucket=5000)
    ]
    assert sum(sizes) == 800 * 799 // 2 > all_pairs.CHUNK_PAIRS
    assert max(sizes) <= all_pairs.CHUNK_PAIRS
