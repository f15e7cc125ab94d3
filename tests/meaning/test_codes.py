"""What all vectors of a language share is removed; the stored forms of vectors, and the scan for the nearest codes, are
those of plain arithmetic.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.meaning.codes import (
    DIRECTIONS,
    STORIES_EACH,
    Centring,
    Codes,
    Nearest,
    Places,
    Sums,
    Vectors,
    compute_codes,
    find_widest_directions,
    fit_centring,
    quantise,
    restore,
    scale_to_unit,
    scan,
)
from neardup.records import Language

HINDI, TAMIL, ODIA = Language("HINDI"), Language("TAMIL"), Language("ODIA")
DIMENSIONS = 16
NONE: Vectors = np.zeros((0, DIMENSIONS), np.float32)
seeds = st.integers(0, 2**32 - 1)


def spread(seed: int, n: int, shared: float) -> Vectors:
    """Random unit vectors that share a direction of their own."""
    random = np.random.default_rng(seed)
    common = random.standard_normal(DIMENSIONS) * shared
    return scale_to_unit((random.standard_normal((n, DIMENSIONS)) + common).astype(np.float32))


def sums(vectors: Vectors) -> Sums:
    return Sums(len(vectors), vectors.sum(axis=0))


@given(seeds)
def test_centred_vectors_of_a_language_share_no_direction(seed: int) -> None:
    vectors = spread(seed, 500, 3)
    assert np.linalg.norm(vectors.mean(axis=0)) > 0.5, "the vectors of the test share a direction"
    centred = fit_centring({HINDI: sums(vectors)}, NONE).apply(vectors, HINDI)
    assert np.linalg.norm(centred.mean(axis=0)) < 0.2
    np.testing.assert_allclose(np.linalg.norm(centred, axis=1), 1, rtol=1e-5)


@given(seeds, seeds)
def test_many_stories_of_a_language_outweigh_the_other_languages(seed: int, other: int) -> None:
    hindi, tamil = spread(seed, 500, 2), spread(other, 50, 2)
    alone, together = (
        fit_centring({HINDI: sums(hindi)}, NONE),
        fit_centring({HINDI: sums(hindi), TAMIL: sums(tamil)}, NONE),
    )
    cosines = (alone.apply(hindi, HINDI) * together.apply(hindi, HINDI)).sum(axis=1)
    assert cosines.min() > 0.99


@given(seeds)
def test_one_story_of_a_language_is_not_its_mean(seed: int) -> None:
    hindi, odia = spread(seed, 50, 2), spread(seed + 1, 1, 2)
    centred = fit_centring({HINDI: sums(hindi), ODIA: sums(odia)}, NONE).apply(odia, ODIA)
    np.testing.assert_allclose(np.linalg.norm(centred, axis=1), 1, rtol=1e-5)


@given(seeds)
def test_a_language_without_stories_is_centred_by_the_mean_of_the_others(seed: int) -> None:
    hindi, tamil, odia = spread(seed, 50, 2), spread(seed + 1, 5, 2), spread(seed + 2, 5, 2)
    centring = fit_centring({HINDI: sums(hindi), TAMIL: sums(tamil)}, NONE)
    common = (hindi.mean(axis=0) + tamil.mean(axis=0)) / 2
    np.testing.assert_allclose(centring.apply(odia, ODIA), scale_to_unit(odia - common), atol=1e-5)


def test_without_stories_nothing_is_removed() -> None:
    vectors = spread(1, 3, 2)
    np.testing.assert_allclose(fit_centring({}, NONE).apply(vectors, HINDI), vectors, atol=1e-6)


def test_the_mean_itself_has_no_direction_left() -> None:
    mean = spread(1, 1, 2)
    assert not Centring(mean[0], NONE).apply(mean, HINDI).any()


@given(seeds)
def test_the_directions_in_which_stories_vary_most_are_removed(seed: int) -> None:
    """Stories of two kinds are alike within a kind, until the direction from one kind to the other is removed."""
    kinds = np.random.default_rng(seed).permutation([1, -1] * STORIES_EACH)
    vectors = scale_to_unit(
        spread(seed, 2 * STORIES_EACH, 0) + 3 * np.outer(kinds, np.eye(DIMENSIONS)[0]).astype(np.float32)
    )
    assert np.corrcoef(kinds, vectors[:, 0])[0, 1] > 0.9
    directions = find_widest_directions(vectors)
    assert directions.shape == (2, DIMENSIONS)
    np.testing.assert_allclose(directions @ directions.T, np.eye(2), atol=1e-5)
    removed = fit_centring({}, directions).apply(vectors, HINDI)
    np.testing.assert_allclose(removed @ directions.T, 0, atol=1e-5)
    assert np.abs(removed[:, 0]).max() < 0.5


@given(st.integers(0, 2 * STORIES_EACH * DIRECTIONS))
def test_few_stories_have_few_directions(stories: int) -> None:
    assert len(find_widest_directions(np.zeros((stories, DIMENSIONS), np.float32))) == min(
        DIRECTIONS, stories // STORIES_EACH
    )


dimensions = st.sampled_from([1, 7, 64, 65, 384, 1024])


def vectors(seed: int, n: int, size: int) -> Vectors:
    return scale_to_unit(np.random.default_rng(seed).standard_normal((n, size)).astype(np.float32))


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
    assert plain_distances(compute_codes(a), compute_codes(b)).item() == ((a > 0) != (b > 0)).sum()


@given(seeds, st.integers(1, 4), st.integers(0, 600), st.integers(1, 9), st.integers(1, 400))
def test_a_scan_finds_the_nearest_codes(seed: int, queries: int, codes: int, most: int, block: int) -> None:
    """However the codes are divided; of equal distances the first.  The scan itself compares 256 at a time."""
    asked, scanned = compute_codes(vectors(seed, queries, 65)), compute_codes(vectors(seed + 1, codes, 65))
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
