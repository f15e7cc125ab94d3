"""Centring: what all vectors of a language share is removed."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from neardup.meaning.codes import (
    DIRECTIONS,
    STORIES_EACH,
    Centring,
    Sums,
    Vectors,
    fit_centring,
    unit,
    widest_directions,
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
    return unit((random.standard_normal((n, DIMENSIONS)) + common).astype(np.float32))


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
    hindi, one = spread(seed, 50, 2), spread(seed + 1, 1, 2)
    centred = fit_centring({HINDI: sums(hindi), ODIA: sums(one)}, NONE).apply(one, ODIA)
    np.testing.assert_allclose(np.linalg.norm(centred, axis=1), 1, rtol=1e-5)


@given(seeds)
def test_a_language_without_stories_is_centred_by_the_mean_of_the_others(seed: int) -> None:
    hindi, tamil, odia = spread(seed, 50, 2), spread(seed + 1, 5, 2), spread(seed + 2, 5, 2)
    centring = fit_centring({HINDI: sums(hindi), TAMIL: sums(tamil)}, NONE)
    common = (hindi.mean(axis=0) + tamil.mean(axis=0)) / 2
    np.testing.assert_allclose(centring.apply(odia, ODIA), unit(odia - common), atol=1e-5)


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
    vectors = unit(spread(seed, 2 * STORIES_EACH, 0) + 3 * np.outer(kinds, np.eye(DIMENSIONS)[0]).astype(np.float32))
    assert np.corrcoef(kinds, vectors[:, 0])[0, 1] > 0.9
    directions = widest_directions(vectors)
    assert directions.shape == (2, DIMENSIONS)
    np.testing.assert_allclose(directions @ directions.T, np.eye(2), atol=1e-5)
    removed = fit_centring({}, directions).apply(vectors, HINDI)
    np.testing.assert_allclose(removed @ directions.T, 0, atol=1e-5)
    assert np.abs(removed[:, 0]).max() < 0.5


@given(st.integers(0, 2 * STORIES_EACH * DIRECTIONS))
def test_few_stories_have_few_directions(stories: int) -> None:
    assert len(widest_directions(np.zeros((stories, DIMENSIONS), np.float32))) == min(
        DIRECTIONS, stories // STORIES_EACH
    )
