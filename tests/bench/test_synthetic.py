"""Synthetic stories are what their source says: the same for a seed, uneven as stated, with so many copies."""

from itertools import combinations

import numpy as np
import pytest
from neardup.core.fingerprint.minhash import agreeing
from neardup.core.verify.scores import hamming
from neardup.index.spread import BAND_VALUES
from neardup.insights.plan.profile import collisions
from neardup.records import Language

from tests.support import synthetic
from tests.support.languages import ODIA, SAMPLED
from tests.support.synthetic import CHUNK, Source, Stories

UNIFORM = 1 / BAND_VALUES


@pytest.mark.parametrize("language", SAMPLED)
def test_bands_collide_as_often_as_stated(language: Language) -> None:
    source = synthetic.prose(language)
    made = synthetic.draw(np.random.default_rng(1), source, 20_000)
    assert source.collision() > 1.3 * UNIFORM < source.hash_collision(), "prose is uneven"
    assert collisions(made.signatures.view(np.uint16), BAND_VALUES).mean() == pytest.approx(source.collision(), rel=0.1)
    assert collisions(made.simhashes.view(np.uint16), BAND_VALUES).mean() == pytest.approx(
        source.hash_collision(), rel=0.1
    )


def test_uniform_bands_collide_by_chance() -> None:
    source = synthetic.uniform()
    assert source.collision() == pytest.approx(UNIFORM)
    assert source.hash_collision() == pytest.approx(UNIFORM)


@pytest.mark.parametrize("source", [synthetic.uniform(), synthetic.prose(ODIA)], ids=["uniform", "prose"])
def test_a_seed_gives_the_same_stories_in_chunks_or_at_once(source: Source) -> None:
    count = CHUNK + 100
    whole = synthetic.draw(np.random.default_rng(7), source, count)
    parts = [*synthetic.drawn(np.random.default_rng(7), source, count)]
    assert [len(part) for part in parts] == [CHUNK, 100]
    for column in Stories.__slots__:
        assert np.array_equal(np.concatenate([getattr(part, column) for part in parts]), getattr(whole, column))


def test_so_many_are_copies() -> None:
    [stories] = synthetic.drawn(np.random.default_rng(7), synthetic.uniform(), 1000, copies=0.2)
    left, right = np.array([*combinations(range(1000), 2)]).T
    halves = stories.simhashes.view(np.uint64)
    near = hamming(halves[left], halves[right]) <= 3
    alike = agreeing(stories.signatures[left], stories.signatures[right]) >= 10
    assert near.sum() == 100, "half of the copies are near"
    assert (near & alike).sum() == 100, "and these keep their signatures, too"
    assert 190 <= alike.sum() <= 200, "the others are alike in three rows of ten at least"
