"""Laws: the pairs are those of brute force, each once, whatever the distance, the bands and the portions; of a run over
the cap each member is compared with the first ones only, and the run is named.
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
from neardup.core.candidates.all_pairs import Portion, near_pairs, sketch_pairs
from neardup.core.candidates.banding import MAX_DISTANCE, Banding, groups
from neardup.core.fingerprint.minhash import ROWS, signature_rows
from neardup.core.verify.scores import hash_rows

from tests.support.builders import signature_band_values

Pair = tuple[int, int]
UNCAPPED = 1000
# Around two bases, so that many are near, many are equal, and some of these in some bands only.
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
portions = st.sampled_from([1, 7, all_pairs.PORTION])
caps = st.sampled_from([1, 2, 5, UNCAPPED])
bandings = st.builds(Banding, bands=st.sampled_from([8, 16, 32]), shared=st.integers(1, 3), max_bucket=caps)


def gathered(portions: Iterable[Portion]) -> tuple[set[Pair], dict[str, int]]:
    """All pairs and all runs that were cut."""
    found: list[Pair] = []
    capped: dict[str, int] = {}
    done = [0.0]
    for portion in portions:
        found += zip(portion.left.tolist(), portion.right.tolist(), strict=True)
        capped |= portion.capped
        done.append(portion.done)
    assert done == sorted(done) and done[-1] == 1, f"progress goes forward, to its end: {done}"
    assert len(found) == len(set(found)), "each pair once"
    assert all(left < right for left, right in found)
    return set(found), capped


def met(keys: Sequence[Sequence[int]], cap: int) -> tuple[set[Pair], int]:
    """The pairs that are compared in a common key, of members with these keys; how many runs are cut."""
    compared: set[Pair] = set()
    cut = 0
    for column in zip(*keys, strict=True):
        runs: dict[int, list[int]] = defaultdict(list)
        for member, value in enumerate(column):
            runs[value].append(member)
        compared |= {pair for run in runs.values() for pair in combinations(run, 2) if pair[0] in run[:cap]}
        cut += sum(len(run) > cap for run in runs.values())
    return compared, cut


def group_values(simhash: bytes, distance: int) -> list[int]:
    """Of each group the leading 32 bits at most: the keys of the near tier."""
    return [int.from_bytes(simhash[2 * group.start : 2 * group[:2].stop]) for group in groups(distance)]


def differing(a: bytes, b: bytes) -> int:
    return (int.from_bytes(a) ^ int.from_bytes(b)).bit_count()


@settings(deadline=None)
@given(st.lists(simhashes, max_size=24), st.integers(0, MAX_DISTANCE), caps, portions)
def test_near_pairs_are_those_of_brute_force(stories: list[bytes], distance: int, cap: int, portion: int) -> None:
    with patch.object(all_pairs, "PORTION", portion):
        found, capped = gathered(near_pairs(hash_rows(stories), distance, cap))
    near = {(i, j) for i, j in combinations(range(len(stories)), 2) if differing(stories[i], stories[j]) <= distance}
    if cap == UNCAPPED:
        assert (found, capped) == (near, {})
    else:
        compared, cut = met([group_values(story, distance) for story in stories], cap)
        assert (found, len(capped)) == (near & compared, cut)


@settings(deadline=None)
@example([bytes(ROWS), bytes(4) + bytes([7]) * 60], Banding(shared=3, max_bucket=UNCAPPED), 0, 7)
@given(st.lists(st.one_of(st.none(), signatures), max_size=24), bandings, st.sampled_from([0, 4, 10, 40]), portions)
def test_sketch_pairs_are_those_of_brute_force(
    stories: list[bytes | None], banding: Banding, agreeing_rows: int, portion: int
) -> None:
    bands, shared, cap = banding.bands, banding.shared, banding.max_bucket
    signed = [n for n, story in enumerate(stories) if story is not None]
    with patch.object(all_pairs, "PORTION", portion):
        found, capped = gathered(
            sketch_pairs(
                signature_rows(stories),
                np.array(signed, np.int64),
                bands=bands,
                shared=shared,
                agreeing_rows=agreeing_rows,
                max_bucket=cap,
            )
        )
    values = {n: signature_band_values(stories[n], bands) for n in signed}

    def alike(i: int, j: int) -> bool:
        bands_shared = sum(a == b for a, b in zip(values[i], values[j], strict=True))
        rows = sum(a == b for a, b in zip(stories[i] or b"", stories[j] or b"", strict=True))
        return bands_shared >= shared and rows >= agreeing_rows

    want = {(i, j) for i, j in combinations(signed, 2) if alike(i, j)}
    if cap == UNCAPPED:
        assert (found, capped) == (want, {})
    else:
        keys = [[*values[n]] if shared == 1 else [a << 16 | b for a, b in combinations(values[n], 2)] for n in signed]
        compared, cut = met(keys, cap)
        assert (found, len(capped)) == (want & {(signed[i], signed[j]) for i, j in compared}, cut)


@pytest.mark.parametrize(
    ("find", "name"),
    [
        (lambda cap: near_pairs(np.zeros((9, 2), np.uint64), 3, cap), "0:0"),
        (
            lambda cap: sketch_pairs(
                np.zeros((9, ROWS), np.uint8), np.arange(9), bands=8, shared=2, agreeing_rows=10, max_bucket=cap
            ),
            "sketch:0+1:0",
        ),
    ],
    ids=["near", "sketch"],
)
def test_a_run_over_the_cap_is_named_and_compared_with_its_first(
    find: Callable[[int], Iterable[Portion]], name: str
) -> None:
    found, capped = gathered(find(3))
    assert found == {(i, j) for i, j in combinations(range(9), 2) if i < 3}
    assert capped[name] == 9, capped
    assert gathered(find(9)) == (set(combinations(range(9), 2)), {}), "a run of just so many is no cap"


def test_copies_cut_off_in_a_run_of_boilerplate_are_found_by_what_else_they_share() -> None:
    stories = np.random.default_rng(1).integers(0, 256, (12, ROWS), np.uint8)
    stories[:, :8] = 1  # a footer's four bands
    stories[10, 8:40] = stories[11, 8:40] = 2
    found, capped = gathered(sketch_pairs(stories, np.arange(12), bands=32, shared=2, agreeing_rows=10, max_bucket=5))
    assert len(capped) == 4 * 3 / 2, "every two of the footer's bands"
    assert (10, 11) in found, "the last two share twenty bands, and stand behind the first five in the footer's"


@pytest.mark.parametrize("distance", [-1, 8])
def test_a_distance_that_no_bands_guarantee(distance: int) -> None:
    with pytest.raises(ValueError, match="0 to 7"):
        next(near_pairs(np.zeros((2, 2), np.uint64), distance, UNCAPPED))


def test_memory_is_that_of_a_portion_however_long_a_run() -> None:
    story = np.zeros((3000, ROWS), np.uint8)
    sizes = [
        len(portion.left)
        for portion in sketch_pairs(story, np.arange(3000), bands=32, shared=2, agreeing_rows=10, max_bucket=5000)
    ]
    assert sum(sizes) == 3000 * 2999 // 2
    assert max(sizes) <= all_pairs.PORTION
