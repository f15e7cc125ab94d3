"""Laws of the alignment of serials: a planted chain is found in any order of the dots, and other dots make none."""

import random

from hypothesis import given
from hypothesis import strategies as st
from neardup.core.verify.serials import STEPS, Dot, align_chapters, find_ranges

CHAPTERS = 60
seeds = st.integers(0, 2**32)
steps = st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=15)


def scattered(rng: random.Random, count: int) -> list[Dot]:
    """Dots anywhere, of few words, of which no two follow each other."""
    places = [(first, second) for first in range(1, CHAPTERS, 5) for second in range(1, CHAPTERS, 5)]
    return [Dot(*place, rng.randint(40, 60)) for place in rng.sample(places, count)]


@given(seeds, steps, st.integers(1, 20), st.integers(1, 20))
def test_a_planted_chain_is_found(seed: int, taken: list[tuple[int, int]], first: int, second: int) -> None:
    """Whole or a part, shifted by any number of chapters, with chapters left out or merged."""
    chain = [(first, second)]
    for step in [(1, 1), *(step for taken_step in taken for step in (taken_step, (1, 1)))]:
        chain.append((chain[-1][0] + step[0], chain[-1][1] + step[1]))
    dots = [Dot(*place, 200) for place in chain]
    random.Random(seed).shuffle(dots)
    [found] = align_chapters(dots)
    assert found == chain
    assert find_ranges(found) == tuple((start, end) for start, end in zip(chain[0], chain[-1], strict=True))


@given(seeds, st.integers(3, 12), st.integers(0, 40))
def test_dots_beside_a_chain_change_nothing(seed: int, length: int, start: int) -> None:
    rng = random.Random(seed)
    chain = [Dot(100 + n, start + 100 + n, rng.randint(40, 900)) for n in range(length)]
    dots = [*chain, *scattered(rng, 60)]
    rng.shuffle(dots)
    assert align_chapters(dots) == [[dot[:2] for dot in chain]]


@given(seeds, st.integers(3, 12), st.integers(3, 12))
def test_what_all_chapters_share_aligns_nothing(seed: int, firsts: int, seconds: int) -> None:
    """A preface or a form of about one length; the chapters that are copied are found all the same."""
    rng = random.Random(seed)
    preface = [Dot(n, m, rng.randint(45, 60)) for n in range(firsts) for m in range(seconds)]
    assert align_chapters(preface) == []
    copied = [Dot(n, n, 500) for n in range(min(firsts, seconds))]
    assert align_chapters([*preface, *copied]) == [[dot[:2] for dot in copied]]


@given(seeds)
def test_scattered_dots_and_the_wrong_order_align_nothing(seed: int) -> None:
    rng = random.Random(seed)
    assert align_chapters(scattered(rng, 100)) == []
    assert align_chapters([Dot(n, 50 - n, 300) for n in range(50)]) == []
    assert align_chapters([Dot(n, n, 300) for n in range(2)]) == []
