"""Laws: synthetic stories follow their distribution, are the same for the same seed, and contain the planted copies."""

from collections.abc import Callable
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from neardup.core.fingerprint.minhash import count_agreeing_rows
from neardup.core.fingerprint.word_hashes import measure_hamming
from neardup.records import Language

from tests.support import synthetic
from tests.support.languages import ODIA, SAMPLED
from tests.support.synthetic import BAND_VALUES, CHUNK, Distribution, Stories, collisions

UNIFORM = 1 / BAND_VALUES


@pytest.mark.parametrize("language", SAMPLED)
def test_bands_collide_as_often_as_the_distribution_predicts(language: Language) -> None:
    prose = synthetic.prose(language)
    stories = synthetic.draw(np.random.default_rng(1), prose, 20_000)
    signature_collisions = collisions(stories.signatures.view(np.uint16), BAND_VALUES).mean()
    simhash_collisions = collisions(stories.simhashes.view(np.uint16), BAND_VALUES).mean()
    assert prose.signature_collision() > 1.3 * UNIFORM < prose.simhash_collision(), "prose must be skewed"
    assert signature_collisions == pytest.approx(prose.signature_collision(), rel=0.1)
    assert simhash_collisions == pytest.approx(prose.simhash_collision(), rel=0.1)


def test_uniform_bands_collide_by_chance() -> None:
    uniform = synthetic.uniform()
    assert uniform.signature_collision() == pytest.approx(UNIFORM)
    assert uniform.simhash_collision() == pytest.approx(UNIFORM)


@pytest.mark.parametrize("make", [synthetic.uniform, partial(synthetic.prose, ODIA)], ids=["uniform", "prose"])
def test_a_seed_gives_the_same_stories_in_chunks_or_at_once(make: Callable[[], Distribution]) -> None:
    distribution = make()
    count = CHUNK + 100
    whole = synthetic.draw(np.random.default_rng(7), distribution, count)
    parts = [*synthetic.draw_chunks(np.random.default_rng(7), distribution, count)]
    assert [len(part) for part in parts] == [CHUNK, 100]
    for column in Stories.__struct_fields__:
        assert np.array_equal(np.concatenate([getattr(part, column) for part in parts]), getattr(whole, column))


def test_the_requested_share_are_copies() -> None:
    [stories] = synthetic.draw_chunks(np.random.default_rng(7), synthetic.uniform(), 1000, copies=0.2)
    left, right = np.array([*combinations(range(1000), 2)]).T
    halves = stories.simhashes.view(np.uint64)
    near = measure_hamming(halves[left], halves[right]) <= 3
    similar = count_agreeing_rows(stories.signatures[left], stories.signatures[right]) >= 10
    assert near.sum() == 100, "half of the copies must be near"
    assert (near & similar).sum() == 100, "near copies must keep most of their signatures"
    assert 190 <= similar.sum() <= 200, "nearly all copies must agree in at least 10 of 64 rows"
