"""The stored forms of vectors, and the scan for the nearest codes, against plain arithmetic."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.meaning.codes import Codes, Nearest, Places, Vectors, codes_of, quantise, restore, scan, unit

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
    cosines = (restore(quantise(exact)) * exact).sum(axis=1)
    assert cosines.min() > 0.999


def test_8_bits_keep_a_vector_of_zeros() -> None:
    assert not restore(quantise(np.zeros((1, 8), np.float32))).any()


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


@pytest.mark.native
@given(
    st.tuples(seeds, st.integers(0, 64)),
    st.integers(0, 3),
    st.sampled_from([0, 1, 7, 8, 9, 255, 256, 257, 600]),
    st.sampled_from([1, 6, 15, 16, 17, 300, 512]),
    st.integers(1, 9),
)
def test_the_native_scan_is_the_reference(
    drawn: tuple[int, int], queries: int, codes: int, words: int, most: int
) -> None:
    """Words of few bits make distances equal."""
    random, rows = np.random.default_rng(drawn[0]), []
    asked, scanned = (random.integers(0, 1 << drawn[1], (n, words), np.uint64) for n in (queries, codes))
    for function in (scan, scan.reference):
        places, distances = np.full((queries, most), -1, np.int64), np.full((queries, most), 2**16 - 1, np.uint16)
        for first in (0, codes):
            function(asked, scanned, first, places, distances)
        rows.append((places, distances))
    np.testing.assert_array_equal(rows[0][0], rows[1][0], "places")
    np.testing.assert_array_equal(rows[0][1], rows[1][1], "distances")


@pytest.mark.native
@pytest.mark.parametrize(("words", "most"), [(0, 1), (513, 1), (1, 0)])
def test_the_native_scan_refuses_what_has_no_room(words: int, most: int) -> None:
    codes = np.zeros((1, words), np.uint64)
    with pytest.raises(ValueError, match="contradicts"):
        scan(codes, codes, 0, np.zeros((1, most), np.int64), np.zeros((1, most), np.uint16))
