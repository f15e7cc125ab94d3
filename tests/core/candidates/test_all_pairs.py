"""Law: the pairs are those of brute force, each once, whatever the distance, bands and chunk size."""

from collections.abc import Iterable
from itertools import combinations
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from neardup.core.candidates import all_pairs
from neardup.core.candidates.all_pairs import PairChunk, find_near_pairs, find_signature_pairs
from neardup.core.candidates.banding import MAX_DISTANCE, Banding
from neardup.core.fingerprint.minhash import ROWS, stack_signatures
from neardup.core.fingerprint.word_hashes import hash_rows

from tests.support.builders import signature_band_values

Pair = tuple[int, int]
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
bandings = st.builds(Banding, bands=st.sampled_from([8, 16, 32]), shared=st.integers(1, 3))


def collected(chunks: Iterable[PairChunk]) -> set[Pair]:
    found: list[Pair] = []
    done = [0.0]
    for chunk in chunks:
        found += zip(chunk.left.tolist(), chunk.right.tolist(), strict=True)
        done.append(chunk.done)
    assert done == sorted(done) and done[-1] == 1, f"progress must rise to 1: {done}"
    assert len(found) == len(set(found)), "a pair was found twice"
    assert all(left < right for left, right in found), "a pair must be ascending"
    return set(found)


def differing(a: bytes, b: bytes) -> int:
    return (int.from_bytes(a) ^ int.from_bytes(b)).bit_count()


@settings(deadline=None)
@given(st.lists(simhashes, max_size=24), st.integers(0, MAX_DISTANCE), chunk_sizes)
def test_near_pairs_are_those_of_brute_force(stories: list[bytes], distance: int, chunk_size: int) -> None:
    with patch.object(all_pairs, "CHUNK_PAIRS", chunk_size):
        found = collected(find_near_pairs(hash_rows(stories), distance))
    near = {(i, j) for i, j in combinations(range(len(stories)), 2) if differing(stories[i], stories[j]) <= distance}
    assert found == near


@settings(deadline=None)
@example([bytes(ROWS), bytes(4) + bytes([7]) * 60], Banding(shared=3), 0, 7)
@given(st.lists(st.one_of(st.none(), signatures), max_size=24), bandings, st.sampled_from([0, 4, 10, 40]), chunk_sizes)
def test_signature_pairs_are_those_of_brute_force(
    stories: list[bytes | None], banding: Banding, agreeing_rows: int, chunk_size: int
) -> None:
    bands, shared = banding.bands, banding.shared
    signed = [n for n, story in enumerate(stories) if story is not None]
    with patch.object(all_pairs, "CHUNK_PAIRS", chunk_size):
        found = collected(
            find_signature_pairs(
                stack_signatures(stories),
                np.array(signed, np.int64),
                bands=bands,
                shared=shared,
                agreeing_rows=agreeing_rows,
            )
        )
    values = {n: signature_band_values(stories[n], bands) for n in signed}

    def are_similar(i: int, j: int) -> bool:
        bands_shared = sum(a == b for a, b in zip(values[i], values[j], strict=True))
        rows = sum(a == b for a, b in zip(stories[i] or b"", stories[j] or b"", strict=True))
        return bands_shared >= shared and rows >= agreeing_rows

    assert found == {(i, j) for i, j in combinations(signed, 2) if are_similar(i, j)}


@pytest.mark.parametrize("distance", [-1, 8])
def test_a_distance_beyond_the_bands_is_refused(distance: int) -> None:
    with pytest.raises(ValueError, match="0 to 7"):
        next(find_near_pairs(np.zeros((2, 2), np.uint64), distance))


def test_a_large_bucket_fits_in_chunks_of_bounded_size() -> None:
    story = np.zeros((800, ROWS), np.uint8)
    sizes = [
        len(chunk.left) for chunk in find_signature_pairs(story, np.arange(800), bands=32, shared=2, agreeing_rows=10)
    ]
    assert sum(sizes) == 800 * 799 // 2 > all_pairs.CHUNK_PAIRS
    assert max(sizes) <= all_pairs.CHUNK_PAIRS
