"""The stored forms of vectors, and the scan for the nearest codes, against plain arithmetic."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.meaning.centring import Vectors, unit
from neardup.meaning.codes import Codes, Nearest, Places, codes_of, quantised, restored

seeds = st.integers(0, 2**32 - 1)
dimensions = st.sampled_from([1, 7, 64, 65, 384, 1024])


def vectors(seed: int, n: int, size: int) -> Vectors:
    return unit(np.random.default_rng(seed).standard_normal((n, size)).astype(np.float32))


def plain_distances(queries: Codes, codes: Codes) -> Places:
    distances: Places = np.bitwise_count(queries[:, None, :] ^ codes[None, :, :]).sum(axis=2, dtype=np.int64)
    return distances


@given(seeds, dimensions)
def test_8_bits_keep_the_direction(seed: int, size: int) -> None:
    exact = vectors(seed, 5, size)
    cosines = (restored(quantised(exact)) * exact).sum(axis=1)
    assert cosines.min() > 0.999


def test_8_bits_keep_a_vector_of_zeros() -> None:
    assert not restored(quantised(np.zeros((1, 8), np.float32))).any()


@given(seeds, dimensions)
def test_the_distance_of_codes_is_the_number_of_signs_that_differ(seed: int, size: int) -> None:
    a, b = vectors(seed, 1, size), vectors(seed + 1, 1, size)
    assert plain_distances(codes_of(a), codes_of(b)).item() == ((a > 0) != (b > 0)).sum()


@given(seeds, st.integers(1, 4), st.integers(0, 600), st.integers(1, 9), st.integers(1, 400))
def test_a_scan_finds_the_nearest_codes(seed: int, queries: int, codes: int, most: int, block: int) -> None:
    """However the codes are divided; of equal distances the first.  The scan itself compares 256 at a time."""
    asked, scanned = codes_of(vectors(seed, queries, 65)), codes_of(vectors(seed + 1, codes, 65))
    nearest = Nearest(asked, most)
    for at in range(0, codes, block):
        nearest.scan(scanned[at : at + block])
    distances = plain_distances(asked, scanned)
    order = np.argsort(distances, axis=1, kind="stable")[:, :most]
    held = order.shape[1]
    np.testing.assert_array_equal(nearest.places[:, :held], order)
    np.testing.assert_array_equal(nearest.distances[:, :held], np.take_along_axis(distances, order, axis=1))
    assert (nearest.places[:, held:] == -1).all()


@pytest.mark.parametrize("distance", [0, 1, 64, 65])
def test_a_scan_counts_every_bit(distance: int) -> None:
    words = np.zeros((1, 2), np.uint64)
    flipped = words.copy()
    for bit in range(distance):
        flipped[0, bit // 64] |= np.uint64(1 << bit % 64)
    nearest = Nearest(words, 1)
    nearest.scan(flipped)
    assert nearest.distances.item() == distance
