"""Centring: what all vectors of a language share is removed."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from neardup.meaning.centring import Centring, Sums, Vectors, fit, unit
from neardup.records import Language

HINDI, TAMIL, ODIA = Language("HINDI"), Language("TAMIL"), Language("ODIA")
DIMENSIONS = 16
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
    centred = fit({HINDI: sums(vectors)}, DIMENSIONS).apply(vectors, HINDI)
    assert np.linalg.norm(centred.mean(axis=0)) < 0.2
    np.testing.assert_allclose(np.linalg.norm(centred, axis=1), 1, rtol=1e-5)


@given(seeds, seeds)
def test_many_stories_of_a_language_outweigh_the_other_languages(seed: int, other: int) -> None:
    hindi, tamil = spread(seed, 500, 2), spread(other, 50, 2)
    alone, together = fit({HINDI: sums(hindi)}, DIMENSIONS), fit({HINDI: sums(hindi), TAMIL: sums(tamil)}, DIMENSIONS)
    cosines = (alone.apply(hindi, HINDI) * together.apply(hindi, HINDI)).sum(axis=1)
    assert cosines.min() > 0.99


@given(seeds)
def test_one_story_of_a_language_is_not_its_mean(seed: int) -> None:
    hindi, one = spread(seed, 50, 2), spread(seed + 1, 1, 2)
    centred = fit({HINDI: sums(hindi), ODIA: sums(one)}, DIMENSIONS).apply(one, ODIA)
    np.testing.assert_allclose(np.linalg.norm(centred, axis=1), 1, rtol=1e-5)


@given(seeds)
def test_a_language_without_stories_is_centred_by_the_mean_of_the_others(seed: int) -> None:
    hindi, tamil, odia = spread(seed, 50, 2), spread(seed + 1, 5, 2), spread(seed + 2, 5, 2)
    centring = fit({HINDI: sums(hindi), TAMIL: sums(tamil)}, DIMENSIONS)
    common = (hindi.mean(axis=0) + tamil.mean(axis=0)) / 2
    np.testing.assert_allclose(centring.apply(odia, ODIA), unit(odia - common), atol=1e-5)


def test_without_stories_nothing_is_removed() -> None:
    vectors = spread(1, 3, 2)
    np.testing.assert_allclose(fit({}, DIMENSIONS).apply(vectors, HINDI), vectors, atol=1e-6)


def test_the_mean_itself_has_no_direction_left() -> None:
    mean = spread(1, 1, 2)
    assert not Centring(mean[0]).apply(mean, HINDI).any()
